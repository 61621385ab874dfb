//! Lists of objects of ours inside a body.

use serde_json::value::RawValue;

use super::{BAD_FIELD_NAME, FieldCode, Kind, Reader, Unknown, Value};

impl<'a> Reader<'a> {
    /// Objects of a list of at most so many, read one by one with all that is wrong in any of them, and the list as it was
    /// sent. Fields that nobody asked for are errors.
    pub(crate) fn each<T>(
        &mut self,
        (name, max): (&'static str, usize),
        read: impl Fn(&mut Reader<'a>) -> T,
    ) -> Option<(Vec<T>, &'a RawValue)> {
        let entries = self.list(name, max)?;
        let sent = self.members.iter().find(|member| member.name == name)?.value;
        let mut found = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            let path = format!("{name}[{index}]");
            match Reader::object(&format!("{}{path}", self.prefix), entry, Unknown::Refuse) {
                Ok(mut child) => {
                    found.push(read(&mut child));
                    child.settle();
                    for (code, error) in child.errors {
                        self.push(code, error);
                    }
                }
                Err(_) if Kind::of(entry.get()) != Kind::Object => {
                    let message = format!("must be an object, not {}", Kind::of(entry.get()).name());
                    self.fail(&path, FieldCode::WrongType, message);
                }
                Err(_) => self.fail(&path, FieldCode::LoneSurrogate, BAD_FIELD_NAME),
            }
        }
        match sent {
            Value::Json(sent) => Some((found, sent)),
            Value::Query(_) => None,
        }
    }
}
