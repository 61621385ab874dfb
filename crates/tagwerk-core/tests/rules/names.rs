//! Names on the wire. They are promises: changing one breaks clients.

use tagwerk_core::{
    AttemptEnd, Cause, ErrorClass, FailureClass, Jitter, OnDuplicate, OnHeadFailure, OnMismatch, OnUnknown,
    Reason, Scope, Status,
};

/// Checks that the names are these, in this order, and that each leads back to its value.
macro_rules! assert_names {
    ($type:ident, $names:expr) => {
        let names: Vec<_> = $type::ALL.iter().map(|value| value.name()).collect();
        assert_eq!(names, $names);
        for value in $type::ALL {
            assert_eq!($type::from_name(value.name()).map($type::name), Some(value.name()));
        }
        for wrong in ["", "Unknown", " verify", "no_such_name"] {
            assert!($type::from_name(wrong).is_none());
        }
    };
}

#[test]
fn names_are_the_documented_ones() {
    assert_names!(Status, ["pending", "running", "completed", "failed", "cancelled"]);
    assert_names!(ErrorClass, ["transient", "permanent", "unknown"]);
    assert_names!(FailureClass, ["transient", "permanent", "unknown"]);
    assert_names!(
        Reason,
        ["retries_exhausted", "permanent", "outcome_unknown", "worker_lost", "expired", "forced"]
    );
    assert_names!(Cause, ["reported", "lease_expired", "timed_out", "max_age", "operator"]);
    assert_names!(OnUnknown, ["verify", "review"]);
    assert_names!(Jitter, ["none", "equal", "full"]);
    assert_names!(Scope, ["waiting", "unfinished", "ttl", "forever"]);
    assert_names!(OnDuplicate, ["existing", "replace", "conflict"]);
    assert_names!(OnMismatch, ["flag", "reject"]);
    assert_names!(OnHeadFailure, ["block", "skip"]);
}

#[test]
fn ends_of_attempts_have_names_of_their_own() {
    let ends = [
        AttemptEnd::Completed,
        AttemptEnd::Failed(ErrorClass::Transient),
        AttemptEnd::Released,
        AttemptEnd::LeaseExpired,
        AttemptEnd::TimedOut,
        AttemptEnd::Cancelled,
        AttemptEnd::Forced,
    ];
    let names = ends.map(AttemptEnd::name);
    assert_eq!(
        names,
        ["completed", "failed", "released", "lease_expired", "timed_out", "cancelled", "forced"]
    );
    let reported = ends.map(AttemptEnd::is_reported);
    assert_eq!(reported, [true, true, true, false, false, false, false]);
}

#[test]
fn lease_bits_are_never_printed() {
    assert_eq!(format!("{:?}", tagwerk_core::LeaseBits(1_234_567)), "LeaseBits(…)");
}

#[test]
fn an_id_is_shown_as_its_number() {
    assert_eq!(tagwerk_core::JobId(4_711).to_string(), "4711");
}
