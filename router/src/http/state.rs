//! What every handler can reach: the front end's settings, and whether the model is being served. Readiness is one
//! value, set by `app` and `drain` and read by each request.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use tokio::sync::watch;

use super::problem::Problem;
use crate::error::Error;
use crate::model::SamplingDefaults;
use crate::queue::Admission;
use crate::telemetry::Metrics;

/// Settings of the front end.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Bearer key that protects the generating routes.
    pub api_key: Option<String>,
    /// Origins that browsers may call from; empty = any.
    pub cors_allow_origin: Vec<String>,
    /// Largest request body, in bytes.
    pub payload_limit: usize,
    /// Value of the `x-compute-type` header.
    pub compute_type: String,
    /// Another path of `/vertex`.
    pub predict_route: Option<String>,
    /// Another path of `/health`.
    pub health_route: Option<String>,
}

/// The name under which the model is served.
#[derive(Debug, Clone)]
pub struct ModelCard {
    /// Shown by `/info` and `/v1/models`.
    pub id: String,
    /// The commit of the Hub revision.
    pub sha: Option<String>,
    /// The Hub's pipeline tag.
    pub pipeline_tag: Option<String>,
}

/// A model that is being served.
#[derive(Debug)]
pub struct Serving {
    /// The way to the engine.
    pub admission: Admission,
    /// Its name.
    pub model: ModelCard,
    /// What its makers recommend when a client does not say.
    pub defaults: SamplingDefaults,
    /// Its metrics.
    pub metrics: Arc<Metrics>,
}

/// Whether requests can be served.
#[derive(Debug, Clone)]
pub enum Readiness {
    /// Not yet; the text says what is being waited for.
    Starting(Arc<str>),
    /// Yes.
    Ready(Arc<Serving>),
    /// No longer: running requests end, new ones are refused.
    Draining(Arc<Serving>),
    /// No longer: the text says what broke.
    Failed(Arc<str>),
}

/// The state of the HTTP server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Server {
    /// Settings.
    pub config: Arc<HttpConfig>,
    readiness: watch::Receiver<Readiness>,
}

// === impl Server ===

impl Server {
    /// A server that follows this readiness.
    pub fn new(config: HttpConfig, readiness: watch::Receiver<Readiness>) -> Self {
        Self { config: Arc::new(config), readiness }
    }

    /// The readiness of this moment.
    pub fn readiness(&self) -> Readiness {
        self.readiness.borrow().clone()
    }

    /// The served model, if new requests are taken.
    ///
    /// # Errors
    /// `NotReady` with the reason.
    pub fn serving(&self) -> Result<Arc<Serving>, Error> {
        match &*self.readiness.borrow() {
            Readiness::Ready(serving) => Ok(serving.clone()),
            Readiness::Starting(reason) | Readiness::Failed(reason) => Err(Error::NotReady(reason.clone())),
            Readiness::Draining(_) => Err(Error::NotReady("the server is shutting down".into())),
        }
    }
}

/// The served model as an argument of a handler; a request that comes too early or too late is answered 503.
#[derive(Debug)]
pub struct Served(pub Arc<Serving>);

impl<S> FromRequestParts<S> for Served
where
    S: Send + Sync,
    Server: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(_parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(Server::from_ref(state).serving()?))
    }
}
