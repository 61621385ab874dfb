//! Finds the name that somebody probably meant.

/// The known name nearest to `given`, if one is near enough to be meant.
#[must_use]
pub fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let given = plain(given)?;
    known
        .into_iter()
        .filter_map(|name| Some((closeness(&given, &plain(name)?)?, name)))
        .min_by_key(|(closeness, _)| *closeness)
        .map(|(_, name)| name)
}

/// Lower case without separators, so that `maxRetries` and `max-retries` are `max_retries`. `None` for what is longer
/// than any name of ours.
fn plain(name: &str) -> Option<Vec<char>> {
    const LONGEST: usize = 64;
    let plain: Vec<char> = name
        .chars()
        .take(LONGEST + 1)
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    (!plain.is_empty() && plain.len() <= LONGEST).then_some(plain)
}

/// Smaller is closer. `None` if nobody would mistake one for the other.
fn closeness(given: &[char], name: &[char]) -> Option<usize> {
    let distance = distance(given, name);
    if distance <= given.len().max(name.len()).div_ceil(3).min(3) {
        return Some(distance);
    }
    // `delay` for `delay_seconds`, `retries` for `max_retries`, `payload_json` for `payload`.
    let (short, long) = if given.len() < name.len() { (given, name) } else { (name, given) };
    let is_part = short.len() >= 4 && (long.starts_with(short) || long.ends_with(short));
    is_part.then_some(4 + long.len() - short.len())
}

/// Edit distance: insert, delete, replace, swap two neighbours (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut second: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = above[j] + usize::from(x != y);
            let mut best = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && (*x, a[i - 1]) == (b[j - 1], *y) {
                best = best.min(second[j - 1] + 1);
            }
            row.push(best);
        }
        (second, above) = (above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] =
        &["type", "queue", "max_retries", "delay_seconds", "payload", "priority", "run_at", "retry"];

    #[test]
    fn near_names_are_found() {
        for (given, meant) in [
            ("max_retry", "max_retries"),
            ("maxRetries", "max_retries"),
            ("MAX-RETRIES", "max_retries"),
            ("max_retires", "max_retries"),
            ("retries", "max_retries"),
            ("delay", "delay_seconds"),
            ("delay_sec", "delay_seconds"),
            ("Type", "type"),
            ("typ", "type"),
            ("tpye", "type"),
            ("payload_json", "payload"),
            ("prio", "priority"),
            ("runat", "run_at"),
        ] {
            assert_eq!(nearest(given, KNOWN.iter().copied()), Some(meant), "{given}");
        }
    }

    #[test]
    fn swapped_neighbours_are_one_slip() {
        let plain = |text: &str| text.chars().collect::<Vec<char>>();
        for (a, b, expected) in [
            ("cmr", "crm", 1),
            ("", "ab", 2),
            ("ab", "ba", 1),
            ("abcd", "badc", 2),
            ("ca", "abc", 3),
            ("abc", "abc", 0),
        ] {
            assert_eq!(distance(&plain(a), &plain(b)), expected, "{a} {b}");
            assert_eq!(distance(&plain(b), &plain(a)), expected, "{b} {a}");
        }
        assert_eq!(nearest("cmr", ["mail", "crm"]), Some("crm"));
    }

    #[test]
    fn far_names_are_not() {
        let endless = "x".repeat(1_000_000);
        for given in ["", "foo", "🦀", "___", "customer", &endless] {
            assert_eq!(nearest(given, KNOWN.iter().copied()), None);
        }
    }

    #[test]
    fn distances() {
        let of = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!(of("", "abc"), 3);
        assert_eq!(of("abc", ""), 3);
        assert_eq!(of("same", "same"), 0);
    }
}
