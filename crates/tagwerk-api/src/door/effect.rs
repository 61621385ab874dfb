//! Reads what workers say about effects.

use super::reader::{JsonRule, Reader, Unknown};
use super::text::{Alphabet, TextRule};
use super::worker::holder;
use super::{Door, DoorLimits, EffectBegin, EffectFinish, Holder};
use crate::problem::{FieldCode, Refusal};
use crate::request::Assumed;

impl Door {
    /// `{effect}` of a path, decoded.
    pub fn effect_name<'a>(&self, text: &'a str) -> Result<&'a str, Refusal> {
        self.limits
            .effect_rule()
            .check(text)
            .map_err(|(code, message)| Refusal::field("effect", code, message))?;
        Ok(text)
    }

    /// `POST /jobs/{id}/effects/{effect}/begin`
    pub fn effect_begin(&self, body: &[u8]) -> Result<EffectBegin, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let begin =
            EffectBegin { holder: holder(&mut reader), key: reader.text("key", self.limits.key_rule()) };
        reader.finish().map(|_| begin)
    }

    /// `POST /jobs/{id}/effects/{effect}/finish`
    pub fn effect_finish(&self, body: &[u8]) -> Result<EffectFinish, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let rule = JsonRule {
            max_bytes: self.limits.result_max_bytes,
            max_depth: self.limits.payload_max_depth,
            too_large: FieldCode::ResultTooLarge,
        };
        let finish = EffectFinish { holder: holder(&mut reader), result: reader.json("result", rule) };
        reader.finish().map(|_| finish)
    }

    /// `POST /jobs/{id}/effects/{effect}/abort`
    pub fn effect_abort(&self, body: &[u8]) -> Result<Holder, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let holder = holder(&mut reader);
        reader.finish().map(|_| holder)
    }
}

impl Door {
    /// `assume` of a retry: one word for all effects, or an object with one for each that is named.
    pub(super) fn assumed(&self, reader: &mut Reader<'_>) -> Option<Assumed> {
        const SHAPE: &str =
            "must be done or not_done, or an object that says one of them of each effect that it names";
        let raw = reader.raw("assume")?.get();
        let Ok(assumed) = serde_json::from_str::<Assumed>(raw) else {
            reader.fail("assume", FieldCode::WrongType, SHAPE);
            return None;
        };
        if let Assumed::Named(known) = &assumed {
            if known.is_empty() {
                reader.fail(
                    "assume",
                    FieldCode::Empty,
                    "names no effect; leave it out, or say done or not_done",
                );
            }
            if known.len() > self.limits.effects_per_job {
                let message = format!(
                    "names {} effects; a job has at most {}",
                    known.len(),
                    self.limits.effects_per_job
                );
                reader.fail("assume", FieldCode::TooMany, message);
            }
            let unfit = known.keys().find_map(|name| self.limits.effect_rule().check(name).err());
            if let Some((code, message)) = unfit {
                reader.fail("assume", code, format!("the name of an effect {message}"));
            }
        }
        Some(assumed)
    }
}

impl DoorLimits {
    /// Name of an effect.
    pub(crate) const fn effect_rule(&self) -> TextRule {
        TextRule::new(Alphabet::Lower, self.effect_name_max_bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::Assume;
    use crate::door::tests::door;
    use crate::problem::Code;
    use crate::request::Assumed;

    #[test]
    fn names_of_effects() {
        let longest = "a".repeat(64);
        for good in ["create-shipment", "a", ".", "9_", "-x.1", &longest] {
            assert_eq!(door().effect_name(good), Ok(good));
        }
        let longer = "a".repeat(65);
        for (bad, code) in
            [("", "empty"), ("A", "bad-name"), ("a/b", "bad-name"), ("ü", "bad-name"), (&longer, "too-long")]
        {
            let refusal = door().effect_name(bad).unwrap_err();
            assert_eq!(
                (refusal.errors[0].field.as_str(), refusal.errors[0].code.as_str()),
                ("effect", code),
                "{bad}"
            );
        }
    }

    #[test]
    fn what_is_said_of_effects() {
        let begin = door().effect_begin(br#"{"lease":"t","key":"order-7"}"#).unwrap();
        assert_eq!(begin.key.as_deref(), Some("order-7"));
        assert_eq!(
            door().effect_begin(b"").unwrap().key,
            None,
            "that the lease is missing is for the engine to say"
        );
        let key = |bytes: usize| format!(r#"{{"lease":"t","key":"{}"}}"#, "k".repeat(bytes));
        assert!(door().effect_begin(key(255).as_bytes()).is_ok());
        assert_eq!(door().effect_begin(key(256).as_bytes()).unwrap_err().errors[0].code, "too-long");
        let finish = door().effect_finish(br#"{"lease":"t","result":{"id": 7}}"#).unwrap();
        assert_eq!(finish.result.unwrap().as_str(), r#"{"id": 7}"#);
        let result = |bytes: usize| format!(r#"{{"result":"{}"}}"#, "r".repeat(bytes - 2));
        assert!(door().effect_finish(result(65_536).as_bytes()).is_ok());
        assert_eq!(door().effect_finish(result(65_537).as_bytes()).unwrap_err().code, Code::ResultTooLarge);
        assert_eq!(
            door().effect_abort(br#"{"lease":"t","result":1}"#).unwrap_err().errors[0].code,
            "unknown-field"
        );
    }

    #[test]
    fn what_a_person_has_found_out() {
        let said = |assume: &str| {
            door().retry(format!(r#"{{"seen_version":1,"assume":{assume}}}"#).as_bytes(), None)
        };
        assert_eq!(said(r#""not_done""#).unwrap().assume, Some(Assumed::All(Assume::NotDone)));
        let named = [("a".to_owned(), Assume::Done), ("b".to_owned(), Assume::NotDone)];
        assert_eq!(
            said(r#"{"b":"not_done","a":"done"}"#).unwrap().assume,
            Some(Assumed::Named(named.into_iter().collect()))
        );
        assert_eq!(said("null").unwrap().assume, None);
        let wrong = [
            (r#""perhaps""#, "wrong-type"),
            ("true", "wrong-type"),
            (r#"{"a":1}"#, "wrong-type"),
            ("{}", "empty"),
        ];
        for (bad, code) in
            wrong.into_iter().chain([(r#"{"A":"done"}"#, "bad-name"), (r#"["done"]"#, "wrong-type")])
        {
            let refusal = said(bad).unwrap_err();
            assert_eq!(
                (refusal.errors[0].field.as_str(), refusal.errors[0].code.as_str()),
                ("assume", code),
                "{bad}"
            );
        }
    }
}
