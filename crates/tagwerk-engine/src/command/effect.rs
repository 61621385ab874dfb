//! What workers say about the effects of a job.

use std::sync::Arc;

/// See [`tagwerk_core::EffectCall`]; the random key is the engine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectSaid {
    /// It is about to be done.
    Begin {
        /// The key that the worker wants for it, if any.
        key: Option<Arc<str>>,
    },
    /// It happened.
    Finish {
        /// JSON text of the result.
        result: Option<Arc<str>>,
    },
    /// It certainly did not happen.
    Abort,
}
