//! The routes that Vertex AI names at start (`AIP_PREDICT_ROUTE`, `AIP_HEALTH_ROUTE`): other paths to `/vertex` and
//! `/health`. They are looked up where no fixed route fits, so that any path is possible.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use tower::ServiceExt;

use super::vertex;
use crate::http::problem::Problem;
use crate::http::routes::server::health;
use crate::http::state::{HttpConfig, Server};

/// A path that cannot be an alias.
#[derive(Debug, thiserror::Error)]
#[error("`{flag} {path}` cannot be served: {reason}")]
pub struct AliasError {
    flag: &'static str,
    path: String,
    reason: &'static str,
}

/// Answers at the configured paths; 404 elsewhere.
pub async fn fallback(State(server): State<Server>, request: Request) -> Response {
    let path = request.uri().path();
    let config = server.config.clone();
    let (predict, health_check) =
        (config.predict_route.as_deref() == Some(path), config.health_route.as_deref() == Some(path));
    if !predict && !health_check {
        return StatusCode::NOT_FOUND.into_response();
    }
    let mut routes = MethodRouter::new();
    if predict {
        routes = routes.post(vertex);
    }
    if health_check {
        routes = routes.get(health);
    }
    let Ok(mut response) = routes.with_state(server).oneshot(request).await;
    // The body is in TGI's frame already, and stays so under `/v1/`, where Vertex AI's default paths are.
    response.extensions_mut().remove::<Problem>();
    response
}

/// Checks that each path can be reached: it is a path, and no fixed route hides it. `taken` tells which POST and GET
/// routes are fixed.
///
/// # Errors
/// Names the flag and its path.
pub fn check(config: &HttpConfig, taken: impl Fn(&str) -> bool) -> Result<(), AliasError> {
    let aliases = [
        ("--aip-predict-route", &config.predict_route, ["/vertex"].as_slice()),
        ("--aip-health-route", &config.health_route, ["/", "/health", "/ping"].as_slice()),
    ];
    for (flag, path, same) in aliases {
        let Some(path) = path else { continue };
        let refused = |reason| Err(AliasError { flag, path: path.clone(), reason });
        if !path.starts_with('/') || path.contains(['?', '#']) {
            return refused("it is not a path that begins with `/`");
        }
        if taken(path) && !same.contains(&path.as_str()) {
            return refused("another route of this server has that path");
        }
    }
    Ok(())
}
