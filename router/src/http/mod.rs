//! The HTTP front end: assembly of routes and middleware, strict JSON in, TGI and OpenAI projections of the event
//! stream out. Knows the wire formats; asks `queue` for generations and knows nothing of how they come about.

mod collect;
mod extract;
mod headers;
mod introspect;
mod json;
mod listener;
mod middleware;
mod openapi;
mod parameters;
mod problem;
mod router;
mod routes;
mod screen;
mod sse;
mod state;

pub use listener::FrameListener;
pub use openapi::schema as openapi_schema;
pub use parameters::page as parameters_page;
pub use router::router;
pub use state::{HttpConfig, ModelCard, Readiness, Server, Serving};

#[cfg(test)]
mod tests;
