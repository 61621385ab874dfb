//! Values as people read them, and the way to stdout.

use std::io::Write;

use tagwerk_client::api::answer::Counts;
use tagwerk_client::api::{Seconds, Time};

use super::exit::Exit;
use super::failure::Failure;

/// Prints text and a line end, if it has none.
pub(crate) fn print(text: &str) -> Result<Exit, Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    stdout.flush()?;
    Ok(Exit::Done)
}

/// `2026-07-01 12:00:00Z`
pub(crate) fn time(time: Time) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{}Z", seconds.replace('T', " ")))
}

/// A time, or nothing.
pub(crate) fn maybe_time(value: Option<Time>) -> String {
    value.map_or_else(|| "-".to_owned(), time)
}

/// Texts, or nothing.
pub(crate) fn maybe(value: Option<&str>) -> String {
    value.map_or_else(|| "-".to_owned(), line)
}

/// A length of time in at most two units: `3 d 4 h`, `90 s` as `1 m 30 s`, `0.2 s`.
pub(crate) fn duration(length: Seconds) -> String {
    let seconds = length.ms() / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match () {
        () if length.ms().abs() < 10_000 => format!("{length} s"),
        () if days != 0 => format!("{days} d {hours} h"),
        () if hours != 0 => format!("{hours} h {minutes} m"),
        () if minutes != 0 => format!("{minutes} m {} s", seconds % 60),
        () => format!("{seconds} s"),
    }
}

/// A length of time, or nothing.
pub(crate) fn maybe_duration(length: Option<Seconds>) -> String {
    length.map_or_else(|| "-".to_owned(), duration)
}

/// The counts that most tables show.
pub(crate) fn counts(counts: &Counts) -> [String; 6] {
    [counts.pending, counts.blocked, counts.running, counts.failed, counts.completed, counts.cancelled]
        .map(|count| count.to_string())
}

/// Text of others on one line, without anything that could move the cursor or turn the reading direction.
pub(crate) fn line(text: &str) -> String {
    text.split_whitespace().map(harmless).collect::<Vec<_>>().join(" ")
}

/// The beginning of a text on one line.
pub(crate) fn short(text: &str, most: usize) -> String {
    let text = line(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Text of others on as many lines as it has.
pub(crate) fn lines(text: &str) -> String {
    text.lines().map(|line| harmless(&line.replace('\t', "    "))).collect::<Vec<_>>().join("\n")
}

fn harmless(text: &str) -> String {
    let turns = |letter: char| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|letter| if letter.is_control() || turns(letter) { '\u{fffd}' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_lengths() {
        assert_eq!(time(Time::from_ms(1_782_907_200_007)), "2026-07-01 12:00:00Z");
        for (ms, text) in [
            (0, "0 s"),
            (200, "0.2 s"),
            (9_999, "9.999 s"),
            (10_000, "10 s"),
            (90_000, "1 m 30 s"),
            (3_600_000, "1 h 0 m"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(duration(Seconds::from_ms(ms)), text);
        }
    }

    #[test]
    fn text_of_others_cannot_write_on_the_terminal() {
        assert_eq!(line("a\u{1b}[2Jb\r\nc\td  e\0"), "a\u{fffd}[2Jb c d e\u{fffd}");
        assert_eq!(line("x\u{202e}y"), "x\u{fffd}y");
        assert_eq!(lines("a\n\tb\u{7}\n"), "a\n    b\u{fffd}");
        assert_eq!(short("abcdef", 4), "abc…");
        assert_eq!(short("abcd", 4), "abcd");
    }
}
