//! What must hold for whatever is sent as a lease token: the property that a fuzz target of `fuzz/` tries with made-up
//! input, and the test below with every file of its corpus. Not part of the library.

use tagwerk_core::{JobId, LeaseBits};

use super::tokens::Tokens;

/// Eight bytes of id, eight of lease bits, and what a worker sends as its token. Holds: only the lease's own token
/// matches, byte for byte; it is plain hexadecimal; another lease of the job, and the lease of another job, has another.
pub(crate) fn token(data: &[u8]) {
    let Some((id, rest)) = data.split_first_chunk::<8>() else { return };
    let Some((bits, sent)) = rest.split_first_chunk::<8>() else { return };
    let tokens = Tokens::new([7; 32]);
    let (id, bits) = (JobId(i64::from_le_bytes(*id)), LeaseBits(u64::from_le_bytes(*bits)));
    let token = tokens.token(id, bits);
    assert!(token.len() == 32 && token.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    assert!(tokens.matches(&token, id, bits));
    let sent = String::from_utf8_lossy(sent);
    assert_eq!(tokens.matches(&sent, id, bits), sent == token);
    assert!(!tokens.matches(&token, JobId(id.0 ^ 1), bits));
    assert!(!tokens.matches(&token, id, LeaseBits(bits.0 ^ 1)));
    assert!(!Tokens::new([8; 32]).matches(&token, id, bits));
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_file_of_the_corpus() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/token");
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(!files.is_empty());
        for file in files {
            super::token(&std::fs::read(file.unwrap().path()).unwrap());
        }
    }
}
