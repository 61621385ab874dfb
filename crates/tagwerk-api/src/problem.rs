//! Error answers: RFC 9457 problems and the one table of their codes.

mod table;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Existing, LimitJobs};

pub use table::{Code, markdown};

/// An error answer, `application/problem+json`. Members that a code does not use are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:tagwerk:problem:` and the code.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// The kind of problem in a few words; the same for every problem of the code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened here and what to do about it.
    pub detail: String,
    /// Stable name of the kind of problem, kebab-case.
    pub code: String,
    /// Whether the same request may be sent again as it is (after `Retry-After` where given).
    pub retryable: bool,
    /// For requests that were read but refused: what is wrong, field by field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The job (or what is left of it) that stands in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Box<Existing>>,
    /// To a worker: stop working on this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<bool>,
    /// To a worker: whether finishing and reporting may still count. If not, drop the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_report: Option<bool>,
    /// The outcome that counted when this report came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<String>,
    /// The version that the job has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_version: Option<i64>,
    /// The jobs that name the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use: Option<Box<LimitJobs>>,
}

impl Problem {
    /// The problem of this code, with a sentence about the case at hand.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            type_uri: code.type_uri(),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code: code.name().to_owned(),
            retryable: code.retryable(),
            errors: Vec::new(),
            job: None,
            stop: None,
            may_report: None,
            counted: None,
            current_version: None,
            in_use: None,
        }
    }

    /// The problem of this code, told by the code's own advice.
    #[must_use]
    pub fn of(code: Code) -> Self {
        Self::new(code, code.advice())
    }

    /// The code, if this version knows it.
    #[must_use]
    pub fn known_code(&self) -> Option<Code> {
        Code::from_name(&self.code)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): {}", self.title, self.code, self.detail)?;
        for error in &self.errors {
            write!(f, "\n  {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// Where: `priority`, `retry.factor`, `jobs[3].priority`; empty for the body as a whole.
    pub field: String,
    /// Stable name of what is wrong, kebab-case.
    pub code: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "{}", self.message),
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

/// What can be wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldCode {
    /// No field or query parameter of this name exists here.
    UnknownField,
    /// The field stands there twice.
    DuplicateField,
    /// The field is needed.
    Missing,
    /// Another kind of value is needed.
    WrongType,
    /// A number, length of time or instant outside what is allowed.
    OutOfRange,
    /// Not one of the listed values.
    UnknownValue,
    /// A text without content.
    Empty,
    /// A text with too many bytes.
    TooLong,
    /// Too many entries.
    TooMany,
    /// A character that may not stand there: NUL, or in names anything that does not show.
    BadCharacter,
    /// A `\ud800`-like escape without its other half: not Unicode text.
    LoneSurrogate,
    /// A name that uses characters which are not allowed there.
    BadName,
    /// Not RFC 3339.
    BadTime,
    /// A time of day without zone.
    TimeWithoutZone,
    /// Two fields that contradict each other.
    Conflict,
    /// Nested too deeply. Makes the whole problem `invalid-json`.
    TooDeep,
    /// The payload has too many bytes.
    PayloadTooLarge,
    /// The result has too many bytes.
    ResultTooLarge,
    /// The checkpoint has too many bytes.
    CheckpointTooLarge,
}

impl FieldCode {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownField => "unknown-field",
            Self::DuplicateField => "duplicate-field",
            Self::Missing => "missing",
            Self::WrongType => "wrong-type",
            Self::OutOfRange => "out-of-range",
            Self::UnknownValue => "unknown-value",
            Self::Empty => "empty",
            Self::TooLong => "too-long",
            Self::TooMany => "too-many",
            Self::BadCharacter => "bad-character",
            Self::LoneSurrogate => "lone-surrogate",
            Self::BadName => "bad-name",
            Self::BadTime => "bad-time",
            Self::TimeWithoutZone => "time-without-zone",
            Self::Conflict => "conflict",
            Self::TooDeep => "too-deep",
            Self::PayloadTooLarge => "payload-too-large",
            Self::ResultTooLarge => "result-too-large",
            Self::CheckpointTooLarge => "checkpoint-too-large",
        }
    }

    /// The code of the whole problem when this is all that is wrong.
    const fn problem(self) -> Code {
        match self {
            Self::TooDeep => Code::InvalidJson,
            Self::PayloadTooLarge => Code::PayloadTooLarge,
            Self::ResultTooLarge => Code::ResultTooLarge,
            Self::CheckpointTooLarge => Code::CheckpointTooLarge,
            _ => Code::InvalidRequest,
        }
    }
}

/// A request that is refused before anything was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", .code.name())]
pub struct Refusal {
    /// The kind of problem.
    pub code: Code,
    /// What happened and what to do.
    pub detail: String,
    /// What is wrong, field by field.
    pub errors: Vec<FieldError>,
}

impl Refusal {
    /// A refusal without a field to blame.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), errors: Vec::new() }
    }

    /// A refusal of one field, for judgements that need more than the request (a clock, the store).
    #[must_use]
    pub fn field(field: impl Into<String>, code: FieldCode, message: impl Into<String>) -> Self {
        Self::fields(vec![(code, FieldError::new(field, code, message))])
    }

    /// A refusal of several fields. The code of the whole is that of its errors where they agree.
    pub(crate) fn fields(errors: Vec<(FieldCode, FieldError)>) -> Self {
        let codes = || errors.iter().map(|(code, _)| code.problem());
        let code = if codes().any(|code| code == Code::InvalidJson) {
            Code::InvalidJson
        } else {
            let first = codes().next().unwrap_or(Code::InvalidRequest);
            if codes().all(|code| code == first) { first } else { Code::InvalidRequest }
        };
        let detail = match errors.as_slice() {
            [(_, only)] => only.to_string(),
            [(_, first), rest @ ..] => format!("{first} (and {} more, see errors)", rest.len()),
            [] => code.advice().to_owned(),
        };
        Self { code, detail, errors: errors.into_iter().map(|(_, error)| error).collect() }
    }
}

impl FieldError {
    /// An error of this kind in this field.
    #[must_use]
    pub fn new(field: impl Into<String>, code: FieldCode, message: impl Into<String>) -> Self {
        Self { field: field.into(), code: code.name().to_owned(), message: message.into() }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self { errors: refusal.errors, ..Self::new(refusal.code, refusal.detail) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_without_use_are_left_out() {
        let problem = Problem { may_report: Some(true), stop: Some(true), ..Problem::of(Code::LeaseLost) };
        assert_eq!(
            serde_json::to_string(&problem).unwrap(),
            "{\"type\":\"urn:tagwerk:problem:lease-lost\",\"title\":\"Lease lost\",\"status\":409,\
             \"detail\":\"Stop; begin nothing new. If may_report is true, the outcome can still be reported.\",\
             \"code\":\"lease-lost\",\"retryable\":false,\"stop\":true,\"may_report\":true}"
        );
    }

    #[test]
    fn a_problem_survives_the_wire() {
        let refusal = Refusal::field("run_at", FieldCode::OutOfRange, "must lie within 10 years");
        let problem = Problem::from(refusal);
        let text = serde_json::to_string(&problem).unwrap();
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
        assert_eq!(problem.known_code(), Some(Code::InvalidRequest));
        assert_eq!(
            problem.to_string(),
            "Invalid request (invalid-request): run_at: must lie within 10 years\n  run_at: must lie within 10 years"
        );
    }

    #[test]
    fn the_code_of_the_whole_is_that_of_its_errors_where_they_agree() {
        let error = |code: FieldCode| (code, FieldError::new("x", code, "m"));
        let whole = |codes: &[FieldCode]| Refusal::fields(codes.iter().copied().map(error).collect()).code;
        assert_eq!(whole(&[FieldCode::ResultTooLarge]), Code::ResultTooLarge);
        assert_eq!(whole(&[FieldCode::ResultTooLarge, FieldCode::Missing]), Code::InvalidRequest);
        assert_eq!(whole(&[FieldCode::Missing, FieldCode::TooDeep]), Code::InvalidJson);
        assert_eq!(whole(&[]), Code::InvalidRequest);
    }
}
