//! Calls about alerts.

use super::Door;
use super::queries::pairs;
use super::reader::{Reader, Unknown};
use crate::problem::Refusal;
use crate::query::AlertsQuery;

impl Door {
    /// `GET /alerts`
    pub fn alerts_query(&self, query: &str) -> Result<AlertsQuery, Refusal> {
        let pairs = pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let query = AlertsQuery {
            status: reader.choice("status"),
            limit: reader.count("limit", &self.limits.list_page),
            after: reader.integer("after", 0..=self.limits.id_max),
        };
        reader.finish().map(|_| query)
    }

    /// `POST /alerts/{id}/ack`: the note, if there is one.
    pub fn acknowledge(&self, body: &[u8]) -> Result<Option<String>, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let note = reader.text("note", self.limits.prose_rule());
        reader.finish().map(|_| note)
    }
}

#[cfg(test)]
mod tests {
    use crate::AlertStatus;
    use crate::door::tests::door;
    use crate::query::AlertsQuery;

    #[test]
    fn alerts_are_asked_for_by_status() {
        let asked = door().alerts_query("status=open&limit=5&after=7").unwrap();
        let expected = AlertsQuery { status: Some(AlertStatus::Open), limit: Some(5), after: Some(7) };
        assert_eq!(asked, expected);
        assert_eq!(door().alerts_query(&expected.to_query()[1..]).unwrap(), expected);
        assert_eq!(door().alerts_query("status=opne").unwrap_err().errors[0].field, "status");
        assert_eq!(door().alerts_query("state=open").unwrap_err().errors[0].field, "state");
    }

    #[test]
    fn an_acknowledgement_may_have_a_note() {
        assert_eq!(door().acknowledge(b"").unwrap(), None);
        assert_eq!(door().acknowledge(br#"{"note":"mine"}"#).unwrap().as_deref(), Some("mine"));
        for body in [r#"{"note":7}"#, r#"{"notes":"mine"}"#, r#"{"note":""}"#] {
            assert_eq!(door().acknowledge(body.as_bytes()).unwrap_err().errors.len(), 1, "{body}");
        }
    }
}
