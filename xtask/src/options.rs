//! Options of chores: `--name value`, and words without a name.

use anyhow::Context;

/// What was typed, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// In the order of the names that were asked for; `None` was not given.
    pub(crate) numbers: Vec<Option<u128>>,
    /// Words that belong to no option.
    pub(crate) words: Vec<String>,
}

/// Reads the arguments; `names` are options that want a number above 0.
pub(crate) fn parse(arguments: &[String], names: &[&str]) -> anyhow::Result<Options> {
    let mut options = Options { numbers: vec![None; names.len()], words: Vec::new() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            options.words.push(word.clone());
            continue;
        }
        let index = names.iter().position(|name| name == word);
        let index = index.with_context(|| format!("unknown option `{word}`: see `cargo xtask help`"))?;
        let value = words.next().with_context(|| format!("`{word}` wants a number"))?;
        let number: u128 = value.parse().with_context(|| format!("`{word} {value}`: that is no number"))?;
        anyhow::ensure!(number > 0, "`{word} 0` would prove nothing");
        options.numbers[index] = Some(number);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&arguments, &["--seconds", "--examples"])
    }

    #[test]
    fn numbers_and_words() -> anyhow::Result<()> {
        let options = parsed("door --examples 7 times")?;
        assert_eq!(options.numbers, [None, Some(7)]);
        assert_eq!(options.words, ["door", "times"]);
        Ok(())
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["--fast", "--seconds", "--seconds many", "--seconds 0"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
