//! Reads what operators say about queues.

use super::reader::{Reader, Unknown};
use super::{Door, DoorLimits, Drain, Pause, QueueBounds, ReserveBounds, Resume, TextRule};
use crate::problem::{FieldCode, Refusal};

impl DoorLimits {
    /// Who says something.
    pub(crate) const fn by_rule(&self) -> TextRule {
        self.key_rule()
    }
}

impl Door {
    /// `PUT /queues/{queue}`
    pub fn queue_settings(&self, body: &[u8]) -> Result<QueueBounds, Refusal> {
        let limits = &self.limits;
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let bounds = QueueBounds {
            max_running: reader.count("max_running", &limits.queue_max_running),
            reserve: reader.nested("reserve", |reserve| {
                reserve.require("slots");
                reserve.require("from_priority");
                ReserveBounds {
                    slots: reserve.count("slots", &limits.queue_max_running).unwrap_or_default(),
                    from_priority: reserve.priority("from_priority", limits.priority_max).unwrap_or_default(),
                }
            }),
            max_depth: reader.integer("max_depth", limits.queue_max_depth.clone()),
        };
        match (&bounds.reserve, bounds.max_running) {
            (Some(_), None) => {
                reader.fail(
                    "reserve",
                    FieldCode::Conflict,
                    "keeps slots of max_running, so that is needed too",
                );
            }
            (Some(reserve), Some(max)) if reserve.slots >= max => {
                let message = format!("must leave some of the {max} slots of max_running to other jobs");
                reader.fail("reserve", FieldCode::Conflict, message);
            }
            _ => {}
        }
        reader.finish().map(|_| bounds)
    }

    /// `POST /queues/{queue}/pause`
    pub fn pause(&self, body: &[u8]) -> Result<Pause, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        reader.require("reason");
        let pause = Pause {
            reason: reader.text("reason", self.limits.prose_rule()).unwrap_or_default(),
            by: reader.text("by", self.limits.by_rule()),
        };
        reader.finish().map(|_| pause)
    }

    /// `POST /queues/{queue}/resume`
    pub fn resume(&self, body: &[u8]) -> Result<Resume, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let resume = Resume { reason: reader.text("reason", self.limits.prose_rule()) };
        reader.finish().map(|_| resume)
    }

    /// `POST /queues/{queue}/drain`
    pub fn drain(&self, body: &[u8]) -> Result<Drain, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let drain = Drain {
            reason: reader.text("reason", self.limits.prose_rule()),
            by: reader.text("by", self.limits.by_rule()),
        };
        reader.finish().map(|_| drain)
    }

    /// `POST /queues/{queue}/open`: there is nothing to say.
    pub fn open(&self, body: &[u8]) -> Result<(), Refusal> {
        Reader::body(body, Unknown::Refuse)?.finish().map(|_| ())
    }

    /// `{queue}` of a path, decoded.
    pub fn queue_name<'a>(&self, text: &'a str) -> Result<&'a str, Refusal> {
        self.limits
            .queue_rule()
            .check(text)
            .map_err(|(code, message)| Refusal::field("queue", code, message))?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::tests::{door, errors};

    #[test]
    fn bounds_of_a_queue() {
        let body = br#"{"max_running":4,"reserve":{"slots":1,"from_priority":"critical"},"max_depth":1000}"#;
        let reserve = ReserveBounds { slots: 1, from_priority: 30 };
        let bounds = QueueBounds { max_running: Some(4), reserve: Some(reserve), max_depth: Some(1000) };
        assert_eq!(door().queue_settings(body), Ok(bounds));
        assert_eq!(door().queue_settings(b"{}"), Ok(QueueBounds::default()));
        let nulls = br#"{"max_running":null,"reserve":null,"max_depth":null}"#;
        assert_eq!(door().queue_settings(nulls), Ok(QueueBounds::default()));
    }

    #[test]
    fn bounds_that_make_no_sense_are_refused_with_the_field() {
        let refused = |body: &str| {
            let refusal = door().queue_settings(body.as_bytes()).unwrap_err();
            errors(&refusal)
                .into_iter()
                .map(|(field, code, _)| format!("{field}: {code}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(refused(r#"{"max_running":0}"#), ["max_running: out-of-range"]);
        assert_eq!(refused(r#"{"max_depth":0}"#), ["max_depth: out-of-range"]);
        assert_eq!(refused(r#"{"max_depth":-1}"#), ["max_depth: out-of-range"]);
        assert_eq!(refused(r#"{"maxrunning":1}"#), ["maxrunning: unknown-field"]);
        assert_eq!(refused(r#"{"reserve":{"slots":1,"from_priority":20}}"#), ["reserve: conflict"]);
        let all = r#"{"max_running":2,"reserve":{"slots":2,"from_priority":20}}"#;
        assert_eq!(refused(all), ["reserve: conflict"]);
        assert_eq!(
            refused(r#"{"max_running":2,"reserve":{}}"#),
            ["reserve.slots: missing", "reserve.from_priority: missing"]
        );
    }

    #[test]
    fn pause_resume_drain_open() {
        let pause = Pause { reason: "crm down".to_owned(), by: Some("ann".to_owned()) };
        assert_eq!(door().pause(br#"{"reason":"crm down","by":"ann"}"#), Ok(pause));
        assert_eq!(door().pause(b"{}").unwrap_err().detail, "reason: is needed");
        assert_eq!(door().pause(br#"{"reason":""}"#).unwrap_err().errors[0].code, "empty");
        assert_eq!(door().resume(b""), Ok(Resume { reason: None }));
        assert_eq!(door().resume(br#"{"reason":"a"}"#), Ok(Resume { reason: Some("a".to_owned()) }));
        assert_eq!(door().drain(b""), Ok(Drain { reason: None, by: None }));
        assert_eq!(door().open(b""), Ok(()));
        assert_eq!(door().open(br#"{"reason":"a"}"#).unwrap_err().errors[0].code, "unknown-field");
        assert_eq!(door().queue_name("mail"), Ok("mail"));
        assert_eq!(door().queue_name("").unwrap_err().errors[0].field, "queue");
        assert_eq!(door().queue_name("a b").unwrap_err().errors[0].code, "bad-name");
    }
}
