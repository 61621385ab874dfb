//! A value as it was given, before its key says what it must be.

use tagwerk_core::limits::{self, DAY_MS, HOUR_MS, MINUTE_MS, Range, SECOND_MS};
use tagwerk_core::rate::Rate;

/// A value from the file, or text from the environment or a flag.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Raw {
    /// Text. From environment and flags everything is text.
    Text(String),
    /// A number of the file, as it is written.
    Number(String),
    /// `true` or `false` of the file.
    Bool(bool),
    /// An array of texts of the file.
    List(Vec<String>),
    /// Something of the file that no key takes.
    Other(&'static str),
}

impl From<toml::Value> for Raw {
    fn from(value: toml::Value) -> Self {
        match value {
            toml::Value::String(text) => Self::Text(text),
            toml::Value::Integer(number) => Self::Number(number.to_string()),
            toml::Value::Float(number) => Self::Number(number.to_string()),
            toml::Value::Boolean(flag) => Self::Bool(flag),
            toml::Value::Array(values) => {
                let texts: Option<Vec<String>> =
                    values.into_iter().map(|value| value.as_str().map(str::to_owned)).collect();
                texts.map_or(Self::Other("an array of something else than texts"), Self::List)
            }
            toml::Value::Datetime(_) => Self::Other("a date"),
            toml::Value::Table(_) => Self::Other("a table"),
        }
    }
}

impl Raw {
    /// Text as it stands.
    pub(super) fn text(&self) -> Result<&str, String> {
        match self {
            Self::Text(text) => Ok(text),
            other => Err(format!("must be a text in quotation marks, not {}", other.kind())),
        }
    }

    /// A number, or a text that is one.
    fn number(&self, wanted: &str) -> Result<&str, String> {
        match self {
            Self::Text(text) | Self::Number(text) => Ok(text),
            other => Err(format!("must be {wanted}, not {}", other.kind())),
        }
    }

    /// A whole number in a range.
    pub(super) fn integer<T: Copy + Into<i64> + TryFrom<i64>>(&self, range: Range<T>) -> Result<T, String> {
        let wanted = format!("a whole number from {} to {}", range.min.into(), range.max.into());
        let text = self.number(&wanted)?;
        let number: i64 = text.parse().map_err(|_| format!("must be {wanted}, not {text:?}"))?;
        range.check(number).map_err(|error| error.to_string())
    }

    /// Any number.
    pub(super) fn float(&self) -> Result<f64, String> {
        let text = self.number("a number")?;
        text.parse().map_err(|_| format!("must be a number, not {text:?}"))
    }

    /// `true` or `false`.
    pub(super) fn flag(&self) -> Result<bool, String> {
        match self {
            Self::Bool(flag) => Ok(*flag),
            Self::Text(text) if text == "true" => Ok(true),
            Self::Text(text) if text == "false" => Ok(false),
            Self::Text(text) | Self::Number(text) => Err(format!("must be true or false, not {text:?}")),
            other => Err(format!("must be true or false, not {}", other.kind())),
        }
    }

    /// One of these names.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Result<T, String> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let text = self.text().map_err(|_| format!("must be one of {}", names.join(", ")))?;
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        found.ok_or_else(|| format!("must be one of {}, not {text:?}", names.join(", ")))
    }

    /// A length of time in milliseconds.
    pub(super) fn duration(&self, range: Range<i64>) -> Result<i64, String> {
        let ms = duration_ms(self.number("a length of time such as 90s, 5m, 2h, 7d")?)?;
        range.check(ms).map_err(|_| {
            let (min, max) = (show_duration(range.min), show_duration(range.max));
            format!("must be between {min} and {max}, not {}", show_duration(ms))
        })
    }

    /// Texts: an array of the file, or one text with commas.
    pub(super) fn list(&self) -> Result<Vec<String>, String> {
        match self {
            Self::List(texts) => Ok(texts.clone()),
            Self::Text(text) => Ok(text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()),
            other => Err(format!("must be an array of texts, not {}", other.kind())),
        }
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Number(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::List(_) => "an array",
            Self::Other(kind) => kind,
        }
    }
}

/// Units of time that may follow a number, the longest first.
const UNITS: [(&str, i64); 4] = [("d", DAY_MS), ("h", HOUR_MS), ("m", MINUTE_MS), ("s", SECOND_MS)];

/// A length of time as people write it: `90s`, `5m`, `2h`, `7d`, `1.5h`; a number alone is seconds. In milliseconds.
pub(crate) fn duration_ms(text: &str) -> Result<i64, String> {
    let wrong = || format!("must be a length of time such as 90s, 5m, 2h, 7d or 1.5 (seconds), not {text:?}");
    let unit = UNITS.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, *ms)));
    let (number, unit_ms) = unit.unwrap_or((text, SECOND_MS));
    let (whole, fraction) = number.trim_end().split_once('.').unwrap_or((number.trim_end(), "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // Twelve digits of days are three billion years, and six of a day's fraction are below a millisecond's grain.
    if !digits(whole) || !digits(fraction) || whole.len() > 12 || fraction.len() > 9 {
        return Err(wrong());
    }
    let parse = |part: &str| part.parse::<i128>().map_err(|_| wrong());
    let scale = 10_i128.pow(u32::try_from(fraction.len()).map_err(|_| wrong())?);
    let scaled = (parse(whole)? * scale + parse(fraction)?) * i128::from(unit_ms);
    if scaled % scale != 0 {
        return Err(format!("{text:?} is finer than a millisecond"));
    }
    i64::try_from(scaled / scale).map_err(|_| wrong())
}

/// So many within so long: `100/s`, `600/1m`, `5000/24h`.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let wrong = || format!("must be COUNT/TIME such as 100/s, 600/m or 5000/24h, not {text:?}");
    let (count, per) = text.split_once('/').ok_or_else(wrong)?;
    let count: i64 = count.trim().parse().map_err(|_| wrong())?;
    let count = limits::RATE_COUNT.check(count).map_err(|error| format!("the count of {text:?} {error}"))?;
    let per = Some(per.trim()).filter(|per| !per.is_empty()).ok_or_else(wrong)?;
    // A unit alone is one of it.
    let per = if per.starts_with(|first: char| first.is_ascii_digit()) {
        per.to_owned()
    } else {
        format!("1{per}")
    };
    let per_ms = duration_ms(&per).map_err(|_| wrong())?;
    let per_ms = limits::RATE_PER_MS.check(per_ms).map_err(|_| {
        let (min, max) = (show_duration(limits::RATE_PER_MS.min), show_duration(limits::RATE_PER_MS.max));
        format!("the time of {text:?} must be between {min} and {max}")
    })?;
    Ok(Rate { count, per_ms, spread: false })
}

/// The same, the other way round.
pub(crate) fn show_rate(rate: Rate) -> String {
    format!("{}/{}", rate.count, show_duration(rate.per_ms))
}

/// The same, the other way round, in the largest unit that needs no fraction.
pub(super) fn show_duration(ms: i64) -> String {
    let unit = UNITS.iter().find(|(_, unit_ms)| ms % unit_ms == 0 && ms != 0);
    match unit {
        Some((unit, unit_ms)) => format!("{}{unit}", ms / unit_ms),
        None if ms == 0 => "0s".to_owned(),
        None => {
            let text = format!("{}.{:03}", ms / SECOND_MS, ms % SECOND_MS);
            format!("{}s", text.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        for (text, ms) in [
            ("0", 0),
            ("0s", 0),
            ("90", 90_000),
            ("90s", 90_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
            ("1.5h", 5_400_000),
            ("0.001", 1),
            ("2.5s", 2_500),
            ("0.000125d", 10_800),
        ] {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
            assert_eq!(duration_ms(&show_duration(ms)), Ok(ms), "{text}");
        }
        assert_eq!(show_duration(2_500), "2.5s");
        assert_eq!(show_duration(86_400_000), "1d");
    }

    #[test]
    fn rates() {
        for (text, count, per_ms) in
            [("100/s", 100, 1_000), ("600/m", 600, 60_000), ("5/1.5h", 5, 5_400_000), ("1/0.01s", 1, 10)]
        {
            let read = Rate { count, per_ms, spread: false };
            assert_eq!(rate(text), Ok(read), "{text}");
            assert_eq!(rate(&show_rate(read)), Ok(read), "{text}");
        }
        for text in ["", "5", "5/", "/s", "x/s", "5/x", "5/-1s", "1.5/s"] {
            assert!(rate(text).unwrap_err().contains("must be COUNT/TIME"), "{text}: {:?}", rate(text));
        }
        for text in ["0/s", "-1/s", "1000001/s", "5/0.009s", "5/25h"] {
            assert!(rate(text).unwrap_err().contains("must be between"), "{text}: {:?}", rate(text));
        }
    }

    #[test]
    fn what_is_no_length_of_time() {
        for text in ["", "s", "-5s", "+5s", "5x", "5 min", "1e3", ".5", "5.", "5.s", "0x5", "9999999999999d"]
        {
            assert!(duration_ms(text).is_err(), "{text}");
        }
        assert!(duration_ms("0.0005").unwrap_err().contains("finer than a millisecond"));
        assert!(duration_ms("999999999999d").is_err());
    }
}
