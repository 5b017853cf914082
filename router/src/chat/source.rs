//! Where the chat templates of a model and the names of its special tokens are found. Reads files, compiles nothing.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use text_generation_protocol::config::is_template_text;

use super::TemplateError;
use crate::model::{ModelConfigError, read_object, read_text};

/// The name of the template that is used when no other is called for.
pub(super) const DEFAULT: &str = "default";

/// The tokens that every model may have; templates know them as variables.
const SPECIAL_TOKENS: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// What is used instead of the model's own files, because it was given on purpose.
#[derive(Debug, Clone, Default)]
pub struct Replacement {
    /// Replaces `tokenizer_config.json`: special tokens, and templates if it has any.
    pub tokenizer_config: Option<PathBuf>,
    /// Replaces every template: a text, or the path of a file (`.json` as `chat_template.json`, else a template).
    pub template: Option<String>,
}

/// What the files of a model say about its templates.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Templates by name; a model with a single one calls it `DEFAULT`.
    pub templates: Vec<(String, String)>,
    /// `bos_token` and so on, as text.
    pub special_tokens: Map<String, Value>,
}

// === impl Sources ===

impl Sources {
    /// Looks in this order, and stops at the first with a template: the replacement's template, its
    /// `tokenizer_config.json`, `chat_template.jinja`, `chat_template.json`, `tokenizer_config.json`. Templates of the
    /// folder `additional_chat_templates` are added under their file names, unless a template was given. Tokens come from
    /// `tokenizer_config.json`, the replacement's if there is one; what is missing there, from `special_tokens_map.json`.
    pub fn find(folder: &Path, replacement: &Replacement) -> Result<Self, TemplateError> {
        let given = replacement.tokenizer_config.as_deref();
        let config_path = given.map_or_else(|| folder.join("tokenizer_config.json"), Path::to_path_buf);
        let config = match (read_object(&config_path)?, given) {
            (None, Some(path)) => return Err(missing(path)),
            (config, _) => config.unwrap_or_default(),
        };
        let in_config = templates_of(&config, &config_path)?;
        let templates = match &replacement.template {
            Some(template) => given_templates(template)?,
            None => {
                let mut templates = match given {
                    Some(_) if !in_config.is_empty() => in_config,
                    _ => templates_of_folder(folder)?.unwrap_or(in_config),
                };
                add_named(folder, &mut templates)?;
                templates
            }
        };
        let map_path = folder.join("special_tokens_map.json");
        let mut special_tokens = special_tokens_of(&read_object(&map_path)?.unwrap_or_default(), &map_path)?;
        special_tokens.extend(special_tokens_of(&config, &config_path)?);
        Ok(Self { templates, special_tokens })
    }
}

fn missing(path: &Path) -> TemplateError {
    ModelConfigError::new(path, "the file does not exist").into()
}

/// The templates that were given by text or by file.
fn given_templates(given: &str) -> Result<Vec<(String, String)>, TemplateError> {
    if is_template_text(given) {
        return Ok(vec![(DEFAULT.to_owned(), given.to_owned())]);
    }
    let path = Path::new(given);
    if path.extension().is_none_or(|extension| extension != "json") {
        let text = read_text(path)?.ok_or_else(|| missing(path))?;
        return Ok(vec![(DEFAULT.to_owned(), text)]);
    }
    let templates = templates_of(&read_object(path)?.ok_or_else(|| missing(path))?, path)?;
    if templates.is_empty() {
        return Err(ModelConfigError::new(path, "it has no `chat_template`").into());
    }
    Ok(templates)
}

/// The templates in files of their own.
fn templates_of_folder(folder: &Path) -> Result<Option<Vec<(String, String)>>, TemplateError> {
    if let Some(text) = read_text(&folder.join("chat_template.jinja"))? {
        return Ok(Some(vec![(DEFAULT.to_owned(), text)]));
    }
    let path = folder.join("chat_template.json");
    let Some(object) = read_object(&path)? else { return Ok(None) };
    let templates = templates_of(&object, &path)?;
    Ok((!templates.is_empty()).then_some(templates))
}

/// The `chat_template` of a JSON file: one text, or a list of `{"name", "template"}`.
fn templates_of(object: &Map<String, Value>, path: &Path) -> Result<Vec<(String, String)>, TemplateError> {
    let wrong = || {
        let reason = "`chat_template` must be a text or a list of objects with the texts `name` and `template`";
        TemplateError::from(ModelConfigError::new(path, reason))
    };
    match object.get("chat_template") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![(DEFAULT.to_owned(), text.clone())]),
        Some(Value::Array(entries)) => entries
            .iter()
            .map(|entry| match (&entry["name"], &entry["template"]) {
                (Value::String(name), Value::String(text)) => Ok((name.clone(), text.clone())),
                _ => Err(wrong()),
            })
            .collect(),
        Some(_) => Err(wrong()),
    }
}

/// Adds the templates of `additional_chat_templates`, in the order of their names.
fn add_named(folder: &Path, templates: &mut Vec<(String, String)>) -> Result<(), TemplateError> {
    let folder = folder.join("additional_chat_templates");
    if !folder.is_dir() {
        return Ok(());
    }
    let unreadable = |error: std::io::Error| ModelConfigError::new(&folder, error.to_string());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jinja"));
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(text) = read_text(&path)? {
            templates.retain(|(other, _)| *other != name);
            templates.push((name, text));
        }
    }
    Ok(())
}

/// The special tokens of a JSON file, texts or objects with the text `content`: the usual ones, and those that only this
/// model has (`image_token`, or the entries of `extra_special_tokens`).
fn special_tokens_of(object: &Map<String, Value>, path: &Path) -> Result<Map<String, Value>, TemplateError> {
    let mut tokens = Map::new();
    let extra = object.get("extra_special_tokens").and_then(Value::as_object);
    for (name, value) in extra.into_iter().flatten().chain(object) {
        let token = value.get("content").unwrap_or(value);
        if token.is_string() && (name.ends_with("_token") || extra.is_some_and(|extra| extra.contains_key(name))) {
            tokens.insert(name.clone(), token.clone());
        } else if SPECIAL_TOKENS.contains(&name.as_str()) && !value.is_null() {
            let reason = format!("`{name}` must be a text or an object with the text `content`");
            return Err(ModelConfigError::new(path, reason).into());
        }
    }
    Ok(tokens)
}
