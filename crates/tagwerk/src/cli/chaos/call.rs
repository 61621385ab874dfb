//! Which call a request is, which jobs it is about, and what its answer hands out.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use tagwerk_client::api::Seconds;

/// What is known of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    /// `claim`, `complete`, `effect begin`, …; another request has method and path.
    pub(super) name: String,
    /// Jobs that it is about; none for a claim.
    pub(super) jobs: Vec<i64>,
    /// Whether it asks for jobs.
    pub(super) claims: bool,
    /// Whether it may end an attempt.
    pub(super) reports: bool,
}

/// Anything with an id.
#[derive(Deserialize)]
struct WithId {
    id: i64,
    #[serde(default)]
    attempt: u32,
}

#[derive(Deserialize)]
struct Bulk {
    #[serde(default)]
    leases: Vec<WithId>,
    #[serde(default)]
    reports: Vec<WithId>,
    #[serde(default)]
    claim: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    jobs: Vec<WithId>,
}

impl Call {
    /// What this request is.
    pub(super) fn of(method: &str, target: &str, body: &[u8]) -> Self {
        let path = target.split('?').next().unwrap_or_default();
        let words: Vec<&str> = path.split('/').filter(|word| !word.is_empty()).collect();
        let bulk = || serde_json::from_slice::<Bulk>(body).ok();
        let ids = |list: Vec<WithId>| list.into_iter().map(|with| with.id).collect();
        match (method, words.as_slice()) {
            ("POST", ["jobs", "claim"] | ["jobs", "claim", "bulk"]) => {
                Self { name: "claim".to_owned(), claims: true, ..Self::default() }
            }
            ("POST", ["jobs", "report", "bulk"]) => {
                let bulk = bulk();
                let claims = bulk.as_ref().is_some_and(|bulk| bulk.claim.is_some());
                let jobs = bulk.map(|bulk| ids(bulk.reports)).unwrap_or_default();
                Self { name: "report".to_owned(), jobs, claims, reports: true }
            }
            ("POST", ["jobs", "heartbeat", "bulk"]) => {
                let jobs = bulk().map(|bulk| ids(bulk.leases)).unwrap_or_default();
                Self { name: "heartbeat".to_owned(), jobs, ..Self::default() }
            }
            ("POST", ["jobs", id, rest @ ..]) if !rest.is_empty() => {
                let name = if let [noun, _, verb] = rest {
                    format!("{} {verb}", noun.trim_end_matches('s'))
                } else {
                    rest.join(" ")
                };
                let reports = matches!(name.as_str(), "complete" | "fail" | "release");
                Self { name, jobs: id.parse().into_iter().collect(), claims: false, reports }
            }
            ("POST", ["jobs"] | ["jobs", "bulk"]) => Self { name: "enqueue".to_owned(), ..Self::default() },
            _ => Self { name: format!("{method} {path}"), ..Self::default() },
        }
    }

    /// The jobs that the answer hands out, each with its attempt.
    pub(super) fn handed(&self, body: &[u8]) -> Vec<(i64, u32)> {
        if !self.claims {
            return Vec::new();
        }
        let single = serde_json::from_slice::<WithId>(body).map(|job| vec![job]);
        let jobs = single.or_else(|_| serde_json::from_slice::<Bulk>(body).map(|bulk| bulk.jobs));
        jobs.unwrap_or_default().into_iter().map(|job| (job.id, job.attempt)).collect()
    }

    /// The body with another length of the leases that it asks for. Everything else in it stays as it is, byte for byte.
    pub(super) fn with_lease(&self, body: &[u8], lease: Seconds) -> Option<Vec<u8>> {
        if !self.claims {
            return None;
        }
        let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).ok()?;
        if self.reports {
            let claim = members.get_mut("claim")?;
            let mut asked: BTreeMap<String, Box<RawValue>> = serde_json::from_str(claim.get()).ok()?;
            asked.insert("lease_seconds".to_owned(), raw(&lease)?);
            *claim = raw(&asked)?;
        } else {
            members.insert("lease_seconds".to_owned(), raw(&lease)?);
        }
        serde_json::to_vec(&members).ok()
    }
}

fn raw(value: &impl serde::Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str, body: &str) -> Call {
        let (method, target) = line.split_once(' ').unwrap();
        Call::of(method, target, body.as_bytes())
    }

    #[test]
    fn calls_have_the_names_of_the_interface() {
        for (line, name, jobs) in [
            ("POST /jobs/claim", "claim", vec![]),
            ("POST /jobs/claim/bulk?x=1", "claim", vec![]),
            ("POST /jobs/7/complete", "complete", vec![7]),
            ("POST /jobs/7/effects/ship/begin", "effect begin", vec![7]),
            ("POST /jobs/7/effects/complete/finish", "effect finish", vec![7]),
            ("POST /jobs", "enqueue", vec![]),
            ("GET /jobs/7", "GET /jobs/7", vec![]),
        ] {
            let call = call(line, "{}");
            assert_eq!((call.name.as_str(), call.jobs), (name, jobs), "{line}");
        }
        let beats = call("POST /jobs/heartbeat/bulk", r#"{"leases":[{"id":3,"lease":"x"},{"id":4}]}"#);
        assert_eq!((beats.jobs, beats.reports), (vec![3, 4], false));
        let reports = call("POST /jobs/report/bulk", r#"{"reports":[{"id":3}],"claim":{"worker_id":"w"}}"#);
        assert_eq!((reports.jobs, reports.claims, reports.reports), (vec![3], true, true));
        assert!(!call("POST /jobs/report/bulk", r#"{"reports":[{"id":3}]}"#).claims);
    }

    #[test]
    fn answers_say_what_is_handed_out() {
        let claim = call("POST /jobs/claim", "{}");
        assert_eq!(claim.handed(br#"{"id":7,"attempt":2,"payload":{"id":"x"}}"#), [(7, 2)]);
        assert_eq!(
            claim.handed(br#"{"jobs":[{"id":7,"attempt":1},{"id":8,"attempt":1}]}"#),
            [(7, 1), (8, 1)]
        );
        assert_eq!(claim.handed(b"null"), []);
        assert_eq!(call("POST /jobs/7/complete", "").handed(br#"{"id":7,"attempt":2}"#), []);
    }

    #[test]
    fn leases_become_short_and_nothing_else_changes() {
        let two = Seconds::from_ms(2_000);
        let claim = call("POST /jobs/claim", "{}");
        let body = claim.with_lease(br#"{"worker_id":"w","lease_seconds":60}"#, two).unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"lease_seconds":2,"worker_id":"w"}"#);
        let text = r#"{"claim":{"worker_id":"w"},"reports":[{"id":1,"result":{"big":123456789012345678901234567890, "a":1,"a":2}}]}"#;
        let report = call("POST /jobs/report/bulk", text);
        let body = String::from_utf8(report.with_lease(text.as_bytes(), two).unwrap()).unwrap();
        let claims = r#"{"claim":{"lease_seconds":2,"worker_id":"w"},"#;
        assert_eq!(body, text.replace(r#"{"claim":{"worker_id":"w"},"#, claims));
        assert_eq!(call("POST /jobs/7/complete", "{}").with_lease(b"{}", two), None);
        assert_eq!(claim.with_lease(b"not json", two), None);
    }
}
