//! The API key. Every POST needs it: those routes do work. GET routes tell about the server and stay open, as in TGI.

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::problem::Problem;
use crate::http::routes::openai;
use crate::http::state::Server;

/// Lets a request pass when it needs no key or carries the right one.
pub async fn check(State(server): State<Server>, request: Request, next: Next) -> Response {
    let Some(key) = server.config.api_key.as_deref() else { return next.run(request).await };
    if request.method() != Method::POST || carries(&request, key) {
        return next.run(request).await;
    }
    if !openai::owns(request.uri().path()) {
        // TGI's answer has no body.
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let message = "a valid API key is needed: `Authorization: Bearer KEY`";
    Problem { error_type: "authentication", ..Problem::malformed(StatusCode::UNAUTHORIZED, message, None) }
        .into_response()
}

fn carries(request: &Request, key: &str) -> bool {
    let Some(value) = request.headers().get(header::AUTHORIZATION) else { return false };
    let Some((scheme, given)) = value.as_bytes().split_at_checked("Bearer ".len()) else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && equal(given, key.as_bytes())
}

/// Compares without telling by its duration how much was right.
fn equal(given: &[u8], key: &[u8]) -> bool {
    let differing = given.iter().zip(key).fold(0, |differing, (a, b)| differing | (a ^ b));
    given.len() == key.len() && std::hint::black_box(differing) == 0
}
