//! Reads the jobs that a completed one leads to.

use super::reader::Reader;
use super::{Complete, DoorLimits, FollowUps, Report, ReportItem};
use crate::Json;
use crate::problem::{FieldCode, Refusal};

impl DoorLimits {
    /// `enqueue` of a completed job.
    pub(super) fn follow_ups(&self, reader: &mut Reader<'_>) -> Option<FollowUps> {
        let (jobs, sent) = reader.each(("enqueue", self.follow_ups_max), |job| self.job(job))?;
        let bytes = sent.get().len();
        if bytes > self.follow_ups_max_bytes {
            let most = self.follow_ups_max_bytes;
            let message =
                format!("has {bytes} bytes, at most {most} are allowed; enqueue the jobs by themselves");
            reader.fail("enqueue", FieldCode::TooMany, message);
        }
        // None at all is as if it had not been sent.
        (!jobs.is_empty()).then(|| FollowUps { jobs, sent: Json::from(sent) })
    }
}

/// Room for the follow-ups of a bulk report.
pub(super) struct Room {
    left: usize,
    all: usize,
}

impl Room {
    /// Room for so many.
    pub(super) const fn of(all: usize) -> Self {
        Self { left: all, all }
    }

    /// An entry, refused if its follow-ups are too many beside those of the entries before it.
    pub(super) fn admit(&mut self, index: usize, item: ReportItem) -> ReportItem {
        let Ok(Report::Complete(Complete { enqueue: Some(follow_ups), .. })) = &item.report else {
            return item;
        };
        if let Some(left) = self.left.checked_sub(follow_ups.jobs.len()) {
            self.left = left;
            return item;
        }
        let message = format!(
            "has more jobs than there is room for: the entries of a call may bring {} in all; report the rest in \
             another call",
            self.all
        );
        let field = format!("reports[{index}].enqueue");
        ReportItem { report: Err(Refusal::field(&field, FieldCode::TooMany, message)), ..item }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::tests::{door, errors};

    #[test]
    fn what_a_completed_job_leads_to_is_read_like_any_job_and_kept_as_it_was_sent() {
        let read =
            door().complete(br#"{"enqueue":[ {"type":"a"}, {"type":"b","payload":{"n": 1}} ]}"#).unwrap();
        let follow_ups = read.value.enqueue.unwrap();
        let types: Vec<&str> = follow_ups.jobs.iter().map(|job| job.job_type.as_str()).collect();
        assert_eq!(types, ["a", "b"]);
        assert_eq!(follow_ups.sent.as_str(), r#"[ {"type":"a"}, {"type":"b","payload":{"n": 1}} ]"#);
        for none in ["{}", r#"{"enqueue":null}"#, r#"{"enqueue":[]}"#] {
            assert_eq!(door().complete(none.as_bytes()).unwrap().value, Complete::default(), "{none}");
        }
    }

    #[test]
    fn all_that_is_wrong_with_follow_ups_is_named_with_its_place() {
        let body =
            r#"{"enqueue":[{"type":"a","max_retry":1},{"queue":"q"},7,{"type":"b","supersede":true}]}"#;
        let refusal = door().complete(body.as_bytes()).unwrap_err();
        let found: Vec<String> =
            errors(&refusal).iter().map(|(field, code, _)| format!("{field} {code}")).collect();
        assert_eq!(
            found,
            [
                "enqueue[0].max_retry unknown-field",
                "enqueue[1].type missing",
                "enqueue[2] wrong-type",
                "enqueue[3].subject.version missing",
            ]
        );
        let text = |body: &str| door().complete(body.as_bytes()).unwrap_err().detail;
        assert_eq!(text(r#"{"enqueue":{}}"#), "enqueue: must be an array, not an object");
        let many = |count: usize| format!("{{\"enqueue\":[{}]}}", vec![r#"{"type":"t"}"#; count].join(","));
        assert!(door().complete(many(1_000).as_bytes()).is_ok());
        assert_eq!(text(&many(1_001)), "enqueue: has 1001 entries; at most 1000 are allowed");
        // Nine payloads of 131,000 bytes are more than 1 MiB, seven are not.
        let fat = |count: usize| {
            let job = format!("{{\"type\":\"t\",\"payload\":\"{}\"}}", "x".repeat(131_000));
            format!("{{\"enqueue\":[{}]}}", vec![job; count].join(","))
        };
        assert!(door().complete(fat(7).as_bytes()).is_ok());
        assert!(text(&fat(9)).starts_with("enqueue: has 11"), "{}", text(&fat(9)));
    }

    #[test]
    fn the_entries_of_a_bulk_report_share_room_for_follow_ups() {
        let entry = |id: usize, jobs: usize| {
            let jobs = vec![r#"{"type":"t"}"#; jobs].join(",");
            format!("{{\"id\":{id},\"outcome\":\"completed\",\"enqueue\":[{jobs}]}}")
        };
        let mut entries: Vec<String> = (1..=9).map(|id| entry(id, 1_000)).collect();
        entries.extend([entry(10, 999), entry(11, 2), entry(12, 1), entry(13, 1)]);
        let read = door().report_bulk(format!("{{\"reports\":[{}]}}", entries.join(",")).as_bytes()).unwrap();
        let refused: Vec<(usize, &str)> = read
            .value
            .reports
            .iter()
            .enumerate()
            .filter_map(|(index, item)| Some((index, item.report.as_ref().err()?.detail.as_str())))
            .collect();
        let why = |index: usize| {
            format!(
                "reports[{index}].enqueue: has more jobs than there is room for: the entries of a call may bring 10000 in \
                 all; report the rest in another call"
            )
        };
        assert_eq!(refused, [(10, why(10).as_str()), (12, why(12).as_str())]);
        assert_eq!(read.value.reports[10].id, Some(11), "and says which job");
    }
}
