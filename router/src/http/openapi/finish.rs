//! What the types alone do not say, added to the generated document: every optional field of a body may be null, a body
//! that is put together from two types is one closed object, unsigned numbers have their own bounds, and a stream is a
//! row of events. Knows JSON Schema and no route.

use serde_json::{Map, Value, json};

/// Where the document keeps its schemas.
const SCHEMAS: &str = "/components/schemas";
const REFERENCE: &str = "#/components/schemas/";

/// Finishes a document.
pub fn finish(document: &mut Value) {
    walk(document);
    let Some(schemas) = document.pointer_mut(SCHEMAS).and_then(Value::as_object_mut) else { return };
    let plain = schemas.clone();
    for schema in schemas.values_mut() {
        if let Some(merged) = merged(schema, &plain) {
            *schema = merged;
        }
        if is_closed(schema) {
            let required = schema["required"].clone();
            let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
            for (name, property) in properties.into_iter().flatten() {
                if !required.as_array().is_some_and(|names| names.iter().any(|given| given == name)) {
                    allow_null(property);
                }
            }
        }
    }
}

/// Visits every schema and every media type of the document.
fn walk(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(walk),
        Value::Object(members) => {
            bound(members);
            if let Some(stream) = members.get_mut("text/event-stream") {
                *stream = json!({"schema": {
                    "type": "object", "description": "A server-sent event.", "required": ["data"],
                    "properties": {"data": {"type": "string", "description": "JSON, or `[DONE]` at the end"}},
                }});
            }
            members.values_mut().for_each(walk);
        }
        _ => {}
    }
}

/// The formats of signed numbers stand at unsigned ones too, whose bound is higher.
fn bound(schema: &mut Map<String, Value>) {
    if schema.get("minimum").and_then(Value::as_f64) != Some(0.0) || schema.contains_key("maximum") {
        return;
    }
    let most = match schema.get("format").and_then(Value::as_str) {
        Some("int32") => u64::from(u32::MAX),
        Some("int64") => u64::MAX,
        _ => return,
    };
    schema.shift_remove("format");
    schema.insert("maximum".into(), most.into());
}

/// Only request bodies are closed: their readers refuse unknown fields.
fn is_closed(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

/// One object of several closed ones. As `allOf` no object could satisfy them: each refuses the fields of the others.
fn merged(schema: &Value, schemas: &Map<String, Value>) -> Option<Value> {
    let parts = schema.get("allOf")?.as_array()?;
    let resolve = |part: &Value| schemas.get(part.get("$ref")?.as_str()?.strip_prefix(REFERENCE)?).cloned();
    let parts = parts.iter().map(resolve).collect::<Option<Vec<_>>>()?;
    if !parts.iter().all(is_closed) {
        return None;
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts {
        properties.extend(part.get("properties").and_then(Value::as_object).cloned().unwrap_or_default());
        required.extend(part.get("required").and_then(Value::as_array).cloned().unwrap_or_default());
    }
    let mut whole = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        whole["required"] = Value::Array(required);
    }
    if let Some(description) = schema.get("description") {
        whole["description"] = description.clone();
    }
    Some(whole)
}

fn allow_null(property: &mut Value) {
    let null = json!({"type": "null"});
    if let Some(kind) = property.get_mut("type") {
        let mut kinds = kind.as_array().cloned().unwrap_or_else(|| vec![kind.clone()]);
        if !kinds.contains(&null["type"]) {
            kinds.push(null["type"].clone());
        }
        *kind = Value::Array(kinds);
    } else if let Some(choices) = property.get_mut("oneOf").and_then(Value::as_array_mut) {
        if !choices.contains(&null) {
            choices.push(null);
        }
    } else if property.get("$ref").is_some() {
        let choices = vec![property.take(), null];
        *property = json!({ "oneOf": choices });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_numbers_and_streams_are_described() {
        let mut document = json!({
            "a": [{"type": "integer", "format": "int32", "minimum": 0}, {"type": "integer", "format": "int32"}],
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        });
        finish(&mut document);
        let unsigned = json!({"type": "integer", "minimum": 0, "maximum": u32::MAX});
        assert_eq!(document["a"], json!([unsigned, {"type": "integer", "format": "int32"}]));
        assert_eq!(document["content"]["text/event-stream"]["schema"]["required"], json!(["data"]));
    }

    #[test]
    fn closed_parts_become_one_object_whose_optional_fields_may_be_null() {
        let mut document = json!({"components": {"schemas": {
            "A": {"type": "object", "additionalProperties": false, "required": ["x"],
                  "properties": {"x": {"type": "string"}, "y": {"type": ["integer", "null"]}}},
            "B": {"type": "object", "additionalProperties": false, "properties": {"z": {"$ref": "#/components/schemas/C"}}},
            "C": {"type": "object", "properties": {"free": {"type": "boolean"}}},
            "Both": {"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]},
            "Open": {"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/C"}]},
        }}});
        let open = document["components"]["schemas"]["Open"].clone();
        finish(&mut document);
        let schemas = &document["components"]["schemas"];
        let expected = json!({"type": "object", "additionalProperties": false, "required": ["x"], "properties": {
            "x": {"type": "string"}, "y": {"type": ["integer", "null"]},
            "z": {"oneOf": [{"$ref": "#/components/schemas/C"}, {"type": "null"}]},
        }});
        assert_eq!(schemas["Both"], expected);
        assert_eq!(schemas["Open"], open);
        assert_eq!(schemas["C"]["properties"]["free"]["type"], "boolean");
    }
}
