//! Configuration files.
//!
//! Holds: no text makes the reader panic; what is refused is refused with a reason; what is accepted keeps the limits;
//! what `tagwerk config` prints of it is a file that means the same.

use tagwerk_core::limits;

use super::server::{Config, ConfigArgs};

/// The property.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let config = match load(text) {
        Ok(config) => config,
        Err(refusal) => {
            assert!(refusal.starts_with("the configuration is not usable\n"), "{refusal}");
            return;
        }
    };
    let engine = &config.engine;
    assert!((limits::MAX_RETRIES.min..=limits::MAX_RETRIES.max).contains(&engine.max_retries));
    assert!((limits::MAX_LEASE_LOSSES.min..=limits::MAX_LEASE_LOSSES.max).contains(&engine.max_lease_losses));
    assert!((limits::LEASE_MS.min..=limits::LEASE_MS.max).contains(&engine.lease_ms));
    assert!((limits::TTL_MS.min..=limits::TTL_MS.max).contains(&engine.ttl_ms));
    for delay in [engine.retry.base_ms, engine.retry.cap_ms] {
        assert!((limits::RETRY_DELAY_MS.min..=limits::RETRY_DELAY_MS.max).contains(&delay));
    }
    assert!((limits::RETRY_FACTOR_MIN..=limits::RETRY_FACTOR_MAX).contains(&engine.retry.factor));
    let payload = i64::try_from(config.payload_max_bytes).unwrap();
    let range = limits::PAYLOAD_MAX_BYTES_RANGE;
    assert!((range.min..=range.max).contains(&payload));
    let printed = values(&config);
    let again = load(&printed).unwrap_or_else(|refusal| panic!("{printed}\n{refusal}"));
    assert_eq!(values(&again), printed);
}

/// What is printed, without the remarks on where the values came from.
fn values(config: &Config) -> String {
    let shown = config.show();
    let lines = shown.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once("  # ").map_or(line, |(value, _)| value).to_owned() + "\n").collect()
}

/// Loads a file with this text, which is where the server reads it too.
fn load(text: &str) -> Result<Config, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let args = ConfigArgs { config: Some(file.path().to_owned()), ..ConfigArgs::default() };
    Config::load(&args, &[]).map_err(|error| error.to_string())
}
