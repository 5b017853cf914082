//! The one error type of the router, by cause. Each cause fixes an HTTP status, TGI's `error_type` and the message;
//! how an API frames them is the business of `http`.

use std::sync::Arc;

/// Why a request was not (or not wholly) served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No free place: more than `max_concurrent_requests` are in the server.
    #[error("Model is overloaded")]
    Overloaded,
    /// The request asks for something out of bounds. The text names the field, the bound and the reason.
    #[error("Input validation error: {message}")]
    Invalid {
        /// The offending field, as the client spells it.
        field: &'static str,
        /// What is wrong, with the bound.
        message: Arc<str>,
    },
    /// The request asks for something that this server does not do. The text names it.
    #[error("Input validation error: {message}")]
    Unsupported {
        /// The offending field, as the client spells it.
        field: &'static str,
        /// What is not supported, and what to do instead.
        message: Arc<str>,
    },
    /// The chat template is missing, broken, or raised an exception.
    #[error("Template error: {0}")]
    Template(Arc<str>),
    /// The model is not being served yet; the text says why.
    #[error("not ready: {0}")]
    NotReady(Arc<str>),
    /// A shard failed while the request was running.
    #[error("Request failed during generation: {0}")]
    Shard(Arc<str>),
    /// The stream of tokens ended without a last one.
    #[error("Incomplete generation")]
    Incomplete,
    /// A defect of the router.
    #[error("Internal error: {0}")]
    Internal(Arc<str>),
}

// === impl Error ===

impl Error {
    /// An `Invalid` error of one field.
    pub fn invalid(field: &'static str, message: impl Into<Arc<str>>) -> Self {
        Self::Invalid { field, message: message.into() }
    }

    /// An `Unsupported` error of one field.
    pub fn unsupported(field: &'static str, message: impl Into<Arc<str>>) -> Self {
        Self::Unsupported { field, message: message.into() }
    }

    /// The HTTP status of TGI's own routes.
    pub fn status(&self) -> u16 {
        match self {
            Self::Overloaded => 429,
            Self::Invalid { .. } | Self::Unsupported { .. } | Self::Template(_) => 422,
            Self::NotReady(_) => 503,
            Self::Shard(_) => 424,
            Self::Incomplete | Self::Internal(_) => 500,
        }
    }

    /// TGI's `error_type`.
    pub fn error_type(&self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::Invalid { .. } | Self::Unsupported { .. } => "validation",
            Self::Template(_) => "template_error",
            Self::NotReady(_) => "healthcheck",
            Self::Shard(_) => "generation",
            Self::Incomplete => "incomplete_generation",
            Self::Internal(_) => "internal",
        }
    }

    /// The field at fault, when the client can mend it.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::Invalid { field, .. } | Self::Unsupported { field, .. } => Some(field),
            _ => None,
        }
    }
}
