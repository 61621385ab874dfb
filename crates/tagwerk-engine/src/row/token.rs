//! API tokens as they are kept: never the token itself.

use std::collections::BTreeSet;

use tagwerk_core::Timestamp;
use tagwerk_core::access::{Reach, Scope};
use tagwerk_core::rate::Rate;

/// Hash of an API token.
///
/// A token has 256 random bits, so a plain cryptographic hash is enough: nobody can try all tokens, and what is random needs
/// neither salt nor a slow hash, which exist for passwords that people think up.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hash of this token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(*blake3::hash(token.as_bytes()).as_bytes())
    }

    /// As it is kept.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// To be kept.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// In constant time: how much of it fits shows in no time that a caller could measure.
impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        subtle::ConstantTimeEq::ct_eq(&self.0[..], &other.0[..]).into()
    }
}

impl Eq for TokenHash {}

impl std::fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// An API token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its name, unique; shown wherever its holder did something.
    pub name: String,
    /// What it is known by.
    pub hash: TokenHash,
    /// What its holder may do.
    pub scopes: BTreeSet<Scope>,
    /// With which jobs.
    pub reach: Reach,
    /// So many requests with it within so long. `None`: as the server's settings say.
    pub rate: Option<Rate>,
    /// From then on it is worth nothing.
    pub expires_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to a minute or so.
    pub last_used_at: Option<Timestamp>,
}
