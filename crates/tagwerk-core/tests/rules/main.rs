//! Every rule with its expected values. The picture of all of them at once is `matrix.rs` beside this.

#[path = "../scene/mod.rs"]
mod scene;

mod cancel;
mod claim;
mod contact;
mod effects;
mod gate;
mod idempotency;
mod late;
mod limits;
mod max_age;
mod names;
mod operate;
mod order;
mod properties;
mod queue;
mod rate;
mod report;
mod retention;
mod retry;
mod setback;
mod supersede;
mod time;
mod tokenless;
