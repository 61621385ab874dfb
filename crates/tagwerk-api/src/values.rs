//! Values that need more care on the wire than their type says: JSON kept byte for byte, lease tokens, durations.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::decimal::scaled;

/// Any JSON value, kept byte for byte: big integers, key order, duplicate keys and white space inside survive.
/// Its `Debug` shows the size only, so that no payload reaches a log by accident.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Checks that `text` is one JSON value and keeps it as it is, without white space around it.
    pub fn from_text(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self)
    }

    /// `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(Box::default())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The text, without copying it.
    #[must_use]
    pub fn into_text(self) -> String {
        Box::<str>::from(self.0).into_string()
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        // A `Value` always prints as JSON, so the default (`null`) is never taken.
        Self(RawValue::from_string(value.to_string()).unwrap_or_default())
    }
}

impl PartialEq for Json {
    /// Byte equality, no canonical form.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json(… {} bytes)", self.as_str().len())
    }
}

impl PartialSchema for Json {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description(Some("Any JSON value, kept and returned byte for byte."))
            .into()
    }
}

impl ToSchema for Json {}

/// The token of a lease. Whoever has it can report for the job, so its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseToken(pub String);

impl LeaseToken {
    /// The token's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseToken(…)")
    }
}

impl PartialSchema for LeaseToken {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "Token of the lease, from the claim answer. Secret: it allows reports for the job.",
            ))
            .into()
    }
}

impl ToSchema for LeaseToken {}

/// A length of time: milliseconds inside, seconds outside. Whole seconds are written without a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(i64);

impl Seconds {
    /// The length of `ms` milliseconds.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// The length in milliseconds.
    #[must_use]
    pub const fn ms(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, ms) = (self.0.unsigned_abs() / 1000, self.0.unsigned_abs() % 1000);
        let text = format!("{sign}{whole}.{ms:03}");
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 % 1000 == 0 {
            return serializer.serialize_i64(self.0 / 1000);
        }
        // The shortest text of the nearest float is the decimal itself for every length below 285,000 years.
        let nearest: f64 = self.to_string().parse().map_err(serde::ser::Error::custom)?;
        serializer.serialize_f64(nearest)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let ms = scaled(&number.to_string(), 3)
            .ok_or_else(|| serde::de::Error::custom("not a number of seconds"))?;
        Ok(Self(ms.value))
    }
}

impl PartialSchema for Seconds {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Number)
            .description(Some("Seconds; fractions down to a millisecond are allowed."))
            .examples([90])
            .into()
    }
}

impl ToSchema for Seconds {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_every_byte() {
        let text = r#"{"id":899999999999999990,"x":1.10, "e":1E400,"a":1,"a":"\u0000\ud800"}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(json.as_str(), text);
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        assert_eq!(Json::from_text(text.to_owned()).unwrap(), json);
        assert_eq!(json.into_text(), text);
        assert!(Json::from_text("{} {}".to_owned()).is_err());
    }

    #[test]
    fn payloads_and_tokens_do_not_show_in_debug() {
        let json = Json::from_text("\"SECRET\"".to_owned()).unwrap();
        assert_eq!(format!("{json:?}"), "Json(… 8 bytes)");
        assert_eq!(format!("{:?}", LeaseToken("SECRET".to_owned())), "LeaseToken(…)");
    }

    #[test]
    fn seconds_on_the_wire() {
        for (ms, text) in [
            (0, "0"),
            (300_000, "300"),
            (2500, "2.5"),
            (1, "0.001"),
            (100, "0.1"),
            (-1500, "-1.5"),
            (315_360_000_123, "315360000.123"),
            (i64::MAX / 1000 * 1000, "9223372036854775"),
        ] {
            assert_eq!(serde_json::to_string(&Seconds::from_ms(ms)).unwrap(), text);
            assert_eq!(serde_json::from_str::<Seconds>(text).unwrap(), Seconds::from_ms(ms));
            assert_eq!(Seconds::from_ms(ms).to_string(), text);
        }
        assert_eq!(serde_json::from_str::<Seconds>("1e3").unwrap(), Seconds::from_ms(1_000_000));
        assert!(serde_json::from_str::<Seconds>("\"5s\"").is_err());
    }
}
