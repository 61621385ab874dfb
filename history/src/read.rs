//! Reads what the server answers.

use serde_json::Value;

use crate::call::{Attempt, Class, Status, Told, View, Whole};

impl View {
    /// A job in whole or in list form; `None` if it is none.
    #[must_use]
    pub fn read(job: &Value) -> Option<Self> {
        let count = |field: &str| job[field].as_u64().and_then(|count| u32::try_from(count).ok());
        let text = |field: &str| job[field].as_str().map(str::to_owned);
        let length = |field: &str| job[field].as_f64().map(milliseconds);
        let whole = job
            .get("payload")
            .is_some()
            .then(|| Whole { result: json_text(&job["result"]), checkpoint: json_text(&job["checkpoint"]) });
        Some(Self {
            id: job["id"].as_i64()?,
            status: status(&job["status"])?,
            version: job["version"].as_i64()?,
            attempt: count("attempt")?,
            retry_count: count("retry_count")?,
            max_retries: count("max_retries")?,
            lease_losses: count("lease_losses")?,
            max_lease_losses: count("max_lease_losses")?,
            release_count: count("release_count")?,
            verify: job["verify"] == true,
            cancel_requested: job["cancel_requested"] == true,
            review_unknown: job["on_unknown"] == "review",
            due_ms: time_ms(&job["available_at"])?,
            expires_ms: time_ms(&job["expires_at"]),
            max_age_ms: length("max_age_seconds"),
            timeout_ms: length("timeout_seconds"),
            worker: text("worker_id"),
            claimed_ms: time_ms(&job["claimed_at"]),
            until_ms: time_ms(&job["lease_expires_at"]),
            reason: job["failure"]["reason"].as_str().map(str::to_owned),
            mark: text("correlation_id"),
            key: text("idempotency_key"),
            ordering_key: text("ordering_key"),
            on_head_failure: text("on_head_failure"),
            limits: job["limits"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            whole,
        })
    }
}

impl Told {
    /// What is left of a pruned job.
    #[must_use]
    pub fn tombstone(left: &Value) -> Option<Self> {
        (left["pruned"] == true).then_some(())?;
        Some(Self::Tombstone { job: left["id"].as_i64()?, status: status(&left["status"])? })
    }

    /// A problem.
    #[must_use]
    pub fn problem(status: u16, problem: &Value) -> Self {
        Self::Refused {
            status,
            code: problem["code"].as_str().unwrap_or_default().to_owned(),
            may_report: problem["may_report"].as_bool(),
        }
    }
}

impl Attempt {
    /// An attempt of the history; `None` if it is none.
    #[must_use]
    pub fn read(attempt: &Value) -> Option<Self> {
        let class = match attempt["class"].as_str() {
            Some("transient") => Some(Class::Transient),
            Some("permanent") => Some(Class::Permanent),
            Some("unknown") => Some(Class::Unknown),
            _ => None,
        };
        Some(Self {
            worker: attempt["worker_id"].as_str()?.to_owned(),
            claimed_ms: time_ms(&attempt["claimed_at"])?,
            outcome: attempt["outcome"].as_str().map(str::to_owned),
            class,
        })
    }
}

fn status(value: &Value) -> Option<Status> {
    Some(match value.as_str()? {
        "pending" => Status::Pending,
        "running" => Status::Running,
        "completed" => Status::Completed,
        "failed" => Status::Failed,
        "cancelled" => Status::Cancelled,
        _ => return None,
    })
}

/// A value as text; nothing for `null`.
fn json_text(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

#[expect(clippy::cast_possible_truncation, reason = "the server allows no length of time beyond ten years")]
fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1e3).round() as i64
}

/// `2026-01-31T23:59:59.123Z` in milliseconds since 1970: the one form that the server writes.
#[must_use]
pub fn time_ms(value: &Value) -> Option<i64> {
    let text = value.as_str()?.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let ms: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = (days_since_1970(year, month, day) * 24 + hour) * 3600 + minute * 60 + second;
    Some(seconds * 1000 + ms)
}

/// Counts years from March, so that the odd day comes last.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_read() {
        for (text, ms) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("1970-01-02T00:00:01.5Z", 86_401_500),
            ("2000-02-29T12:00:00Z", 951_825_600_000),
            ("2026-11-30T22:08:43.007Z", 1_796_076_523_007),
        ] {
            assert_eq!(time_ms(&json!(text)), Some(ms), "{text}");
        }
        assert_eq!(time_ms(&json!("tomorrow")), None);
        assert_eq!(time_ms(&json!(null)), None);
    }

    #[test]
    fn lengths_are_read_in_milliseconds() {
        assert_eq!(milliseconds(1.5), 1500);
        assert_eq!(milliseconds(0.1), 100);
    }
}
