//! What the rules promise beyond single calls, as only the whole server shows it.

mod commits;
mod repetition;
