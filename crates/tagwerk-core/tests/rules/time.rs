//! Points in time.

use tagwerk_core::Timestamp;

#[test]
fn a_time_is_the_milliseconds_it_was_made_of() {
    for ms in [0, 1, -1, 1_782_907_200_123, i64::MIN, i64::MAX] {
        assert_eq!(Timestamp::from_millis(ms).as_millis(), ms);
    }
    assert_eq!(Timestamp::EPOCH.as_millis(), 0);
    assert_eq!(Timestamp::MAX.as_millis(), i64::MAX);
}

#[test]
fn moving_and_measuring_stop_at_the_ends_of_the_range() {
    let noon = Timestamp::from_millis(1_000);
    assert_eq!(noon.plus_ms(250).as_millis(), 1_250);
    assert_eq!(noon.plus_ms(-1_250).as_millis(), -250);
    assert_eq!(noon.plus_ms(i64::MAX), Timestamp::MAX);
    assert_eq!(noon.plus_ms(250).since_ms(noon), 250);
    assert_eq!(noon.since_ms(noon.plus_ms(250)), -250);
    assert_eq!(Timestamp::MAX.since_ms(Timestamp::from_millis(-1)), i64::MAX);
}
