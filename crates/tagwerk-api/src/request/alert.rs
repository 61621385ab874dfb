//! What people say about alerts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /alerts/{id}/ack`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AckRequest {
    /// What will be done, for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
