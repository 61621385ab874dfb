//! Splits Rust source into code, string literals and comments, and tells which lines are test code.
//!
//! No parser: a rule that needs types belongs to clippy. The three views have the same lines as the source, with
//! spaces in place of what belongs to the others, so that a rule about code cannot trip over a sentence.

/// The three views of a source text.
#[derive(Debug, Default)]
pub(crate) struct RustText {
    pub(crate) code: String,
    pub(crate) strings: String,
    pub(crate) comments: String,
    /// For each line: whether it lies in an item under `#[cfg(test)]`.
    pub(crate) in_test: Vec<bool>,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Code,
    Text,
    Comment,
}

impl RustText {
    /// Splits a source text.
    pub(crate) fn of(source: &str) -> Self {
        let mut views = Self::default();
        let mut rest = source;
        let mut previous = ' ';
        while let Some(first) = rest.chars().next() {
            let (kind, length) = piece(rest, first, previous);
            let (this, after) = rest.split_at(length);
            views.push(kind, this);
            previous = this.chars().next_back().unwrap_or(' ');
            rest = after;
        }
        views.in_test = test_lines(&views.code);
        views
    }

    /// Appends a piece to its view, and as much blank to the others.
    fn push(&mut self, kind: Kind, text: &str) {
        for (of, view) in [
            (Kind::Code, &mut self.code),
            (Kind::Text, &mut self.strings),
            (Kind::Comment, &mut self.comments),
        ] {
            if of == kind {
                view.push_str(text);
            } else {
                view.extend(text.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
            }
        }
    }
}

/// What begins here, and how many bytes it takes.
fn piece(rest: &str, first: char, previous: char) -> (Kind, usize) {
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if first == '"' {
        return (Kind::Text, 1 + quoted(&rest[1..], '"'));
    }
    if matches!(first, 'r' | 'b' | 'c')
        && !is_word(previous)
        && let Some(length) = raw_string(rest)
    {
        return (Kind::Text, length);
    }
    if first == '\''
        && let Some(length) = character(rest)
    {
        return (Kind::Text, length);
    }
    (Kind::Code, first.len_utf8())
}

/// The length of a block comment; they nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length up to and with the closing quote, where a backslash protects what follows it.
fn quoted(rest: &str, quote: char) -> usize {
    let mut letters = rest.char_indices();
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == quote {
            return at + letter.len_utf8();
        }
    }
    rest.len()
}

/// The length of `r"…"`, `r#"…"#`, `br"…"` and so on.
fn raw_string(rest: &str) -> Option<usize> {
    let marks = rest.trim_start_matches(['b', 'c']);
    let prefix = rest.len() - marks.len();
    let hashes = marks.strip_prefix('r')?;
    let body = hashes.trim_start_matches('#');
    let count = hashes.len() - body.len();
    let body = body.strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(count));
    let end = body.find(&closing).map_or(body.len(), |at| at + closing.len());
    Some(prefix + 1 + count + 1 + end)
}

/// The length of a character literal; `None` when the quote begins a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut letters = rest.chars().skip(1);
    let (one, two) = (letters.next()?, letters.next()?);
    if one == '\\' {
        return Some(1 + quoted(&rest[1..], '\''));
    }
    (two == '\'').then(|| 2 + one.len_utf8())
}

/// Whether the letter can stand inside a name.
pub(crate) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Marks the lines of items that exist in tests only.
fn test_lines(code: &str) -> Vec<bool> {
    let mut marks = vec![false; code.lines().count()];
    for (start, _) in code.match_indices("#[cfg(") {
        let condition = code[start + 6..].split(']').next().unwrap_or_default();
        if !has_word(condition, "test") || condition.contains("not(test") {
            continue;
        }
        let end = start + item_length(&code[start..]);
        let first = code[..start].matches('\n').count();
        let last = code[..end].matches('\n').count();
        marks.iter_mut().take(last + 1).skip(first).for_each(|mark| *mark = true);
    }
    marks
}

/// From an attribute to the end of its item: the brace that closes it, or a semicolon.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    let mut brackets = 0_usize;
    for (at, letter) in code.char_indices() {
        match letter {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            ';' if depth == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Where a word stands alone in a line.
pub(crate) fn find_word(line: &str, word: &str) -> Option<usize> {
    line.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = line[..at].chars().next_back().is_some_and(is_word);
        let after = line[at + word.len()..].chars().next().is_some_and(is_word);
        !before && !after
    })
}

/// Whether a word stands alone in a line.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    find_word(line, word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_views_have_the_lines_of_the_source() {
        let source = "let a = \"x\ny\"; // one\n/* two\nthree */ b\n";
        let text = RustText::of(source);
        for view in [&text.code, &text.strings, &text.comments] {
            assert_eq!(view.lines().count(), 4);
        }
        assert_eq!(text.code.split_whitespace().collect::<Vec<_>>(), ["let", "a", "=", ";", "b"]);
        assert_eq!(
            text.comments.split_whitespace().collect::<Vec<_>>(),
            ["//", "one", "/*", "two", "three", "*/"]
        );
        assert_eq!(text.strings.split_whitespace().collect::<Vec<_>>(), ["\"x", "y\""]);
    }

    #[test]
    fn quotes_of_all_kinds() {
        let code = |source: &str| RustText::of(source).code.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code(r#"f("a \" // b", c)"#), "f( , c)");
        assert_eq!(code(r##"f(r#"a " // b"#, c)"##), "f( , c)");
        assert_eq!(code(r#"f(br"a\", c)"#), "f( , c)");
        assert_eq!(code("f('\"', '\\'', '\\u{41}', x)"), "f( , , , x)");
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
        assert_eq!(code("'outer: loop {}"), "'outer: loop {}");
        assert_eq!(code("let r#type = for_r; 'ü'"), "let r#type = for_r;");
    }

    #[test]
    fn comments_nest() {
        assert_eq!(RustText::of("/* a /* b */ c */ d").code.trim(), "d");
        assert_eq!(RustText::of("/* never closed").code.trim(), "");
    }

    #[test]
    fn test_code_is_marked_to_its_last_brace() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\" }\n}\nfn c() {}\n";
        assert_eq!(RustText::of(source).in_test, [false, true, true, true, true, false]);
        let source = "#[cfg(test)]\nmod tests;\nfn a() {}\n#[cfg(not(test))]\nfn b() {}\n";
        assert_eq!(RustText::of(source).in_test, [true, true, false, false, false]);
        let source = "#[cfg(any(test, feature = \"testing\"))]\npub mod testing;\nfn a() {}\n";
        assert_eq!(RustText::of(source).in_test, [true, true, false]);
    }

    #[test]
    fn words_stand_alone() {
        assert!(has_word("x async fn", "async"));
        assert!(!has_word("asynchronous", "async"));
        assert!(!has_word("my_async", "async"));
        assert_eq!(find_word("asyncs async", "async"), Some(7));
    }
}
