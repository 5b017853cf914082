//! A refused or failed request on its way to the client. It is framed as TGI does; the OpenAI routes frame it anew.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Error;

/// When an overloaded server may be asked again, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// What went wrong, free of any API's frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The status on TGI's routes.
    pub status: StatusCode,
    /// TGI's `error_type`.
    pub error_type: &'static str,
    /// For people: what happened and what to do.
    pub message: String,
    /// The field at fault, as a path into the body.
    pub field: Option<String>,
}

/// TGI's error body.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorResponse)]
pub struct TgiError<'a> {
    /// What happened.
    #[schema(example = "Input validation error: `inputs` cannot be empty")]
    pub error: &'a str,
    /// Its kind.
    #[schema(example = "validation")]
    pub error_type: &'a str,
}

// === impl Problem ===

impl Problem {
    /// A body that is not what the route expects.
    pub fn malformed(status: StatusCode, message: impl Into<String>, field: Option<String>) -> Self {
        Self { status, error_type: "validation", message: message.into(), field }
    }

    /// The same problem of a part of the body; `place` is the path of that part.
    pub fn inside(mut self, place: String) -> Self {
        self.field = Some(match self.field {
            Some(field) => format!("{place}.{field}"),
            None => place.clone(),
        });
        self.message = format!("{} (in `{place}`)", self.message);
        self
    }

    /// The body in TGI's frame.
    pub fn as_tgi(&self) -> TgiError<'_> {
        TgiError { error: &self.message, error_type: self.error_type }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self {
            status: StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            error_type: error.error_type(),
            message: error.to_string(),
            field: error.field().map(str::to_owned),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.as_tgi())).into_response();
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response.extensions_mut().insert(self);
        response
    }
}
