//! Tests of the whole check.

mod machine;
mod random;
mod story;
mod together;
mod whole;
