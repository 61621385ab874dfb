//! Lease tokens: a keyed hash of the job's id and the lease's random bits. Rows hold the bits, workers the hash; the key
//! is a secret of the store. So a copy of the database gives nobody a valid token, and a repeated claim can be given the
//! same token again, also by another node.

use subtle::ConstantTimeEq;
use tagwerk_core::{ErrorClass, JobId, LeaseBits, Outcome, ReportHash};

/// Bytes of the hash that make up a token: 128 bits cannot be guessed.
const TOKEN_BYTES: usize = 16;

/// Makes and checks lease tokens.
#[derive(Clone)]
pub(crate) struct Tokens {
    secret: [u8; 32],
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens(…)")
    }
}

impl Tokens {
    /// Tokens of the store with this secret.
    #[must_use]
    pub(crate) const fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    /// The token for a lease.
    #[must_use]
    pub(crate) fn token(&self, id: JobId, bits: LeaseBits) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(&id.0.to_le_bytes());
        hasher.update(&bits.0.to_le_bytes());
        let hex = hasher.finalize().to_hex();
        hex.get(..2 * TOKEN_BYTES).unwrap_or_default().to_owned()
    }

    /// Whether `token` is the one for this lease, compared in constant time.
    #[must_use]
    pub(crate) fn matches(&self, token: &str, id: JobId, bits: LeaseBits) -> bool {
        self.token(id, bits).as_bytes().ct_eq(token.as_bytes()).into()
    }
}

/// Hash over what a report says, so that a repetition can be told from a contradiction: outcome, class and result. The
/// error text is left out: a worker that reports again may word it differently.
#[must_use]
pub(crate) fn report_hash(outcome: &Outcome, result: Option<&str>) -> ReportHash {
    let name: &[u8] = match outcome {
        Outcome::Completed => b"completed",
        Outcome::Failed { class: ErrorClass::Transient, .. } => b"failed transient",
        Outcome::Failed { class: ErrorClass::Permanent, .. } => b"failed permanent",
        Outcome::Failed { class: ErrorClass::Unknown, .. } => b"failed unknown",
        Outcome::Released { .. } => b"released",
    };
    let mut fields = Fields::default();
    fields.put(Some(name));
    fields.put(result.map(str::as_bytes));
    ReportHash(fields.finish())
}

/// The same for a `complete` with jobs that it leads to, as they were sent.
#[must_use]
pub(crate) fn lead_hash(result: Option<&str>, enqueue: &str) -> ReportHash {
    let mut fields = Fields::default();
    fields.put(Some(b"completed"));
    fields.put(result.map(str::as_bytes));
    fields.put(Some(enqueue.as_bytes()));
    ReportHash(fields.finish())
}

/// Hash over a list of optional fields, such that no two different lists collide by concatenation.
#[derive(Default)]
pub(crate) struct Fields(blake3::Hasher);

impl Fields {
    pub(crate) fn put(&mut self, field: Option<&[u8]>) {
        match field {
            None => self.0.update(&[0]),
            Some(bytes) => self.0.update(&[1]).update(&(bytes.len() as u64).to_le_bytes()).update(bytes),
        };
    }

    pub(crate) fn finish(&self) -> [u8; 16] {
        let mut short = [0; 16];
        short.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_its_job_its_bits_and_its_store_only() {
        let tokens = Tokens::new([7; 32]);
        let token = tokens.token(JobId(1), LeaseBits(2));
        assert_eq!(token.len(), 32);
        assert!(tokens.matches(&token, JobId(1), LeaseBits(2)));
        assert!(!tokens.matches(&token, JobId(2), LeaseBits(2)));
        assert!(!tokens.matches(&token, JobId(1), LeaseBits(3)));
        assert!(!Tokens::new([8; 32]).matches(&token, JobId(1), LeaseBits(2)));
        assert!(!tokens.matches("", JobId(1), LeaseBits(2)));
    }

    #[test]
    fn the_hash_of_a_report_tells_outcome_class_and_result() {
        let fail = |class| Outcome::Failed { class, error: Some("x".into()), retry_after_ms: None };
        let all = [
            report_hash(&Outcome::Completed, None),
            report_hash(&Outcome::Completed, Some("")),
            report_hash(&Outcome::Completed, Some("null")),
            report_hash(&fail(ErrorClass::Transient), None),
            report_hash(&fail(ErrorClass::Permanent), None),
            report_hash(&fail(ErrorClass::Unknown), None),
            report_hash(&Outcome::Released { delay_ms: 0, reason: None }, None),
            lead_hash(None, "[]"),
            lead_hash(Some("[]"), "[]"),
            lead_hash(None, "[{}]"),
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a == b, i == j);
            }
        }
        let other = Outcome::Failed { class: ErrorClass::Transient, error: None, retry_after_ms: Some(1) };
        assert_eq!(report_hash(&other, None), report_hash(&fail(ErrorClass::Transient), None));
    }
}
