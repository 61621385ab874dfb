//! What must hold for whatever is sent: the properties that the fuzz targets of `fuzz/` try with made-up input, and that
//! the test below tries with every file of their corpus.
//!
//! A property takes bytes and panics when it does not hold. Not part of the binary.

pub(crate) mod body;
mod body_written;
pub(crate) mod config;
pub(crate) mod query;
pub(crate) mod value;

use super::config as server;

/// The limits of a server whose operator has set nothing.
pub(crate) fn limits() -> tagwerk_api::door::DoorLimits {
    server::Config::default().door_limits()
}

/// The first line and what follows it. `None` if the line is no text.
fn first_line(data: &[u8]) -> Option<(&str, &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = data.split_at(end);
    Some((std::str::from_utf8(line).ok()?, &rest[1..]))
}

/// Every file of a target's corpus through its property.
#[cfg(test)]
pub(crate) fn replay(target: &str, property: fn(&[u8])) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut count = 0;
    for file in files {
        let path = file.unwrap().path();
        // The harness shows it when the property does not hold.
        println!("{}", path.display());
        property(&std::fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

#[cfg(test)]
mod tests {
    use super::replay;

    #[test]
    fn bodies() {
        replay("body", super::body::body);
    }

    #[test]
    fn queries() {
        replay("query", super::query::query);
    }

    #[test]
    fn configurations() {
        replay("config", super::config::config);
    }

    #[test]
    fn values() {
        replay("value", super::value::value);
    }
}
