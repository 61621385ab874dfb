//! What the table says about a route.

use serde_json::Value;

use crate::problem::Code;

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Does.
    Post,
    /// Replaces.
    Put,
    /// Removes.
    Delete,
}

impl Method {
    /// `GET`, …
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// Where a route stands in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Enqueue and look.
    Jobs,
    /// Claim and report.
    Workers,
    /// Review, cancel, erase.
    Review,
    /// Queues, types, workers, figures.
    Operating,
    /// Health and documentation; asks no store.
    Server,
}

impl Group {
    /// Every group, in the order of the documentation.
    pub const ALL: [Self; 5] = [Self::Jobs, Self::Workers, Self::Review, Self::Operating, Self::Server];

    /// Its name in the document.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Workers => "workers",
            Self::Review => "review",
            Self::Operating => "operating",
            Self::Server => "server",
        }
    }
}

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A text.
    Text,
    /// A whole number.
    Integer,
    /// A length of time in seconds.
    Seconds,
    /// RFC 3339 with zone.
    Time,
    /// True or false; the bare name is true.
    Flag,
    /// A schema of the document: the name of an enum.
    Named(&'static str),
}

/// A query parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ParamKind,
    /// What it does.
    pub about: &'static str,
}

/// A header of a request or an answer.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub about: &'static str,
}

/// A request body.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// Its schema.
    pub schema: &'static str,
    /// A body that is accepted.
    pub example: fn() -> Value,
}

/// A stream of lines that the route takes instead of its body.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Schema of a line of the request.
    pub schema: &'static str,
    /// Schemas of lines of the answer.
    pub answers: &'static [&'static str],
    /// What there is to know.
    pub about: &'static str,
    /// Lines that are accepted, and the answer to them.
    pub example: fn() -> (String, String),
}

/// What an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A value of this schema.
    Of(&'static str),
    /// A value of this schema, or `null`.
    OrNull(&'static str),
    /// The document that describes itself.
    Document,
    /// Text of this media type.
    Text(&'static str),
}

/// An answer that is no problem.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// When it comes.
    pub about: &'static str,
    /// What it holds.
    pub shape: Shape,
    /// An answer of this kind, if its shape has a schema.
    pub example: Option<fn() -> Value>,
    /// Headers beyond HTTP's own.
    pub headers: &'static [Header],
}

/// A route of the server.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path with its parameters in braces.
    pub path: &'static str,
    /// A name for generated clients.
    pub id: &'static str,
    /// Where it stands in the documentation.
    pub group: Group,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What else there is to know.
    pub about: &'static str,
    /// Query parameters.
    pub params: &'static [Param],
    /// Request headers beyond HTTP's own.
    pub headers: &'static [Header],
    /// The body, if it has one.
    pub body: Option<Body>,
    /// The stream that it takes instead, if it takes one.
    pub lines: Option<Lines>,
    /// Answers that are no problem.
    pub answers: &'static [Answer],
    /// Problems beyond those that every route of its kind has.
    pub problems: &'static [Code],
}

impl Route {
    /// A route to be completed with `..`.
    pub(crate) const EMPTY: Self = Self {
        method: Method::Get,
        path: "",
        id: "",
        group: Group::Server,
        summary: "",
        about: "",
        params: &[],
        headers: &[],
        body: None,
        lines: None,
        answers: &[],
        problems: &[],
    };

    /// Every problem that can come: its own, and those of every route of its kind.
    #[must_use]
    pub fn all_problems(&self) -> Vec<Code> {
        const ANY: &[Code] = &[
            Code::Unauthorized,
            Code::TokenInUrl,
            Code::Forbidden,
            Code::ProxiedWithoutToken,
            Code::UnknownHost,
            Code::InvalidRequest,
            Code::InternalError,
        ];
        const WRITING: &[Code] = &[Code::CrossOrigin];
        const BODY: &[Code] =
            &[Code::InvalidJson, Code::RequestTimeout, Code::BodyTooLarge, Code::UnsupportedMediaType];
        const STORE: &[Code] = &[Code::Overloaded, Code::StoreBusy, Code::StoreDamaged, Code::Draining];
        const STORE_WRITING: &[Code] = &[Code::StoreFull, Code::StoreReadOnly, Code::OutcomeUnknown];
        let writes = self.method != Method::Get;
        let asks_store = self.group != Group::Server;
        let sets = [
            (true, self.problems),
            (true, ANY),
            (!is_report(self.path), &[Code::RateLimited]),
            (writes, WRITING),
            (self.body.is_some(), BODY),
            (asks_store, STORE),
            (asks_store && writes, STORE_WRITING),
        ];
        let mut codes: Vec<Code> =
            sets.iter().filter(|(applies, _)| *applies).flat_map(|(_, codes)| *codes).copied().collect();
        codes.sort_by_key(|code| Code::ALL.iter().position(|other| other == code));
        codes.dedup();
        codes
    }
}

/// Whether a path, or the pattern of one, is that of a worker's report about jobs that it holds. These are never refused for
/// being too many: what has been done would be done again, and what is alive would lose its lease.
#[must_use]
pub fn is_report(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    let parts = [(); 4].map(|()| parts.next());
    match parts {
        [Some("jobs"), Some("heartbeat" | "report"), Some("bulk"), None]
        | [Some("jobs"), Some(_), Some("effects"), Some(_)] => true,
        [Some("jobs"), Some(_), Some(last), None] => {
            matches!(last, "complete" | "fail" | "release" | "heartbeat" | "checkpoint")
        }
        _ => false,
    }
}

/// An answer with a schema and an example.
pub(crate) const fn answer(
    status: u16,
    about: &'static str,
    schema: &'static str,
    example: fn() -> Value,
) -> Answer {
    Answer { status, about, shape: Shape::Of(schema), example: Some(example), headers: &[] }
}

/// A body with a schema and an example.
pub(crate) const fn body(schema: &'static str, example: fn() -> Value) -> Body {
    Body { schema, example }
}

/// A query parameter.
pub(crate) const fn param(name: &'static str, kind: ParamKind, about: &'static str) -> Param {
    Param { name, kind, about }
}

/// `limit` of every list.
pub(crate) const LIMIT: Param =
    param("limit", ParamKind::Integer, "At most this many entries, 1..=1000; default 100.");

/// `If-Match` of operators' calls.
pub(crate) const IF_MATCH: Header =
    Header { name: "If-Match", about: "The job's version that was looked at; the same as `seen_version`." };
