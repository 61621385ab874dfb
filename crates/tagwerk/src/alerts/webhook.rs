//! `alerts.webhook`: the message as a signed POST, in the form of Standard Webhooks.
//!
//! `webhook-signature` is `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body` with the bytes of the secret. The time is
//! that of the try, so that a receiver can refuse old ones; the id is the same at each try, so that it can tell repetitions.

use std::fmt;

use axum::body::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use ring::hmac;
use tagwerk_core::Timestamp;

use super::message::Message;
use super::outgoing::{CallError, Net, Outgoing};
use super::target::Target;
use super::tell::Failed;

/// How a secret begins.
const PREFIX: &str = "whsec_";
/// Bytes of a secret, as Standard Webhooks says.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// What messages are signed with. It is shown nowhere.
#[derive(Clone)]
pub(crate) struct Secret(hmac::Key);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl Secret {
    /// Reads one; the error does not repeat it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let wrong = "must be whsec_ and the base64 of 24 to 64 random bytes; `echo whsec_$(openssl rand -base64 32)` makes one";
        let bytes = text.strip_prefix(PREFIX).and_then(|rest| STANDARD.decode(rest).ok());
        let bytes = bytes.filter(|bytes| SECRET_BYTES.contains(&bytes.len())).ok_or(wrong)?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The signature of a message at a time, in seconds.
    fn sign(&self, message: &Message, seconds: i64) -> String {
        let signed = format!("{}.{seconds}.{}", message.id, message.body);
        format!("v1,{}", STANDARD.encode(hmac::sign(&self.0, signed.as_bytes())))
    }
}

/// One try.
pub(super) async fn send(
    (outgoing, to): (&Outgoing<impl Net>, &Target),
    secret: &Secret,
    (message, now): (&Message, Timestamp),
) -> Result<(), Failed> {
    let seconds = now.as_millis().div_euclid(1_000);
    let request = Request::builder()
        .method(Method::POST)
        .header(CONTENT_TYPE, "application/json")
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", seconds)
        .header("webhook-signature", secret.sign(message, seconds))
        .body(Full::new(Bytes::from(message.body.clone())))
        .map_err(|error| Failed::for_good(error.to_string()))?;
    outgoing.call(to, request).await.map_err(|error| failed(to, error))
}

fn failed(to: &Target, error: CallError) -> Failed {
    match error {
        CallError::Refused(why) => Failed::for_good(why),
        CallError::Status(status) if status.is_redirection() => Failed::for_good(format!(
            "{to} answered {status}; redirects are not followed, name the address itself"
        )),
        CallError::Status(StatusCode::GONE) => Failed::for_good(format!("{to} wants no more messages (410)")),
        CallError::Status(status) => Failed::again(format!("{to} answered {status}")),
        CallError::NoAnswer(why) => Failed::again(format!("{to}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification of Standard Webhooks, with what its reference library says.
    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        let secret = Secret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let message = Message {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
            body: r#"{"test": 2432232314}"#.to_owned(),
        };
        assert_eq!(secret.sign(&message, 1_614_265_330), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "Secret(***)");
    }

    #[test]
    fn a_secret_that_is_none_is_refused_without_repeating_it() {
        let of = |n: usize| format!("whsec_{}", STANDARD.encode(vec![7; n]));
        assert!(Secret::read(&of(24)).is_ok() && Secret::read(&of(64)).is_ok());
        for text in ["", "geheim", "whsec_", "whsec_geheim!", &of(23), &of(65)] {
            let error = Secret::read(text).unwrap_err();
            assert!(error.starts_with("must be whsec_") && !error.contains("geheim"), "{error}");
        }
    }
}
