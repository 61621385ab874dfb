//! Spaces: jobs of one are another world to those of the next. A name that has to be unique within a space is kept with the
//! name of the space before it; between the two stands a byte that no client can send.

use std::borrow::Cow;

/// What no name and no key holds.
const BETWEEN: char = '\0';

/// A key as it is kept: with its space, if it has one.
#[must_use]
pub fn in_space<'a>(space: Option<&str>, key: &'a str) -> Cow<'a, str> {
    match space {
        Some(space) => Cow::Owned(format!("{space}{BETWEEN}{key}")),
        None => Cow::Borrowed(key),
    }
}

/// A key as its owner knows it.
#[must_use]
pub fn without_space(kept: &str) -> &str {
    kept.split_once(BETWEEN).map_or(kept, |(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_space_is_no_other_ones() {
        let kept = [
            in_space(None, "k"),
            in_space(Some("a"), "k"),
            in_space(Some("b"), "k"),
            in_space(Some("a"), ""),
        ];
        for (n, one) in kept.iter().enumerate() {
            assert!(kept.iter().skip(n + 1).all(|other| other != one), "{one:?}");
        }
        assert!(kept.iter().zip(["k", "k", "k", ""]).all(|(kept, key)| without_space(kept) == key));
    }
}
