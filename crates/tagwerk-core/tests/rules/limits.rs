//! Each limit at its edge.

use tagwerk_core::limits::check::{cut_text, job_type, key, name, request_id, retry_factor, worker_id};
use tagwerk_core::limits::{self, LimitError, Range};

fn out_of_range<T>(range: Range<T>, got: i64) -> LimitError
where
    T: Copy + Into<i64>,
{
    LimitError::OutOfRange { min: range.min.into(), max: range.max.into(), got }
}

/// Accepts both ends, refuses what lies beyond them.
fn assert_edges<T>(range: Range<T>, min: i64, max: i64)
where
    T: Copy + Into<i64> + TryFrom<i64> + PartialEq + std::fmt::Debug,
{
    assert_eq!(range.check(min), Ok(range.min));
    assert_eq!(range.check(max), Ok(range.max));
    for wrong in [min - 1, max + 1, i64::MIN, i64::MAX] {
        assert_eq!(range.check(wrong), Err(out_of_range(range, wrong)));
    }
}

#[test]
fn ranges_are_the_documented_ones() {
    let ten_years = 315_360_000_000;
    assert_edges(limits::MAX_RETRIES, 0, 1_000);
    assert_edges(limits::MAX_LEASE_LOSSES, 0, 100);
    assert_edges(limits::LEASE_MS, 1_000, 86_400_000);
    assert_edges(limits::TIMEOUT_MS, 1, ten_years);
    assert_edges(limits::DELAY_MS, 0, ten_years);
    assert_edges(limits::MAX_AGE_MS, 1, ten_years);
    assert_edges(limits::RETRY_DELAY_MS, 0, ten_years);
    assert_edges(limits::TTL_MS, 0, ten_years);
    assert_edges(limits::RETENTION_MS, 0, 10 * ten_years);
    assert_edges(limits::CLAIM_JOBS, 1, 1_000);
    assert_edges(limits::LIST_PAGE, 1, 1_000);
    assert_edges(limits::PAYLOAD_MAX_BYTES_RANGE, 2, 7_340_032);
    assert_edges(limits::LIMIT_RUNNING, 1, 1_000_000);
    assert_edges(limits::RATE_COUNT, 1, 1_000_000);
    assert_edges(limits::RATE_PER_MS, 10, 86_400_000);
    assert_edges(limits::THROTTLE_MS, 1, 86_400_000);
    assert_edges(limits::QUEUE_MAX_RUNNING, 1, 1_000_000);
    assert_edges(limits::QUEUE_MAX_DEPTH, 1, 1_000_000_000);
}

#[test]
fn defaults_lie_in_their_ranges() {
    assert!(limits::MAX_RETRIES.check(limits::MAX_RETRIES_DEFAULT.into()).is_ok());
    assert!(limits::MAX_LEASE_LOSSES.check(limits::MAX_LEASE_LOSSES_DEFAULT.into()).is_ok());
    assert!(limits::LEASE_MS.check(limits::LEASE_DEFAULT_MS).is_ok());
    assert!(limits::LEASE_MS.check(limits::LEASE_SDK_MS).is_ok());
    assert!(limits::RETRY_DELAY_MS.check(limits::RETRY_BASE_DEFAULT_MS).is_ok());
    assert!(limits::RETRY_DELAY_MS.check(limits::RETRY_CAP_DEFAULT_MS).is_ok());
    assert!(limits::TTL_MS.check(limits::DEFAULT_TTL_MS).is_ok());
    assert!(limits::RETENTION_MS.check(limits::RETENTION_COMPLETED_DEFAULT_MS).is_ok());
    assert!(limits::RETENTION_MS.check(limits::RETENTION_CANCELLED_DEFAULT_MS).is_ok());
    assert!(limits::LIST_PAGE.check(limits::LIST_PAGE_DEFAULT.into()).is_ok());
    assert!(retry_factor(limits::RETRY_FACTOR_DEFAULT).is_ok());
    let payload_max = i64::try_from(limits::PAYLOAD_MAX_BYTES).unwrap();
    assert!(limits::PAYLOAD_MAX_BYTES_RANGE.check(payload_max).is_ok());
    assert!(name(limits::QUEUE_DEFAULT).is_ok());
}

/// Not a copy of the file: what clients, documents and other people's tests rely on.
#[test]
fn promised_values() {
    assert_eq!(limits::JOB_ID_MAX, 9_007_199_254_740_991);
    assert_eq!(limits::PAYLOAD_MAX_BYTES, 262_144);
    assert_eq!(limits::PAYLOAD_MAX_DEPTH, 128);
    assert_eq!((limits::RESULT_MAX_BYTES, limits::CHECKPOINT_MAX_BYTES), (65_536, 65_536));
    assert_eq!(limits::ERROR_MAX_BYTES, 16_384);
    assert_eq!(limits::PROGRESS_MESSAGE_MAX_BYTES, 1_024);
    assert_eq!((limits::BODY_MAX_BYTES, limits::BULK_BODY_MAX_BYTES), (8_388_608, 67_108_864));
    assert_eq!((limits::BULK_JOBS_MAX, limits::REPORTS_MAX), (10_000, 1_000));
    assert_eq!(limits::REPORTS_FOLLOW_UPS_MAX, 10_000);
    assert_eq!(limits::CLAIM_BUDGET_BYTES, 8_388_608);
    assert_eq!((limits::FOLLOW_UPS_MAX, limits::FOLLOW_UPS_MAX_BYTES), (1_000, 1_048_576));
    assert_eq!(limits::WAIT_MAX_MS, 60_000);
    assert_eq!((limits::MAX_RETRIES_DEFAULT, limits::MAX_LEASE_LOSSES_DEFAULT), (3, 4));
    assert_eq!((limits::LEASE_DEFAULT_MS, limits::LEASE_SDK_MS), (300_000, 60_000));
    assert_eq!(limits::LEASE_SDK_MS / limits::HEARTBEATS_PER_LEASE, 20_000);
    assert_eq!((limits::ATTEMPTS_FIRST, limits::ATTEMPTS_LAST), (10, 90));
    assert_eq!(limits::SUPERSEDED_AT_A_TIME, 1_000);
    assert_eq!((limits::OVERDUE_PER_BATCH, limits::OVERDUE_EVERY_MS), (1_000, 1_000));
    assert_eq!((limits::GAP_THRESHOLD_MS, limits::GAP_CAP_MS), (3_000, 3_600_000));
    assert_eq!(limits::RELEASE_AVOID_MS, 30_000);
    assert_eq!((limits::LIST_PAGE_DEFAULT, limits::POSITION_EXACT_MAX), (100, 1_000));
    assert_eq!(limits::DEFAULT_TTL_MS, 2_592_000_000);
    assert_eq!((limits::LIMITS_PER_JOB, limits::PARTITION_MAX_BYTES), (2, 128));
    assert_eq!((limits::LANES_MAX, limits::PAUSE_REASONS_MAX), (100_000, 20));
}

/// What operators plan with: how long something takes at most, and how much memory it may hold.
#[test]
fn promised_values_of_the_server() {
    assert_eq!((limits::BATCH_BYTES, limits::JOB_WEIGHT_BYTES), (16_777_216, 131_072));
    assert_eq!(limits::BATCH_BYTES / limits::JOB_WEIGHT_BYTES, 128, "single claims that share a commit");
    assert_eq!(limits::BATCH_BYTES / limits::ROW_WEIGHT_BYTES, 16_384, "rows that share a commit");
    assert_eq!(limits::NO_WORKER_AFTER_MS, 90_000);
    assert_eq!((limits::FIRST_REQUEST_MS, limits::HEAD_READ_MS), (30_000, 95_000));
    assert_eq!((limits::BODY_PAUSE_MS, limits::BODY_READ_MS), (15_000, 120_000));
    assert_eq!((limits::ADMISSION_MS, limits::WRITE_PAUSE_MS), (10_000, 60_000));
    assert_eq!((limits::SHUTDOWN_MS, limits::STANDSTILL_MS), (10_000, 5_000));
    assert_eq!((limits::HEAD_MAX_BYTES, limits::SMALL_BODY_BYTES), (65_536, 65_536));
    let rooms = (limits::SMALL_BODIES_IN_FLIGHT_BYTES, limits::BODIES_IN_FLIGHT_BYTES);
    assert_eq!(rooms, (33_554_432, 134_217_728));
    assert_eq!((limits::STREAM_LINE_EXTRA_BYTES, limits::STREAM_PIECE_BYTES), (65_536, 32_768));
    assert_eq!((limits::STREAM_BATCH_LINES, limits::STREAM_BATCH_BYTES), (512, 524_288));
    assert_eq!((limits::TEXT_MAX_BYTES, limits::LIST_ERROR_MAX_BYTES), (1_024, 1_024));
}

#[test]
fn names_of_queues() {
    let longest = "a".repeat(64);
    for good in ["a", "0", "default", "Mail.out_2-b", "9..", &longest] {
        assert_eq!(name(good), Ok(()), "{good}");
    }
    let too_long = "a".repeat(65);
    for wrong in ["", "-a", ".a", "_a", "a b", "a/b", "a:b", "ä", "aä", "a\n", "a\0", &too_long] {
        assert_eq!(name(wrong), Err(LimitError::NotAName), "{wrong:?}");
    }
}

#[test]
fn types_are_printable_text() {
    let longest = format!("{}b", "ä".repeat(127));
    for good in
        ["x", "send-invoice", "App\\Jobs\\SendInvoice", "Rechnung für „Müller“", "仕事", "a b", &longest]
    {
        assert_eq!(job_type(good), Ok(()), "{good}");
    }
    assert_eq!(job_type(""), Err(LimitError::Empty));
    assert_eq!(job_type("  "), Err(LimitError::Empty));
    let too_long = "ä".repeat(128);
    assert_eq!(job_type(&too_long), Err(LimitError::TooLong { bytes: 256, max_bytes: 255 }));
    for character in ['\0', '\n', '\t', '\u{7f}', '\u{85}', '\u{2028}', '\u{202e}', '\u{2066}', '\u{feff}'] {
        assert_eq!(job_type(&format!("a{character}b")), Err(LimitError::Unprintable { character }));
    }
}

#[test]
fn keys_are_any_text_that_both_stores_can_keep() {
    let longest = "k".repeat(255);
    for good in ["k", " ", "order/42", "ключ", "a\nb", &longest] {
        assert_eq!(key(good), Ok(()), "{good:?}");
    }
    assert_eq!(key(""), Err(LimitError::Empty));
    assert_eq!(key(&"k".repeat(256)), Err(LimitError::TooLong { bytes: 256, max_bytes: 255 }));
    assert_eq!(key("a\0"), Err(LimitError::Forbidden { character: '\0' }));
}

#[test]
fn worker_ids_have_no_slash() {
    assert_eq!(worker_id("host-1.example.org:4711"), Ok(()));
    assert_eq!(worker_id(&"w".repeat(255)), Ok(()));
    assert_eq!(worker_id(&"w".repeat(256)), Err(LimitError::TooLong { bytes: 256, max_bytes: 255 }));
    assert_eq!(worker_id(""), Err(LimitError::Empty));
    assert_eq!(worker_id("a/b"), Err(LimitError::Forbidden { character: '/' }));
    assert_eq!(worker_id("a\nb"), Err(LimitError::Unprintable { character: '\n' }));
}

#[test]
fn request_ids_are_short() {
    assert_eq!(request_id(&"r".repeat(64)), Ok(()));
    assert_eq!(request_id(&"r".repeat(65)), Err(LimitError::TooLong { bytes: 65, max_bytes: 64 }));
    assert_eq!(request_id(""), Err(LimitError::Empty));
}

#[test]
fn factors() {
    for good in [1.0, 1.5, 1e6] {
        assert_eq!(retry_factor(good), Ok(good));
    }
    for wrong in [0.999_999, 0.0, -2.0, 1e6 + 1.0, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(retry_factor(wrong), Err(LimitError::FactorOutOfRange { got: wrong }));
    }
    assert!(retry_factor(f64::NAN).is_err());
}

#[test]
fn text_is_cut_on_a_character_and_says_so() {
    assert_eq!(cut_text("short", 5), "short");
    assert_eq!(cut_text("", 0), "");
    let text = "ä".repeat(100);
    let cut = cut_text(&text, 62);
    assert!(cut.len() <= 62, "{}", cut.len());
    assert_eq!(cut, format!("{} … [cut, was 200 bytes]", "ä".repeat(18)));
    assert_eq!(cut_text(&text, 200), text);
    assert!(cut_text(&text, 199).ends_with(" … [cut, was 200 bytes]"));
    assert_eq!(cut_text(&text, 7), "äää", "no room for the note");
    assert_eq!(cut_text(&text, 0), "");
}

#[test]
fn messages_say_what_is_allowed() {
    let message = |result: Result<(), LimitError>| result.unwrap_err().to_string();
    assert_eq!(message(key(&"k".repeat(300))), "has 300 bytes; at most 255 are allowed");
    assert_eq!(message(job_type("a\nb")), "contains the character '\\n', which cannot be printed");
    assert_eq!(message(worker_id("a/b")), "must not contain '/'");
    assert_eq!(
        message(name("")),
        "must be 1 to 64 letters, digits, dots, hyphens and underscores, beginning with a letter or digit"
    );
    assert_eq!(
        limits::MAX_RETRIES.check(1_001).unwrap_err().to_string(),
        "must be between 0 and 1000, not 1001"
    );
    assert_eq!(retry_factor(0.5).unwrap_err().to_string(), "must be between 1 and 1000000, not 0.5");
}
