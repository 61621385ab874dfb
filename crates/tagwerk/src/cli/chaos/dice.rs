//! Chance that can be repeated: each question has its own answer, whatever was asked before it. So a run with the same seed
//! does the same to the same calls, however the machine's threads take turns.

/// A number for a question.
pub(super) fn dice(seed: u64, question: &str) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325 ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let hash = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    mixed(question.bytes().fold(start, hash))
}

/// Every bit depends on every bit.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_has_the_same_answer_and_others_have_others() {
        assert_eq!(dice(7, "claim 1"), dice(7, "claim 1"));
        let mut answers: Vec<u64> =
            (0..1_000).flat_map(|n| [dice(n, "claim"), dice(7, &format!("claim {n}"))]).collect();
        answers.sort_unstable();
        answers.dedup();
        assert_eq!(answers.len(), 2_000);
    }

    #[test]
    fn both_sides_of_a_coin_come() {
        let heads = (0..1_000).filter(|n| dice(1, &format!("job {n}")).is_multiple_of(2)).count();
        assert!((400..600).contains(&heads), "{heads}");
    }
}
