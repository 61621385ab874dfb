//! Query strings at the door, cursors among them. The first line names the call, the rest is the query.
//!
//! Holds: nothing makes the door panic; what is accepted keeps the limits; what a client writes of it is read as the
//! same.

use tagwerk_api::door::{Door, parse_if_match, parse_job_id};
use tagwerk_api::query;

use super::{first_line, limits};

/// The property.
pub(crate) fn query(data: &[u8]) {
    let Some((call, rest)) = first_line(data) else { return };
    if call == "if_match" {
        return if_match(rest);
    }
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let limits = limits();
    let door = Door::new(limits.clone());
    let page = |limit: Option<u32>| assert!(limit.is_none_or(|limit| limits.list_page.contains(&limit)));
    let cursor = |after: Option<i64>| assert!(after.is_none_or(|after| (0..=limits.id_max).contains(&after)));
    let behind = |written: &str| written.trim_start_matches('?').to_owned();
    match call {
        "jobs" => {
            let Ok(read) = door.jobs_query(text) else { return };
            page(read.limit);
            cursor(read.after);
            assert_eq!(door.jobs_query(&behind(&read.to_query())), Ok(read));
        }
        "review" => {
            let Ok(read) = door.review_query(text) else { return };
            page(read.limit);
            cursor(read.after);
            assert_eq!(door.review_query(&behind(&read.to_query())), Ok(read));
        }
        "attempts" => {
            let Ok(read) = door.attempts_query(text) else { return };
            page(read.limit);
            cursor(read.after);
            assert_eq!(door.attempts_query(&behind(&read.to_query())), Ok(read));
        }
        "names" => {
            let Ok(read) = door.names_query(text) else { return };
            page(read.limit);
            assert!(read.after.iter().all(|name| (1..=limits.type_max_bytes).contains(&name.len())));
            assert_eq!(door.names_query(&behind(&read.to_query())), Ok(read));
        }
        "job" => {
            let Ok(read) = door.job_query(text) else { return };
            assert!(read.wait_ms.is_none_or(|wait| (0..=limits.wait_max_ms).contains(&wait)));
            assert_eq!(door.job_query(&behind(&read.to_query())), Ok(read));
        }
        "delete" => {
            let Ok(read) = door.delete(text, None) else { return };
            cursor(read.seen_version);
            let written = query::DeleteQuery { seen_version: read.seen_version }.to_query();
            assert_eq!(door.delete(&behind(&written), None), Ok(read));
        }
        "readyz" => drop(door.readyz_query(text)),
        "none" => assert_eq!(door.no_query(text).is_ok(), text.bytes().all(|byte| byte == b'&')),
        "id" => id(text),
        "type" => {
            let Ok(name) = door.type_name(text) else { return };
            assert!(name == text && (1..=limits.type_max_bytes).contains(&name.len()));
        }
        _ => {}
    }
}

/// An id in a path names a job only if it is written as the number is.
fn id(text: &str) {
    let Ok(id) = parse_job_id(text) else { return };
    assert!(id > 0);
    assert_eq!(id.to_string(), text.trim_start_matches('0'));
}

fn if_match(header: &[u8]) {
    let Ok(version) = parse_if_match(header) else { return };
    assert!(version >= 0);
    assert_eq!(parse_if_match(format!("\"{version}\"").as_bytes()), Ok(version));
}
