//! What must hold for any stream of lines: the property that a fuzz target of `fuzz/` tries with made-up input, and the
//! test below with every file of its corpus. Not part of the binary.

use tagwerk_api::door::Door;

use super::super::super::fuzzed::limits;
use super::lines::Lines;

/// Two bytes say how long a line may be and in which pieces the bytes come; the rest is the stream. Holds: the lines are
/// those that a plain split finds, with their numbers, however the bytes come; a line that is too long touches no other;
/// a line is judged as the body of a single enqueue would be.
pub(crate) fn lines(data: &[u8]) {
    let [longest, piece, stream @ ..] = data else { return };
    let max_bytes = usize::from(*longest) + 1;
    let mut lines = Lines::new(max_bytes);
    let mut found: Vec<(u64, Option<Vec<u8>>)> = Vec::new();
    let mut take = |lines: &mut Lines| {
        let batch = lines.take();
        found.extend(batch.lines().map(|(number, bytes)| (number, bytes.map(<[u8]>::to_vec))));
    };
    for mut rest in stream.chunks(usize::from(*piece) + 1) {
        while !rest.is_empty() {
            let used = lines.push(rest);
            rest = &rest[used..];
            if lines.is_full() || used.is_multiple_of(3) {
                take(&mut lines);
            }
        }
    }
    lines.end();
    take(&mut lines);
    assert!(!lines.has_lines());

    let mut pieces: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    // Behind the last line break nothing begins.
    pieces.pop_if(|last| last.is_empty());
    let short = |line: &[u8]| (line.len() <= max_bytes).then(|| line.to_vec());
    let expected: Vec<_> = (1..).zip(pieces.iter().map(|line| short(line))).collect();
    assert_eq!(found, expected);
    assert_eq!(lines.next_line(), expected.len() as u64 + 1);

    let door = Door::new(limits());
    for line in pieces {
        let blank = line.iter().all(|byte| b" \t\r".contains(byte));
        let judged = door.enqueue_line(line);
        assert_eq!(judged.is_none(), blank, "{line:?}");
        if let Some(judged) = judged {
            assert_eq!(judged.is_ok(), door.enqueue(line, None).is_ok(), "{line:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_file_of_the_corpus() {
        crate::fuzzed::replay("lines", super::lines);
    }
}
