//! Reading the small text files of a model folder, with errors that name the file and the place. Knows nothing of
//! what is in them.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::{Map, Value};

use super::ModelConfigError;

/// The contents of a file; `None` when it does not exist.
///
/// # Errors
/// When the file is there but cannot be read as UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ModelConfigError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ModelConfigError::new(path, error.to_string())),
    }
}

/// The JSON object in a file; `None` when the file does not exist.
///
/// # Errors
/// When the file cannot be read, or is not a JSON object (with line and column).
pub(crate) fn read_object(path: &Path) -> Result<Option<Map<String, Value>>, ModelConfigError> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    match serde_json::from_str(&text) {
        Ok(object) => Ok(Some(object)),
        Err(error) => Err(ModelConfigError::new(path, format!("this is not the JSON object it should be: {error}"))),
    }
}
