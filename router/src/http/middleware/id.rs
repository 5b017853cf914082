//! Request ids: `x-request-id` is taken from the client or drawn here, and always answered.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use uuid::Uuid;

/// The header, both ways.
const HEADER: &str = "x-request-id";
/// Longer ids are replaced.
const MOST_CHARACTERS: usize = 128;

/// The name of a request, as an argument of a handler.
#[derive(Debug, Clone)]
pub struct RequestId(pub Arc<str>);

// === impl RequestId ===

impl RequestId {
    fn drawn() -> Self {
        Self(Uuid::new_v4().simple().to_string().into())
    }

    fn given(request: &Request) -> Option<Self> {
        let value = request.headers().get(HEADER)?.to_str().ok()?;
        let usable = !value.is_empty() && value.len() <= MOST_CHARACTERS && value.bytes().all(|b| b.is_ascii_graphic());
        usable.then(|| Self(value.into()))
    }
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(Self::drawn))
    }
}

/// Names a request, and puts the name on its answer.
pub async fn attach(mut request: Request, next: Next) -> Response {
    let id = RequestId::given(&request).unwrap_or_else(RequestId::drawn);
    let value = HeaderValue::from_str(&id.0);
    request.extensions_mut().insert(id);
    let mut response = next.run(request).await;
    if let Ok(value) = value {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
