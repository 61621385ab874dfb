//! Reads what operators send.

use super::body::parse_if_match;
use super::reader::{Reader, Unknown};
use super::{Cancel, Delete, Discard, Door, ForceFail, Retry, TypeDefaults, Unblock, queries};
use crate::problem::{FieldCode, Refusal};

impl Door {
    /// `POST /jobs/{id}/cancel`, with the bytes of the header `If-Match` if there is one.
    pub fn cancel(&self, body: &[u8], if_match: Option<&[u8]>) -> Result<Cancel, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let cancel = Cancel {
            wait: reader.flag("wait").unwrap_or(false),
            reason: reader.text("reason", self.limits.prose_rule()),
            free_key: reader.flag("free_key").unwrap_or(false),
            seen_version: self.seen_version(&mut reader, if_match)?,
        };
        reader.finish().map(|_| cancel)
    }

    /// `POST /jobs/{id}/retry`, with the bytes of the header `If-Match` if there is one.
    pub fn retry(&self, body: &[u8], if_match: Option<&[u8]>) -> Result<Retry, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        if if_match.is_none() {
            reader.require("seen_version");
        }
        let retry = Retry {
            seen_version: self.seen_version(&mut reader, if_match)?.unwrap_or_default(),
            note: reader.text("note", self.limits.prose_rule()),
            payload: reader.json("payload", self.limits.payload_rule()),
            max_retries: reader.count("max_retries", &self.limits.max_retries),
            force: reader.flag("force").unwrap_or(false),
            assume: self.assumed(&mut reader),
        };
        reader.finish().map(|_| retry)
    }

    /// `POST /jobs/{id}/discard`, with the bytes of the header `If-Match` if there is one.
    pub fn discard(&self, body: &[u8], if_match: Option<&[u8]>) -> Result<Discard, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        reader.require("reason");
        let discard = Discard {
            reason: reader.text("reason", self.limits.prose_rule()).unwrap_or_default(),
            free_key: reader.flag("free_key").unwrap_or(false),
            seen_version: self.seen_version(&mut reader, if_match)?,
        };
        reader.finish().map(|_| discard)
    }

    /// `POST /jobs/{id}/force-fail`, with the bytes of the header `If-Match` if there is one.
    pub fn force_fail(&self, body: &[u8], if_match: Option<&[u8]>) -> Result<ForceFail, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        reader.require("reason");
        let force_fail = ForceFail {
            reason: reader.text("reason", self.limits.prose_rule()).unwrap_or_default(),
            seen_version: self.seen_version(&mut reader, if_match)?,
        };
        reader.finish().map(|_| force_fail)
    }

    /// `POST /jobs/{id}/unblock`, with the bytes of the header `If-Match` if there is one.
    pub fn unblock(&self, body: &[u8], if_match: Option<&[u8]>) -> Result<Unblock, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        reader.require("reason");
        let unblock = Unblock {
            reason: reader.text("reason", self.limits.prose_rule()).unwrap_or_default(),
            seen_version: self.seen_version(&mut reader, if_match)?,
        };
        reader.finish().map(|_| unblock)
    }

    /// `DELETE /jobs/{id}`, with the bytes of the header `If-Match` if there is one.
    pub fn delete(&self, query: &str, if_match: Option<&[u8]>) -> Result<Delete, Refusal> {
        let pairs = queries::pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let delete = Delete { seen_version: self.seen_version(&mut reader, if_match)? };
        reader.finish().map(|_| delete)
    }

    /// `PUT /types/{type}`. What `GET` shows besides the settings may be sent along and is not looked at, so that an
    /// answer can be edited and sent back; only `type` must be that of the path.
    pub fn type_settings(&self, job_type: &str, body: &[u8]) -> Result<TypeDefaults, Refusal> {
        let limits = &self.limits;
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let settings = TypeDefaults {
            queue: reader.text("queue", limits.queue_rule()),
            priority: reader.priority("priority", limits.priority_max),
            max_retries: reader.count("max_retries", &limits.max_retries),
            max_lease_losses: reader.count("max_lease_losses", &limits.max_lease_losses),
            lease_ms: reader.seconds("lease_seconds", &limits.lease_ms),
            timeout_ms: reader.seconds("timeout_seconds", &limits.timeout_ms),
            retry: limits.retry(&mut reader),
            on_unknown: reader.choice("on_unknown"),
            handles_verify: reader.flag("handles_verify").unwrap_or(false),
            max_age_ms: reader.seconds("max_age_seconds", &limits.max_age_ms),
            idempotency_scope: reader.choice("idempotency_scope"),
            idempotency_ttl_ms: reader.seconds("idempotency_ttl_seconds", &limits.ttl_ms),
            owner: reader.text("owner", limits.prose_rule()),
            queues: reader.texts("queues", limits.claim_names_max, limits.queue_rule()),
            priority_ceiling: reader.priority("priority_ceiling", limits.priority_max),
            payload_max_bytes: reader.count("payload_max_bytes", &limits.payload_sizes()),
            limits: limits.limits(&mut reader),
            fair_key: reader.text("fair_key", limits.key_rule()),
            ordering_key: reader.text("ordering_key", limits.key_rule()),
            on_head_failure: reader.choice("on_head_failure"),
        };
        if let (Some(queue), Some(queues)) = (&settings.queue, &settings.queues)
            && !queues.contains(queue)
        {
            reader.fail(
                "queue",
                FieldCode::Conflict,
                "is not one of `queues`; add it there, or name one of them",
            );
        }
        if let (Some(priority), Some(ceiling)) = (settings.priority, settings.priority_ceiling)
            && priority > ceiling
        {
            reader.fail("priority", FieldCode::Conflict, format!("is above `priority_ceiling`, {ceiling}"));
        }
        if reader.text("type", limits.type_rule()).is_some_and(|sent| sent != job_type) {
            reader.fail("type", FieldCode::Conflict, "must be the type of the path");
        }
        for shown in ["configured", "updated_at", "counts", "oldest_ready_age_seconds"] {
            reader.skip(shown);
        }
        reader.finish().map(|_| settings)
    }

    /// `{type}` of a path, decoded.
    pub fn type_name<'a>(&self, text: &'a str) -> Result<&'a str, Refusal> {
        self.limits
            .type_rule()
            .check(text)
            .map_err(|(code, message)| Refusal::field("type", code, message))?;
        Ok(text)
    }

    /// The version that the operator saw, from the body or the header.
    fn seen_version(&self, reader: &mut Reader<'_>, if_match: Option<&[u8]>) -> Result<Option<i64>, Refusal> {
        let sent = reader.integer("seen_version", 0..=self.limits.id_max);
        let header = if_match.map(parse_if_match).transpose()?;
        if let (Some(sent), Some(header)) = (sent, header)
            && sent != header
        {
            reader.fail(
                "seen_version",
                FieldCode::Conflict,
                format!("is {sent}, but If-Match says {header}"),
            );
        }
        Ok(sent.or(header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IdempotencyScope;
    use crate::door::RetryFields;
    use crate::door::tests::door;
    use crate::problem::Code;

    #[test]
    fn cancel_and_discard() {
        assert_eq!(door().cancel(b"", None), Ok(Cancel::default()));
        let body = br#"{"wait":true,"reason":"r","free_key":true,"seen_version":7}"#;
        let full = Cancel { wait: true, reason: Some("r".to_owned()), free_key: true, seen_version: Some(7) };
        assert_eq!(door().cancel(body, None), Ok(full));
        assert_eq!(door().cancel(br#"{"wait":"yes"}"#, None).unwrap_err().errors[0].code, "wrong-type");
        assert_eq!(door().discard(b"{}", None).unwrap_err().detail, "reason: is needed");
        let discard = Discard { reason: "r".to_owned(), free_key: false, seen_version: Some(3) };
        assert_eq!(door().discard(br#"{"reason":"r"}"#, Some(b"\"3\"")), Ok(discard));
        assert_eq!(door().discard(br#"{"reason":""}"#, None).unwrap_err().errors[0].code, "empty");
    }

    #[test]
    fn force_fail_unblock_and_delete() {
        let force_fail = ForceFail { reason: "stuck".to_owned(), seen_version: Some(2) };
        assert_eq!(door().force_fail(br#"{"reason":"stuck","seen_version":2}"#, None), Ok(force_fail));
        assert_eq!(door().force_fail(b"{}", None).unwrap_err().detail, "reason: is needed");
        let unblock = Unblock { reason: "by hand".to_owned(), seen_version: Some(3) };
        assert_eq!(door().unblock(br#"{"reason":"by hand"}"#, Some(b"3")), Ok(unblock));
        assert_eq!(door().unblock(b"{}", None).unwrap_err().detail, "reason: is needed");
        assert_eq!(door().delete("", None), Ok(Delete { seen_version: None }));
        assert_eq!(door().delete("seen_version=4", None), Ok(Delete { seen_version: Some(4) }));
        assert_eq!(door().delete("force=1", None).unwrap_err().errors[0].field, "force");
    }

    #[test]
    fn retry_needs_the_version_that_was_seen() {
        assert_eq!(door().retry(b"{}", None).unwrap_err().detail, "seen_version: is needed");
        assert_eq!(door().retry(b"", Some(b"5")).unwrap().seen_version, 5);
        let retry = door()
            .retry(br#"{"seen_version":5,"payload":{"a": 1},"note":"n","max_retries":0}"#, Some(b"5"))
            .unwrap();
        assert_eq!(retry.payload.unwrap().as_str(), r#"{"a": 1}"#);
        assert_eq!((retry.note.as_deref(), retry.max_retries), (Some("n"), Some(0)));
        assert_eq!(door().retry(br#"{"seen_version":5,"payload":null}"#, None).unwrap().payload, None);
        let differ = door().retry(br#"{"seen_version":5}"#, Some(b"6")).unwrap_err();
        assert_eq!(differ.detail, "seen_version: is 5, but If-Match says 6");
        let malformed = door().retry(b"{}", Some(b"*")).unwrap_err();
        assert_eq!((malformed.code, malformed.code.status()), (Code::InvalidPrecondition, 422));
        assert!(door().retry(br#"{"seen_version":5,"force":true}"#, None).unwrap().force);
    }

    #[test]
    fn settings_of_a_type() {
        assert_eq!(door().type_settings("t", b"{}"), Ok(TypeDefaults::default()));
        let body =
            br#"{"queue":"q","priority":"critical","max_retries":5,"max_lease_losses":0,"lease_seconds":60,
            "timeout_seconds":null,"retry":{"cap_seconds":10},"on_unknown":null,"max_age_seconds":3600,
            "idempotency_scope":"unfinished","idempotency_ttl_seconds":0,"owner":"team@example.org",
            "queues":["q","r"],"priority_ceiling":40,"payload_max_bytes":2,"limits":["crm:t","api"],"fair_key":"f",
            "ordering_key":"o","on_head_failure":"skip","handles_verify":true}"#;
        let settings = TypeDefaults {
            queue: Some("q".to_owned()),
            priority: Some(30),
            max_retries: Some(5),
            max_lease_losses: Some(0),
            lease_ms: Some(60_000),
            timeout_ms: None,
            retry: RetryFields { cap_ms: Some(10_000), ..RetryFields::default() },
            on_unknown: None,
            max_age_ms: Some(3_600_000),
            idempotency_scope: Some(IdempotencyScope::Unfinished),
            idempotency_ttl_ms: Some(0),
            owner: Some("team@example.org".to_owned()),
            queues: Some(vec!["q".to_owned(), "r".to_owned()]),
            priority_ceiling: Some(40),
            payload_max_bytes: Some(2),
            limits: vec!["api".to_owned(), "crm:t".to_owned()],
            fair_key: Some("f".to_owned()),
            ordering_key: Some("o".to_owned()),
            on_head_failure: Some(crate::OnHeadFailure::Skip),
            handles_verify: true,
        };
        assert_eq!(door().type_settings("t", body), Ok(settings));
        let error = door().type_settings("t", br#"{"delay_seconds":1}"#).unwrap_err();
        assert_eq!(error.errors[0].code, "unknown-field");
    }

    #[test]
    fn rules_of_a_type_that_contradict_its_defaults_are_refused() {
        let refused = |body: &str| {
            let refusal = door().type_settings("t", body.as_bytes()).unwrap_err();
            refusal.errors.into_iter().map(|error| (error.field, error.code)).collect::<Vec<_>>()
        };
        let conflict = |field: &str| vec![(field.to_owned(), "conflict".to_owned())];
        assert_eq!(refused(r#"{"queue":"a","queues":["b","c"]}"#), conflict("queue"));
        assert_eq!(refused(r#"{"priority":31,"priority_ceiling":"critical"}"#), conflict("priority"));
        assert!(door().type_settings("t", br#"{"priority":30,"priority_ceiling":"critical"}"#).is_ok());
        assert_eq!(refused(r#"{"queues":[]}"#)[0].1, "empty");
        for bytes in ["1", "262145", "-1"] {
            let body = format!(r#"{{"payload_max_bytes":{bytes}}}"#);
            assert_eq!(refused(&body)[0].1, "out-of-range", "{bytes}");
        }
        assert!(door().type_settings("t", br#"{"payload_max_bytes":262144}"#).is_ok());
    }

    #[test]
    fn an_answer_about_a_type_can_be_edited_and_sent_back() {
        let info = crate::answer::TypeInfo {
            job_type: "t".to_owned(),
            configured: true,
            settings: crate::request::TypeSettings { max_retries: Some(9), ..Default::default() },
            counts: crate::answer::Counts::default(),
            oldest_ready_age_seconds: None,
        };
        let body = serde_json::to_vec(&info).unwrap();
        assert_eq!(door().type_settings("t", &body).unwrap().max_retries, Some(9));
        let error = door().type_settings("other", &body).unwrap_err();
        assert_eq!(error.detail, "type: must be the type of the path");
    }

    #[test]
    fn types_in_paths() {
        assert_eq!(door().type_name("App\\Jobs/Send"), Ok("App\\Jobs/Send"));
        assert_eq!(door().type_name("a\0").unwrap_err().errors[0].code, "bad-character");
    }
}
