//! Reads what workers send.

use serde_json::value::RawValue;

use super::follow::Room;
use super::reader::{IGNORED_MAX, JsonRule, Reader, Unknown};
use super::text::{Alphabet, TextRule};
use super::{
    Checkpoint, Claim, Complete, Door, DoorLimits, Fail, Heartbeat, Holder, Release, Report, ReportBulk,
    ReportItem, Reported,
};
use crate::problem::{FieldCode, Refusal};
use crate::request::Progress;
use crate::{Json, LeaseToken, ReportOutcome};

impl Door {
    /// `POST /jobs/claim`
    pub fn claim(&self, body: &[u8]) -> Result<Claim, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let claim = self.limits.claim(&mut reader);
        reader.finish().map(|_| claim)
    }

    /// `POST /jobs/claim/bulk`
    pub fn claim_bulk(&self, body: &[u8]) -> Result<Claim, Refusal> {
        self.limits.claim_bulk(Reader::body(body, Unknown::Refuse)?)
    }

    /// `POST /jobs/{id}/complete`
    pub fn complete(&self, body: &[u8]) -> Result<Reported<Complete>, Refusal> {
        let mut reader = Reader::body(body, Unknown::Ignore)?;
        let value = self.limits.complete(&mut reader);
        reader.finish().map(|ignored| Reported { value, ignored })
    }

    /// `POST /jobs/{id}/fail`
    pub fn fail(&self, body: &[u8]) -> Result<Reported<Fail>, Refusal> {
        let mut reader = Reader::body(body, Unknown::Ignore)?;
        let value = self.limits.fail(&mut reader);
        reader.finish().map(|ignored| Reported { value, ignored })
    }

    /// `POST /jobs/{id}/release`
    pub fn release(&self, body: &[u8]) -> Result<Reported<Release>, Refusal> {
        let mut reader = Reader::body(body, Unknown::Ignore)?;
        let value = self.limits.release(&mut reader);
        reader.finish().map(|ignored| Reported { value, ignored })
    }

    /// `POST /jobs/{id}/heartbeat`
    pub fn heartbeat(&self, body: &[u8]) -> Result<Reported<Heartbeat>, Refusal> {
        let mut reader = Reader::body(body, Unknown::Ignore)?;
        let value = self.limits.heartbeat(&mut reader);
        reader.finish().map(|ignored| Reported { value, ignored })
    }

    /// `POST /jobs/{id}/checkpoint`
    pub fn checkpoint(&self, body: &[u8]) -> Result<Checkpoint, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let holder = holder(&mut reader);
        let checkpoint = reader.json_or_null("checkpoint", self.limits.checkpoint_rule());
        if checkpoint.is_none() {
            reader.require("checkpoint");
        }
        reader.finish()?;
        // Without a checkpoint the reader has refused; the default is never used.
        Ok(Checkpoint { holder, checkpoint: checkpoint.unwrap_or_else(Json::null) })
    }

    /// `POST /jobs/heartbeat/bulk`
    pub fn heartbeat_bulk(&self, body: &[u8]) -> Result<Reported<ReportBulk>, Refusal> {
        let mut reader = Reader::body(body, Unknown::Ignore)?;
        reader.require("leases");
        let worker_id = reader.text("worker_id", TextRule::ANY);
        let leases = reader.list("leases", self.limits.reports_max).unwrap_or_default();
        let mut ignored = reader.finish()?;
        let read = |reader: &mut Reader<'_>| {
            let mut heartbeat = self.limits.heartbeat(reader);
            if heartbeat.holder.worker_id.is_none() {
                heartbeat.holder.worker_id.clone_from(&worker_id);
            }
            Report::Heartbeat(heartbeat)
        };
        let reports = leases
            .into_iter()
            .enumerate()
            .map(|(index, lease)| self.limits.item(&format!("leases[{index}]"), lease, &read))
            .map(|(item, names)| {
                ignored.extend(names);
                item
            })
            .collect();
        ignored.truncate(IGNORED_MAX);
        Ok(Reported { value: ReportBulk { reports, claim: None }, ignored })
    }

    /// `POST /jobs/report/bulk`
    pub fn report_bulk(&self, body: &[u8]) -> Result<Reported<ReportBulk>, Refusal> {
        let mut reader = Reader::body(body, Unknown::Ignore)?;
        reader.require("reports");
        let entries = reader.list("reports", self.limits.reports_max).unwrap_or_default();
        let claim = reader.raw("claim");
        let mut ignored = reader.finish()?;
        let read = |reader: &mut Reader<'_>| self.limits.report(reader);
        let mut room = Room::of(self.limits.reports_follow_ups_max);
        let reports = entries
            .into_iter()
            .enumerate()
            .map(|(index, entry)| (index, self.limits.item(&format!("reports[{index}]"), entry, &read)))
            .map(|(index, (item, names))| {
                ignored.extend(names);
                room.admit(index, item)
            })
            .collect();
        ignored.truncate(IGNORED_MAX);
        let claim = claim.map(|claim| {
            Reader::object("claim", claim, Unknown::Refuse).and_then(|reader| self.limits.claim_bulk(reader))
        });
        Ok(Reported { value: ReportBulk { reports, claim }, ignored })
    }
}

pub(super) fn holder(reader: &mut Reader<'_>) -> Holder {
    Holder {
        lease: reader.text("lease", TextRule::ANY).map(LeaseToken),
        worker_id: reader.text("worker_id", TextRule::ANY),
    }
}

impl DoorLimits {
    fn claim(&self, reader: &mut Reader<'_>) -> Claim {
        reader.require("worker_id");
        Claim {
            worker_id: reader.text("worker_id", self.worker_rule()).unwrap_or_default(),
            queues: reader.texts("queues", self.claim_names_max, self.queue_rule()),
            types: reader.texts("types", self.claim_names_max, self.type_rule()),
            wait_ms: reader.seconds("wait_seconds", &(0..=self.wait_max_ms)).unwrap_or(0),
            lease_ms: reader.seconds("lease_seconds", &self.lease_ms),
            handles_verify: reader.flag("handles_verify").unwrap_or(false),
            request_id: reader.text("request_id", self.request_rule()),
            max_jobs: 1,
        }
    }

    fn claim_bulk(&self, mut reader: Reader<'_>) -> Result<Claim, Refusal> {
        let claim = self.claim(&mut reader);
        let max_jobs = reader.count("max_jobs", &self.claim_jobs).unwrap_or(1);
        reader.finish().map(|_| Claim { max_jobs, ..claim })
    }

    fn complete(&self, reader: &mut Reader<'_>) -> Complete {
        let rule = JsonRule {
            max_bytes: self.result_max_bytes,
            max_depth: self.payload_max_depth,
            too_large: FieldCode::ResultTooLarge,
        };
        Complete {
            holder: holder(reader),
            result: reader.json("result", rule),
            enqueue: self.follow_ups(reader),
        }
    }

    fn fail(&self, reader: &mut Reader<'_>) -> Fail {
        Fail {
            holder: holder(reader),
            error: reader.anything("error"),
            class: reader.choice("class"),
            retry_after_ms: reader.seconds("retry_after_seconds", &self.delay_ms),
            throttle: self.throttle(reader),
        }
    }

    fn release(&self, reader: &mut Reader<'_>) -> Release {
        Release {
            holder: holder(reader),
            delay_ms: reader.seconds("delay_seconds", &self.delay_ms),
            reason: reader.text("reason", self.prose_rule()),
        }
    }

    fn heartbeat(&self, reader: &mut Reader<'_>) -> Heartbeat {
        Heartbeat {
            holder: holder(reader),
            progress: reader.nested("progress", |progress| self.progress(progress)),
        }
    }

    fn progress(&self, reader: &mut Reader<'_>) -> Progress {
        Progress {
            done: reader.integer("done", 0..=self.id_max),
            total: reader.integer("total", 0..=self.id_max),
            message: reader.text("message", self.progress_rule()),
        }
    }

    pub(crate) const fn worker_rule(&self) -> TextRule {
        TextRule::new(Alphabet::Worker, self.worker_id_max_bytes)
    }

    pub(crate) const fn request_rule(&self) -> TextRule {
        TextRule::new(Alphabet::NoNul, self.request_id_max_bytes)
    }

    /// Message of a progress report.
    pub(crate) const fn progress_rule(&self) -> TextRule {
        TextRule::new(Alphabet::NoNul, self.progress_message_max_bytes)
    }

    const fn checkpoint_rule(&self) -> JsonRule {
        JsonRule {
            max_bytes: self.checkpoint_max_bytes,
            max_depth: self.payload_max_depth,
            too_large: FieldCode::CheckpointTooLarge,
        }
    }

    /// By its outcome. Without one the reader has an error, and what is returned does not count.
    fn report(&self, reader: &mut Reader<'_>) -> Report {
        reader.require("outcome");
        match reader.choice("outcome") {
            Some(ReportOutcome::Failed) => Report::Fail(self.fail(reader)),
            Some(ReportOutcome::Released) => Report::Release(self.release(reader)),
            Some(ReportOutcome::Heartbeat) => Report::Heartbeat(self.heartbeat(reader)),
            Some(ReportOutcome::Completed) | None => Report::Complete(self.complete(reader)),
        }
    }

    /// One entry of a bulk call, and the names in it that were ignored.
    fn item(
        &self,
        path: &str,
        entry: &RawValue,
        read: &dyn Fn(&mut Reader<'_>) -> Report,
    ) -> (ReportItem, Vec<String>) {
        let mut reader = match Reader::object(path, entry, Unknown::Ignore) {
            Ok(reader) => reader,
            Err(refusal) => return (ReportItem { id: None, report: Err(refusal) }, Vec::new()),
        };
        reader.require("id");
        let id = reader.integer("id", 1..=self.id_max);
        let report = read(&mut reader);
        match reader.finish() {
            Ok(ignored) => (ReportItem { id, report: Ok(report) }, ignored),
            Err(refusal) => (ReportItem { id, report: Err(refusal) }, Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;
    use crate::door::tests::{door, errors};
    use crate::problem::Code;

    fn held(lease: &str, worker: &str) -> Holder {
        Holder { lease: Some(LeaseToken(lease.to_owned())), worker_id: Some(worker.to_owned()) }
    }

    #[test]
    fn claims() {
        let claim = door().claim(br#"{"worker_id":"w"}"#).unwrap();
        let bare = Claim {
            worker_id: "w".to_owned(),
            queues: None,
            types: None,
            wait_ms: 0,
            lease_ms: None,
            handles_verify: false,
            request_id: None,
            max_jobs: 1,
        };
        assert_eq!(claim, bare);
        let body =
            br#"{"worker_id":"w","queues":["a","b"],"types":["App\\X"],"wait_seconds":60,"lease_seconds":1,
            "request_id":"r","handles_verify":true,"max_jobs":1000}"#;
        let full = Claim {
            queues: Some(vec!["a".to_owned(), "b".to_owned()]),
            types: Some(vec!["App\\X".to_owned()]),
            wait_ms: 60_000,
            lease_ms: Some(1000),
            handles_verify: true,
            request_id: Some("r".to_owned()),
            max_jobs: 1000,
            ..bare
        };
        assert_eq!(door().claim_bulk(body), Ok(full));
    }

    #[test]
    fn claims_that_are_refused() {
        let code = |body: &str| {
            let errors = errors(&door().claim_bulk(body.as_bytes()).unwrap_err());
            errors.iter().map(|(field, code, _)| format!("{field} {code}")).collect::<Vec<_>>().join(", ")
        };
        let with = |member: &str| code(&format!("{{\"worker_id\":\"w\",{member}}}"));
        assert_eq!(code("{}"), "worker_id missing");
        assert_eq!(code(r#"{"worker_id":"a/b"}"#), "worker_id bad-character");
        assert_eq!(code(&format!("{{\"worker_id\":\"{}\"}}", "w".repeat(256))), "worker_id too-long");
        assert_eq!(with(r#""queues":[]"#), "queues empty");
        assert_eq!(with(r#""queues":"a""#), "queues wrong-type");
        assert_eq!(with(r#""queues":["a",1,""]"#), "queues[1] wrong-type, queues[2] empty");
        assert_eq!(with(r#""wait_seconds":61"#), "wait_seconds out-of-range");
        assert_eq!(with(r#""lease_seconds":0"#), "lease_seconds out-of-range");
        assert_eq!(with(r#""lease_seconds":86400.001"#), "lease_seconds out-of-range");
        assert_eq!(with(r#""max_jobs":0"#), "max_jobs out-of-range");
        assert_eq!(with(r#""max_jobs":1001"#), "max_jobs out-of-range");
        assert_eq!(with(&format!("\"request_id\":\"{}\"", "r".repeat(65))), "request_id too-long");
        assert_eq!(with(r#""handles_verify":1"#), "handles_verify wrong-type");
        let single = door().claim(br#"{"worker_id":"w","max_jobs":2}"#).unwrap_err();
        assert_eq!(single.errors[0].code, "unknown-field");
    }

    #[test]
    fn reports_may_be_empty() {
        for body in [b"".as_slice(), b"{}", b"\n"] {
            assert_eq!(door().complete(body).unwrap().value, Complete::default());
            assert_eq!(door().fail(body).unwrap().value, Fail::default());
            assert_eq!(door().release(body).unwrap().value, Release::default());
            assert_eq!(door().heartbeat(body).unwrap().value, Heartbeat::default());
        }
    }

    #[test]
    fn reports_name_what_they_ignore() {
        let read = door()
            .complete(br#"{"resutl":1,"result":{"x":1.0},"lease":"t","worker_id":"w","enqueu":[]}"#)
            .unwrap();
        assert_eq!(read.value.holder, held("t", "w"));
        assert_eq!(read.value.result.unwrap().as_str(), r#"{"x":1.0}"#);
        assert_eq!(read.ignored, ["resutl", "enqueu"]);
        let read = door()
            .heartbeat(br#"{"lease":"t","progress":{"done":1,"total":2,"message":"m","eta":3}}"#)
            .unwrap();
        let progress = Progress { done: Some(1), total: Some(2), message: Some("m".to_owned()) };
        assert_eq!(read.value.progress, Some(progress));
        assert_eq!(read.ignored, ["progress.eta"]);
    }

    #[test]
    fn ignored_names_are_fit_for_a_header() {
        let fields: Vec<_> = (0..100).map(|n| format!("\"a\\r\\nSet-Cookie: x,ü{n}\":1")).collect();
        let read = door().fail(format!("{{{}}}", fields.join(",")).as_bytes()).unwrap();
        assert_eq!(read.ignored.len(), 32);
        assert_eq!(read.ignored[7], "a??Set-Cookie:?x??7");
    }

    #[test]
    fn fail_takes_any_error() {
        for (json, text) in [
            (r#""plain""#, "plain"),
            (r#""a\u0000b\ud800c""#, "ab\u{fffd}c"),
            (r#"{"code": 7, "at":["x"]}"#, r#"{"code": 7, "at":["x"]}"#),
            ("1e400", "1e400"),
            ("false", "false"),
            ("\"\"", ""),
        ] {
            let read = door().fail(format!("{{\"error\":{json}}}").as_bytes()).unwrap();
            assert_eq!(read.value.error.as_deref(), Some(text), "{json}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let read = door().fail(format!("{{\"error\":{deep}}}").as_bytes()).unwrap();
        assert_eq!(read.value.error, Some(deep));
        assert_eq!(door().fail(br#"{"error":null}"#).unwrap().value.error, None);
    }

    #[test]
    fn an_unknown_class_names_the_three() {
        let refusal = door().fail(br#"{"class":"fatal","error":"x"}"#).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidRequest);
        assert_eq!(refusal.detail, "class: must be one of transient, permanent, unknown, not \"fatal\"");
        let read = door().fail(br#"{"class":"unknown","retry_after_seconds":1.5}"#).unwrap();
        assert_eq!((read.value.class, read.value.retry_after_ms), (Some(ErrorClass::Unknown), Some(1500)));
    }

    #[test]
    fn results_and_checkpoints_have_a_size() {
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        assert!(door().complete(format!("{{\"result\":{}}}", text(65_536)).as_bytes()).is_ok());
        let refusal = door().complete(format!("{{\"result\":{}}}", text(65_537)).as_bytes()).unwrap_err();
        assert_eq!((refusal.code, refusal.code.status()), (Code::ResultTooLarge, 422));
        let refusal =
            door().checkpoint(format!("{{\"checkpoint\":{}}}", text(65_537)).as_bytes()).unwrap_err();
        assert_eq!((refusal.code, refusal.code.status()), (Code::CheckpointTooLarge, 422));
        let message = |bytes: usize| format!("{{\"progress\":{{\"message\":\"{}\"}}}}", "m".repeat(bytes));
        assert!(door().heartbeat(message(1024).as_bytes()).is_ok());
        assert_eq!(
            door().heartbeat(message(1025).as_bytes()).unwrap_err().errors[0].field,
            "progress.message"
        );
    }

    #[test]
    fn checkpoints() {
        let read = door().checkpoint(br#"{"lease":"t","checkpoint":{"page": 7}}"#).unwrap();
        assert_eq!(read.checkpoint.as_str(), r#"{"page": 7}"#);
        assert_eq!(door().checkpoint(br#"{"checkpoint":null}"#).unwrap().checkpoint, Json::null());
        assert_eq!(door().checkpoint(b"{}").unwrap_err().detail, "checkpoint: is needed");
        let refusal = door().checkpoint(br#"{"checkpoint":1,"progess":{}}"#).unwrap_err();
        assert_eq!(refusal.errors[0].code, "unknown-field");
    }

    #[test]
    fn in_a_bulk_report_each_entry_is_judged_by_itself() {
        let body = br#"{"reports":[
            {"id":1,"outcome":"completed","lease":"t","result":[1]},
            {"id":2,"outcome":"failed","worker_id":"w","error":"x","class":"permanent","foo":1},
            {"id":3,"outcome":"released","delay_seconds":2,"reason":"r"},
            {"id":4,"outcome":"heartbeat","lease":"t"},
            {"id":5,"outcome":"done"},
            {"outcome":"completed"},
            {"id":0,"outcome":"completed"},
            "x"],"claim":{"worker_id":"w","max_job":5}}"#;
        let read = door().report_bulk(body).unwrap();
        assert_eq!(read.ignored, ["reports[1].foo"]);
        let shown: Vec<_> = read
            .value
            .reports
            .iter()
            .map(|item| match &item.report {
                Ok(Report::Complete(complete)) => {
                    format!("{:?} complete {}", item.id, complete.result.is_some())
                }
                Ok(Report::Fail(fail)) => format!("{:?} fail {:?}", item.id, fail.class),
                Ok(Report::Release(release)) => format!("{:?} release {:?}", item.id, release.delay_ms),
                Ok(Report::Heartbeat(_)) => format!("{:?} heartbeat", item.id),
                Err(refusal) => format!("{:?} {}", item.id, refusal.detail),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "Some(1) complete true",
                "Some(2) fail Some(Permanent)",
                "Some(3) release Some(2000)",
                "Some(4) heartbeat",
                "Some(5) reports[4].outcome: must be one of completed, failed, released, heartbeat, not \"done\"",
                "None reports[5].id: is needed",
                "None reports[6].id: must be between 1 and 9007199254740991",
                "None reports[7]: it must be a JSON object, not a text",
            ]
        );
        let claim = read.value.claim.unwrap().unwrap_err();
        assert_eq!(claim.detail, "claim.max_job: is not known here; did you mean `max_jobs`?");
    }

    #[test]
    fn bulk_reports_as_a_whole() {
        assert_eq!(door().report_bulk(b"{}").unwrap_err().detail, "reports: is needed");
        let many = |count: usize| format!("{{\"reports\":[{}]}}", vec!["{}"; count].join(","));
        assert_eq!(door().report_bulk(many(1000).as_bytes()).unwrap().value.reports.len(), 1000);
        assert_eq!(door().report_bulk(many(1001).as_bytes()).unwrap_err().errors[0].code, "too-many");
        let read = door().report_bulk(br#"{"reports":[],"claim":{"worker_id":"w"}}"#).unwrap();
        assert_eq!(read.value.claim.unwrap().unwrap().max_jobs, 1);
    }

    #[test]
    fn bulk_heartbeats() {
        let body = br#"{"worker_id":"w","leases":[{"id":1,"lease":"t","progress":{"done":1}},{"id":2},{"lease":"t"}]}"#;
        let read = door().heartbeat_bulk(body).unwrap().value;
        let progress = Some(Progress { done: Some(1), ..Progress::default() });
        let first = Report::Heartbeat(Heartbeat { holder: held("t", "w"), progress });
        assert_eq!(read.reports[0], ReportItem { id: Some(1), report: Ok(first) });
        assert!(
            matches!(&read.reports[1].report, Ok(Report::Heartbeat(beat)) if beat.holder.lease.is_none())
        );
        assert_eq!(read.reports[2].report.as_ref().unwrap_err().detail, "leases[2].id: is needed");
        assert_eq!(door().heartbeat_bulk(b"{}").unwrap_err().detail, "leases: is needed");
    }
}
