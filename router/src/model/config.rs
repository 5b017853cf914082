//! The view of `config.json`, `generation_config.json` and the tokenizer's files that the router needs. Values that make
//! no sense stop the start, with the file and the field; fields that the router does not know are none of its business.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::files::read_object;

/// Names of the longest sequence in `config.json`, in the order in which they are believed.
const POSITION_FIELDS: [&str; 5] =
    ["max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length"];

/// Parts of a `config.json` that describe the language model of a larger one.
const TEXT_PARTS: [&str; 2] = ["text_config", "llm_config"];

/// `tokenizer_config.json` writes astronomic numbers for "no limit".
const SANE_LENGTH: f64 = 2_147_483_648.0;

/// Why a model's configuration could not be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read `{path}`: {reason}")]
pub struct ModelConfigError {
    /// The file.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The bounds and ends of a model's generations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelConfig {
    /// Tokens that end a generation (`generation_config.json`, else `config.json`, else the tokenizer's).
    pub eos_token_ids: Vec<u32>,
    /// Longest sequence that the positions allow (`max_position_embeddings` and its older names), or, where the model
    /// does not say, the tokenizer's `model_max_length`. The latter is often too small, so it never cuts the former.
    pub max_positions: Option<usize>,
    /// What `generation_config.json` recommends when a client does not say (used by OpenAI's routes).
    pub sampling: SamplingDefaults,
}

/// Recommended sampling parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SamplingDefaults {
    /// `do_sample`: false = greedy unless the client gives a temperature.
    pub do_sample: Option<bool>,
    /// `temperature`.
    pub temperature: Option<f32>,
    /// `top_k`.
    pub top_k: Option<u32>,
    /// `top_p`.
    pub top_p: Option<f32>,
    /// `typical_p`.
    pub typical_p: Option<f32>,
    /// `repetition_penalty`.
    pub repetition_penalty: Option<f32>,
}

/// One file with its fields.
struct File {
    path: PathBuf,
    fields: Map<String, Value>,
}

// === impl ModelConfigError ===

impl ModelConfigError {
    /// An error of one file.
    pub(crate) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.display().to_string(), reason: reason.into() }
    }
}

// === impl ModelConfig ===

impl ModelConfig {
    /// Reads the files of a model folder.
    ///
    /// # Errors
    /// When `config.json` is missing, or a file is broken or has a field out of its range.
    pub fn load(folder: &Path) -> Result<Self, ModelConfigError> {
        let config = File::open(folder, "config.json")?.ok_or_else(|| {
            ModelConfigError::new(
                &folder.join("config.json"),
                "the file does not exist; is this the folder of a model?",
            )
        })?;
        let generation = File::open(folder, "generation_config.json")?.unwrap_or_else(|| File::empty(folder));
        let tokenizer = File::open(folder, "tokenizer_config.json")?.unwrap_or_else(|| File::empty(folder));
        Ok(Self {
            eos_token_ids: eos_token_ids(folder, &generation, &config, &tokenizer)?,
            max_positions: max_positions(&config, &tokenizer)?,
            sampling: SamplingDefaults::from_file(&generation)?,
        })
    }
}

// === impl SamplingDefaults ===

impl SamplingDefaults {
    fn from_file(file: &File) -> Result<Self, ModelConfigError> {
        Ok(Self {
            do_sample: file.get("do_sample", "true or false", Value::as_bool)?,
            temperature: file.float("temperature", "a number of at least 0", |value| value >= 0.0)?,
            top_k: file.get("top_k", "a whole number of at least 0", |value| u32::try_from(value.as_u64()?).ok())?,
            top_p: file.float("top_p", "a number above 0 and at most 1", is_share)?,
            typical_p: file.float("typical_p", "a number above 0 and at most 1", is_share)?,
            repetition_penalty: file.float("repetition_penalty", "a number above 0", |value| value > 0.0)?,
        })
    }
}

// === impl File ===

impl File {
    fn open(folder: &Path, name: &str) -> Result<Option<Self>, ModelConfigError> {
        let path = folder.join(name);
        Ok(read_object(&path)?.map(|fields| Self { path, fields }))
    }

    fn empty(folder: &Path) -> Self {
        Self { path: folder.to_path_buf(), fields: Map::new() }
    }

    /// A field that is there and not null, read by `read`, which refuses what is not `expected`.
    fn get<T>(
        &self,
        field: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ModelConfigError> {
        read_field(&self.path, &self.fields, field, expected, read)
    }

    fn float(
        &self,
        field: &str,
        expected: &str,
        accept: impl FnOnce(f32) -> bool,
    ) -> Result<Option<f32>, ModelConfigError> {
        self.get(field, expected, |value| {
            let number = value.as_f64()? as f32;
            (number.is_finite() && accept(number)).then_some(number)
        })
    }

    fn token_ids(&self, field: &str) -> Result<Option<Vec<u32>>, ModelConfigError> {
        self.get(field, "a token id or a list of token ids", |value| match value {
            Value::Array(ids) => ids.iter().map(token_id).collect(),
            single => Some(vec![token_id(single)?]),
        })
    }
}

fn read_field<T>(
    path: &Path,
    fields: &Map<String, Value>,
    field: &str,
    expected: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, ModelConfigError> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value).map(Some).ok_or_else(|| {
            ModelConfigError::new(path, format!("`{field}` is {value}, but must be {expected}; correct the file"))
        }),
    }
}

fn is_share(value: f32) -> bool {
    value > 0.0 && value <= 1.0
}

fn token_id(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

/// The first file that names end tokens wins; the tokenizer knows its end token by text only.
fn eos_token_ids(
    folder: &Path,
    generation: &File,
    config: &File,
    tokenizer: &File,
) -> Result<Vec<u32>, ModelConfigError> {
    for file in [generation, config] {
        if let Some(ids) = file.token_ids("eos_token_id")? {
            return Ok(ids);
        }
    }
    for part in TEXT_PARTS {
        if let Some(ids) = text_part(config, part)?.map(|part| part.token_ids("eos_token_id")).transpose()?.flatten() {
            return Ok(ids);
        }
    }
    let text = tokenizer.get("eos_token", "a text or an object with the text `content`", |value| {
        Some(value.get("content").unwrap_or(value).as_str()?.to_owned())
    })?;
    match text {
        Some(text) => added_token(folder, &text),
        None => Ok(Vec::new()),
    }
}

/// The id of an added token of `tokenizer.json`; none when the file or the token is not there.
fn added_token(folder: &Path, text: &str) -> Result<Vec<u32>, ModelConfigError> {
    let Some(file) = File::open(folder, "tokenizer.json")? else { return Ok(Vec::new()) };
    let tokens = file.get("added_tokens", "a list of tokens", |value| value.as_array().cloned())?.unwrap_or_default();
    let id = tokens.iter().find(|token| token["content"] == text).and_then(|token| token_id(&token["id"]));
    Ok(id.into_iter().collect())
}

fn max_positions(config: &File, tokenizer: &File) -> Result<Option<usize>, ModelConfigError> {
    let mut positions = positions_of(config)?;
    for part in TEXT_PARTS {
        if positions.is_none()
            && let Some(part) = text_part(config, part)?
        {
            positions = positions_of(&part)?;
        }
    }
    if positions.is_some() {
        return Ok(positions);
    }
    let length = tokenizer.get("model_max_length", "a number above 0", |value| value.as_f64().filter(|n| *n > 0.0))?;
    Ok(length.filter(|length| *length < SANE_LENGTH).map(|length| length as usize))
}

fn positions_of(file: &File) -> Result<Option<usize>, ModelConfigError> {
    for field in POSITION_FIELDS {
        let positions = file.get(field, "a whole number above 0", |value| {
            usize::try_from(value.as_u64()?).ok().filter(|positions| *positions > 0)
        })?;
        if positions.is_some() {
            return Ok(positions);
        }
    }
    Ok(None)
}

fn text_part(config: &File, name: &str) -> Result<Option<File>, ModelConfigError> {
    let fields = config.get(name, "an object", |value| value.as_object().cloned())?;
    Ok(fields.map(|fields| File { path: config.path.clone(), fields }))
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
