//! Takes fields by name, each with the type it must have, and collects all that is wrong.

mod each;

use std::borrow::Cow;
use std::ops::RangeInclusive;

use serde_json::value::RawValue;

use super::body::{self, shown};
use super::json::{self, Kind, MEMBERS_MAX, Members};
use super::nearest::nearest;
use super::text::{Alphabet, TextRule};
use crate::decimal::{Scaled, scaled};
use crate::names::Named;
use crate::problem::{Code, FieldCode, FieldError, Refusal};
use crate::{Json, PriorityLabel, Seconds, TimeError, parse_rfc3339};

/// More errors help nobody.
const ERRORS_MAX: usize = 100;
/// More names of ignored fields do not fit well into a header.
pub(crate) const IGNORED_MAX: usize = 32;

/// Room for the names that a kind of request asks for, as many as a job has.
const FIELDS_USUAL: usize = 32;

/// All that can be wrong with a name that has passed as JSON.
const BAD_FIELD_NAME: &str = "has a field whose name is not Unicode text";

/// What happens to fields that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// They are errors: a misspelt `max_retry` must not be ignored.
    Refuse,
    /// They are named: a report must not be lost to a spelling.
    Ignore,
}

/// A value and where it came from.
#[derive(Clone, Copy)]
enum Value<'a> {
    Json(&'a RawValue),
    Query(&'a str),
}

struct Member<'a> {
    name: Cow<'a, str>,
    value: Value<'a>,
    taken: bool,
}

/// The largest JSON value that a field takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonRule {
    pub(crate) max_bytes: usize,
    pub(crate) max_depth: usize,
    /// What is wrong when it is larger.
    pub(crate) too_large: FieldCode,
}

/// The fields of one object, or the parameters of a query.
pub(crate) struct Reader<'a> {
    /// What stands before each name in messages: empty or `jobs[3].`
    prefix: String,
    unknown: Unknown,
    members: Vec<Member<'a>>,
    known: Vec<&'static str>,
    errors: Vec<(FieldCode, FieldError)>,
    ignored: Vec<String>,
}

impl<'a> Reader<'a> {
    /// The fields of a body.
    pub(crate) fn body(body: &'a [u8], unknown: Unknown) -> Result<Self, Refusal> {
        let text = body::text(body)?;
        let not_json = |error: serde_json::Error| {
            Refusal::new(Code::InvalidJson, format!("the body is not JSON that can be read: {error}"))
        };
        if Kind::of(text) != Kind::Object {
            let value: &RawValue = serde_json::from_str(text).map_err(not_json)?;
            return Err(not_an_object("", value));
        }
        let members = serde_json::from_str(text).map_err(not_json)?;
        Ok(Self::new(String::new(), unknown, members))
    }

    /// The fields of a line of a stream.
    pub(crate) fn line(line: &'a [u8]) -> Result<Self, Refusal> {
        let text = body::line_text(line)?;
        let not_json = |error: serde_json::Error| {
            let says = error.to_string().replace(" at line 1 column ", " at column ");
            Refusal::new(Code::InvalidJson, format!("the line is not JSON that can be read: {says}"))
        };
        if Kind::of(text) != Kind::Object {
            let value: &RawValue = serde_json::from_str(text).map_err(not_json)?;
            let got = Kind::of(value.get()).name();
            let message = format!("the line must be a JSON object, not {got}");
            return Err(Refusal::field("", FieldCode::WrongType, message));
        }
        let members = serde_json::from_str(text).map_err(not_json)?;
        Ok(Self::new(String::new(), Unknown::Refuse, members))
    }

    /// The fields of a value inside a body; `path` is where it stands.
    pub(crate) fn object(path: &str, value: &'a RawValue, unknown: Unknown) -> Result<Self, Refusal> {
        if Kind::of(value.get()) != Kind::Object {
            return Err(not_an_object(path, value));
        }
        let members = serde_json::from_str(value.get());
        let members = members.map_err(|_| Refusal::field(path, FieldCode::LoneSurrogate, BAD_FIELD_NAME))?;
        Ok(Self::new(format!("{path}."), unknown, members))
    }

    /// The parameters of a query, already decoded.
    pub(crate) fn query(pairs: &'a [(String, String)]) -> Self {
        let member = |(name, value): &'a (String, String)| Member {
            name: Cow::Borrowed(name),
            value: Value::Query(value),
            taken: false,
        };
        Self::of(String::new(), Unknown::Refuse, pairs.iter().map(member).collect())
    }

    fn of(prefix: String, unknown: Unknown, members: Vec<Member<'a>>) -> Self {
        let known = Vec::with_capacity(FIELDS_USUAL);
        Self { prefix, unknown, members, known, errors: Vec::new(), ignored: Vec::new() }
    }

    fn new(prefix: String, unknown: Unknown, members: Members<'a>) -> Self {
        let total = members.total;
        let member = |(name, value)| Member { name, value: Value::Json(value), taken: false };
        let mut reader = Self::of(prefix, unknown, members.kept.into_iter().map(member).collect());
        if total > MEMBERS_MAX {
            let path = reader.prefix.trim_end_matches('.').to_owned();
            let message = format!("has {total} fields; at most {MEMBERS_MAX} are read");
            reader.push(FieldCode::TooMany, FieldError::new(path, FieldCode::TooMany, message));
        }
        reader
    }

    /// Reports an error of a field.
    pub(crate) fn fail(&mut self, name: &str, code: FieldCode, message: impl Into<String>) {
        let field = format!("{}{name}", self.prefix);
        self.push(code, FieldError::new(field, code, message));
    }

    fn push(&mut self, code: FieldCode, error: FieldError) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push((code, error));
        }
    }

    /// Whether the field is there with a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name && !is_null(member.value))
    }

    /// Reports a field that must be there and is not.
    pub(crate) fn require(&mut self, name: &'static str) {
        if !self.has(name) {
            self.fail(name, FieldCode::Missing, "is needed");
        }
    }

    /// Reports two fields that cannot both be given.
    pub(crate) fn exclude(&mut self, name: &'static str, other: &'static str) {
        if self.has(name) && self.has(other) {
            self.fail(
                name,
                FieldCode::Conflict,
                format!("cannot be given together with `{other}`; send one of them"),
            );
        }
    }

    /// Ends the reading: names what was ignored, or refuses with everything that is wrong.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, Refusal> {
        self.settle();
        if self.errors.is_empty() { Ok(self.ignored) } else { Err(Refusal::fields(self.errors)) }
    }

    /// Judges the fields that nobody asked for.
    fn settle(&mut self) {
        let members = std::mem::take(&mut self.members);
        for member in members.iter().filter(|member| !member.taken) {
            let name = shown(&member.name);
            match self.unknown {
                Unknown::Refuse => {
                    let message = unknown_message(&name, &self.known);
                    self.fail(&name, FieldCode::UnknownField, message);
                }
                Unknown::Ignore if self.ignored.len() < IGNORED_MAX => {
                    self.ignored.push(format!("{}{}", self.prefix, header_safe(&name)));
                }
                Unknown::Ignore => {}
            }
        }
    }

    /// The field as it stands there, `null` included.
    fn take(&mut self, name: &'static str) -> Option<Value<'a>> {
        self.known.push(name);
        let mut found = None;
        let mut twice = false;
        for member in self.members.iter_mut().filter(|member| member.name == name) {
            member.taken = true;
            twice |= found.replace(member.value).is_some();
        }
        if twice {
            self.fail(name, FieldCode::DuplicateField, "stands there twice; send it once");
            return None;
        }
        found
    }

    /// The field if it has a value.
    fn value(&mut self, name: &'static str) -> Option<Value<'a>> {
        self.take(name).filter(|value| !is_null(*value))
    }

    /// A field that may be there and whose value does not matter.
    pub(crate) fn skip(&mut self, name: &'static str) {
        self.take(name);
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &'static str, rule: TextRule) -> Option<String> {
        let value = self.value(name)?;
        self.checked_text(name, value, rule)
    }

    fn checked_text(&mut self, name: &str, value: Value<'a>, rule: TextRule) -> Option<String> {
        let text = match value {
            Value::Query(text) => Cow::Borrowed(text),
            Value::Json(raw) if Kind::of(raw.get()) == Kind::Text => {
                let read = json::unescape(raw.get());
                if read.lone_surrogates && rule.alphabet != Alphabet::Any {
                    self.fail(
                        name,
                        FieldCode::LoneSurrogate,
                        "has half a surrogate pair, which is not Unicode text",
                    );
                    return None;
                }
                read.text
            }
            Value::Json(raw) => return self.wrong_type(name, "a text", raw),
        };
        match rule.check(&text) {
            Ok(()) => Some(text.into_owned()),
            Err((code, message)) => self.refuse(name, code, message),
        }
    }

    /// Some texts, at most `max` of them; an empty list is refused, since it could mean none or all.
    pub(crate) fn texts(&mut self, name: &'static str, max: usize, rule: TextRule) -> Option<Vec<String>> {
        let values = self.list(name, max)?;
        if values.is_empty() {
            return self.refuse(name, FieldCode::Empty, "must not be empty; leave the field out instead");
        }
        let count = values.len();
        let texts: Vec<String> = values
            .into_iter()
            .enumerate()
            .filter_map(|(index, raw)| self.checked_text(&format!("{name}[{index}]"), Value::Json(raw), rule))
            .collect();
        (texts.len() == count).then_some(texts)
    }

    /// The elements of an array.
    pub(crate) fn list(&mut self, name: &'static str, max: usize) -> Option<Vec<&'a RawValue>> {
        let raw = self.json_value(name)?;
        let Some(elements) = json::elements(raw, max) else {
            return self.wrong_type(name, "an array", raw);
        };
        if elements.total > max {
            let message = format!("has {} entries; at most {max} are allowed", elements.total);
            return self.refuse(name, FieldCode::TooMany, message);
        }
        Some(elements.kept)
    }

    /// A value inside a body, untouched. In a query there is none.
    fn json_value(&mut self, name: &'static str) -> Option<&'a RawValue> {
        match self.value(name)? {
            Value::Json(raw) => Some(raw),
            Value::Query(_) => self.refuse(name, FieldCode::WrongType, "cannot be given in a query"),
        }
    }

    /// The value as it is, for a reading of its own.
    pub(crate) fn raw(&mut self, name: &'static str) -> Option<&'a RawValue> {
        self.json_value(name)
    }

    /// An object of ours inside this one.
    pub(crate) fn nested<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> T,
    ) -> Option<T> {
        let raw = self.json_value(name)?;
        match Reader::object(&format!("{}{name}", self.prefix), raw, self.unknown) {
            Ok(mut child) => {
                let value = read(&mut child);
                child.settle();
                let Reader { errors, ignored, .. } = child;
                for (code, error) in errors {
                    self.push(code, error);
                }
                self.ignored.extend(ignored);
                Some(value)
            }
            Err(_) if Kind::of(raw.get()) != Kind::Object => self.wrong_type(name, "an object", raw),
            Err(_) => self.refuse(name, FieldCode::LoneSurrogate, BAD_FIELD_NAME),
        }
    }

    /// Any JSON value, byte for byte. `null` counts as absent.
    pub(crate) fn json(&mut self, name: &'static str, rule: JsonRule) -> Option<Json> {
        let raw = self.json_value(name)?;
        self.checked_json(name, raw, rule)
    }

    /// Any JSON value, byte for byte. `null` is a value.
    pub(crate) fn json_or_null(&mut self, name: &'static str, rule: JsonRule) -> Option<Json> {
        match self.take(name)? {
            Value::Json(raw) => self.checked_json(name, raw, rule),
            Value::Query(_) => None,
        }
    }

    fn checked_json(&mut self, name: &'static str, raw: &RawValue, rule: JsonRule) -> Option<Json> {
        let bytes = raw.get().len();
        if bytes > rule.max_bytes {
            let message = format!("has {bytes} bytes; at most {} are allowed", rule.max_bytes);
            return self.refuse(name, rule.too_large, message);
        }
        let depth = json::depth(raw.get());
        if depth > rule.max_depth {
            let message = format!("is nested {depth} levels deep; at most {} are allowed", rule.max_depth);
            return self.refuse(name, FieldCode::TooDeep, message);
        }
        Some(Json::from(raw))
    }

    /// Anything as text that every store can keep: a text as it is, other JSON as it is written. Cannot fail.
    pub(crate) fn anything(&mut self, name: &'static str) -> Option<String> {
        let text = match self.value(name)? {
            Value::Query(text) => Cow::Borrowed(text),
            Value::Json(raw) if Kind::of(raw.get()) == Kind::Text => json::unescape(raw.get()).text,
            Value::Json(raw) => Cow::Borrowed(raw.get()),
        };
        Some(if text.contains('\0') { text.replace('\0', "") } else { text.into_owned() })
    }

    /// True or false. In a query the bare name is true.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        match self.value(name)? {
            Value::Query("" | "true" | "1") => Some(true),
            Value::Query("false" | "0") => Some(false),
            Value::Query(_) => self.refuse(name, FieldCode::WrongType, "must be true or false"),
            Value::Json(raw) if Kind::of(raw.get()) == Kind::Bool => Some(raw.get() == "true"),
            Value::Json(raw) => self.wrong_type(name, "true or false", raw),
        }
    }

    /// One of the names of an enum.
    pub(crate) fn choice<T: Named>(&mut self, name: &'static str) -> Option<T> {
        let text = self.text(name, TextRule::ANY)?;
        let chosen = T::named(&text);
        if chosen.is_none() {
            let message = format!("must be one of {}, not {:?}", T::NAMES.join(", "), shown(&text));
            self.fail(name, FieldCode::UnknownValue, message);
        }
        chosen
    }

    /// A level or a number up to `max`.
    pub(crate) fn priority(&mut self, name: &'static str, max: u8) -> Option<u8> {
        let is_text = |value| matches!(value, Value::Json(raw) if Kind::of(raw.get()) == Kind::Text);
        if self.members.iter().any(|member| member.name == name && is_text(member.value)) {
            return self.choice::<PriorityLabel>(name).map(PriorityLabel::value);
        }
        self.integer(name, 0..=i64::from(max)).and_then(|value| u8::try_from(value).ok())
    }

    /// A whole number.
    pub(crate) fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let number = self.number(name, "a whole number", 0)?;
        if !range.contains(&number.value) {
            let message = format!("must be between {} and {}", range.start(), range.end());
            return self.refuse(name, FieldCode::OutOfRange, message);
        }
        if !number.is_exact() {
            return self.refuse(name, FieldCode::WrongType, "must be a whole number, without a fraction");
        }
        Some(number.value)
    }

    /// A whole number of a size that counts need.
    pub(crate) fn count(&mut self, name: &'static str, range: &RangeInclusive<u32>) -> Option<u32> {
        let range = i64::from(*range.start())..=i64::from(*range.end());
        self.integer(name, range).and_then(|value| u32::try_from(value).ok())
    }

    /// A length of time, given in seconds, in milliseconds.
    pub(crate) fn seconds(&mut self, name: &'static str, range: &RangeInclusive<i64>) -> Option<i64> {
        let number = self.number(name, "a number of seconds", 3)?;
        if number.lies_in(range) {
            return Some(number.value);
        }
        let (min, max) = (Seconds::from_ms(*range.start()), Seconds::from_ms(*range.end()));
        self.refuse(name, FieldCode::OutOfRange, format!("must be between {min} and {max} seconds"))
    }

    /// A number that need not be whole.
    pub(crate) fn factor(&mut self, name: &'static str, range: &RangeInclusive<f64>) -> Option<f64> {
        let text = self.number_text(name, "a number")?;
        match text.parse::<f64>() {
            Ok(number) if range.contains(&number) => Some(number),
            _ => {
                let message = format!("must be between {} and {}", range.start(), range.end());
                self.refuse(name, FieldCode::OutOfRange, message)
            }
        }
    }

    fn number(&mut self, name: &'static str, wanted: &str, power: i64) -> Option<Scaled> {
        let text = self.number_text(name, wanted)?;
        let number = scaled(text, power);
        if number.is_none() {
            self.fail(name, FieldCode::WrongType, format!("must be {wanted}"));
        }
        number
    }

    fn number_text(&mut self, name: &'static str, wanted: &str) -> Option<&'a str> {
        match self.value(name)? {
            Value::Query(text) => Some(text),
            Value::Json(raw) if Kind::of(raw.get()) == Kind::Number => Some(raw.get()),
            Value::Json(raw) => self.wrong_type(name, wanted, raw),
        }
    }

    /// An instant, in milliseconds since the epoch.
    pub(crate) fn time(&mut self, name: &'static str) -> Option<i64> {
        let value = self.value(name)?;
        if let Value::Json(raw) = value
            && Kind::of(raw.get()) != Kind::Text
        {
            return self.wrong_type(name, "a time as text, such as \"2026-07-01T12:00:00Z\"", raw);
        }
        let text = self.checked_text(name, value, TextRule::ANY)?;
        match parse_rfc3339(&text) {
            Ok(ms) => Some(ms),
            Err(error) => {
                let code = match error {
                    TimeError::WithoutZone => FieldCode::TimeWithoutZone,
                    TimeError::Malformed => FieldCode::BadTime,
                    TimeError::OutOfRange => FieldCode::OutOfRange,
                };
                self.refuse(name, code, error.to_string())
            }
        }
    }

    fn refuse<T>(&mut self, name: &str, code: FieldCode, message: impl Into<String>) -> Option<T> {
        self.fail(name, code, message);
        None
    }

    fn wrong_type<T>(&mut self, name: &str, wanted: &str, raw: &RawValue) -> Option<T> {
        let got = Kind::of(raw.get()).name();
        self.refuse(name, FieldCode::WrongType, format!("must be {wanted}, not {got}"))
    }
}

fn is_null(value: Value<'_>) -> bool {
    matches!(value, Value::Json(raw) if Kind::of(raw.get()) == Kind::Null)
}

fn not_an_object(path: &str, value: &RawValue) -> Refusal {
    let got = Kind::of(value.get()).name();
    let what = if path.is_empty() { "the body" } else { "it" };
    Refusal::field(path, FieldCode::WrongType, format!("{what} must be a JSON object, not {got}"))
}

fn unknown_message(name: &str, known: &[&'static str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("is not known here; did you mean `{meant}`?"),
        None if known.is_empty() => "is not known here; nothing can be given".to_owned(),
        None => format!("is not known here; known are {}", known.join(", ")),
    }
}

/// A name as it may stand in a header.
fn header_safe(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_graphic() && c != ',' { c } else { '?' }).collect()
}
