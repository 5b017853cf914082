//! Request bodies: JSON under a size limit, exactly the fields of the route. Whatever is not understood is refused with
//! the field's name. Which fields do nothing is the business of `screen`.

use std::fmt;

use axum::body::Body;
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde::de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use utoipa::PartialSchema;

use super::json;
use super::problem::Problem;
pub use super::screen::screen;
use super::state::Server;
use crate::error::Error;
use crate::text::LARGE_TEXT;

/// Bytes of a refused body that are read and thrown away, so that the client gets to see the answer.
const MOST_DISCARDED: usize = 64 << 20;

/// A request body of one route.
pub trait RequestBody: Sized + Send + 'static {
    /// Reads the fields of the body. Those that ask for nothing are dropped (`screen`), those that ask for something
    /// that does not exist are refused, as is everything unknown (`typed`).
    ///
    /// # Errors
    /// A `Problem` that names the field.
    fn read(fields: Map<String, Value>) -> Result<Self, Problem>;
}

/// A checked request body.
#[derive(Debug)]
pub struct StrictJson<T>(pub T);

/// A nested object. A derived structure would also take an array of its fields in order; this does not.
#[derive(Debug, Clone, Default)]
pub struct Object<T>(pub T);

// === impl StrictJson ===

impl<S, T> FromRequest<S> for StrictJson<T>
where
    S: Send + Sync,
    Server: FromRef<S>,
    T: RequestBody,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let limit = Server::from_ref(state).config.payload_limit;
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            let message = "the request needs the header `Content-Type: application/json`";
            return Err(Problem::malformed(StatusCode::UNSUPPORTED_MEDIA_TYPE, message, None));
        }
        let bytes = read(body, limit).await?;
        if bytes.len() <= LARGE_TEXT {
            return parse_body(&bytes).map(Self);
        }
        let parsed = tokio::task::spawn_blocking(move || parse_body(&bytes)).await;
        parsed.map_err(|error| Error::Internal(error.to_string().into()))?.map(Self)
    }
}

/// Reads a typed body from its bytes.
///
/// # Errors
/// A `Problem` of status 400 for broken JSON, 422 for JSON of another shape.
pub fn parse_body<T: RequestBody>(bytes: &[u8]) -> Result<T, Problem> {
    let value = json::parse(bytes).map_err(|error| {
        let status = if error.is_data() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::BAD_REQUEST };
        Problem::malformed(status, format!("Input validation error: the body is not valid JSON: {error}"), None)
    })?;
    match value {
        Value::Object(fields) => T::read(fields),
        _ => Err(unfit("the body must be a JSON object".into(), None)),
    }
}

/// Fits fields to a type.
///
/// # Errors
/// A `Problem` of status 422 with the path of the field at fault.
pub fn typed<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, Problem> {
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner();
        let field = field_of(&path, &reason.to_string());
        let place = if path == "." { String::new() } else { format!("`{path}`: ") };
        unfit(format!("{place}{reason}"), field)
    })
}

/// A body whose JSON is of another shape than the route takes.
pub fn unfit(message: String, field: Option<String>) -> Problem {
    let message = format!("Input validation error: {message}");
    Problem::malformed(StatusCode::UNPROCESSABLE_ENTITY, message, field)
}

/// The field at fault: the path, or the name that serde quotes when a field is missing or unknown at the top.
fn field_of(path: &str, reason: &str) -> Option<String> {
    if path != "." {
        return Some(path.to_owned());
    }
    reason.split('`').nth(1).map(str::to_owned)
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some(subtype) = essence.strip_prefix("application/") else { return false };
    subtype == "json" || subtype.ends_with("+json")
}

async fn read(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let mut frames = body.into_data_stream();
    let mut bytes = BytesMut::new();
    let mut total = 0_usize;
    while let Some(frame) = frames.next().await {
        let frame = frame.map_err(|error| {
            Problem::malformed(StatusCode::BAD_REQUEST, format!("the body could not be read: {error}"), None)
        })?;
        total += frame.len();
        if total <= limit {
            bytes.extend_from_slice(&frame);
        } else {
            // What was read is of no use: the memory goes back at once.
            bytes = BytesMut::new();
            if total > MOST_DISCARDED {
                break;
            }
        }
    }
    if total > limit {
        let message = format!("the body must have at most {limit} bytes (`--payload-limit`)");
        return Err(Problem::malformed(StatusCode::PAYLOAD_TOO_LARGE, message, None));
    }
    Ok(bytes.freeze())
}

// === impl Object ===

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapOnly<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for MapOnly<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_any(MapOnly(std::marker::PhantomData)).map(Self)
    }
}

impl<T: PartialSchema> PartialSchema for Object<T> {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        T::schema()
    }
}
