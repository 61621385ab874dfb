//! The suite that every store runs.

use tagwerk_engine::conformance_tests;

use crate::bench::SqliteBench;

conformance_tests!(SqliteBench::new);
