//! Figures of alerts as people and programs read them.

use tagwerk_api::AlertUnit;
use tagwerk_core::alert::{Kind, Unit};

/// A figure in the unit that is shown.
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53; beyond that the rest is nothing")]
pub(crate) fn amount(kind: Kind, value: i64) -> f64 {
    match kind.unit() {
        Unit::Ms | Unit::PerMille => value as f64 / 1_000.0,
        Unit::Count | Unit::Bytes => value as f64,
    }
}

/// The unit that is shown.
pub(crate) const fn unit(kind: Kind) -> AlertUnit {
    match kind.unit() {
        Unit::Ms => AlertUnit::Seconds,
        Unit::PerMille => AlertUnit::Share,
        Unit::Count => AlertUnit::Count,
        Unit::Bytes => AlertUnit::Bytes,
    }
}
