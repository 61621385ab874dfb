//! The real binary, from outside: over HTTP and as a process. What a test needs to know of rules is proved further
//! inside (core, engine, conformance suite); here stands what only the whole shows.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "tests of the real binary read the real clock and its environment, and fail loudly"
)]

mod alerts;
mod chaos;
mod cli_bench;
mod cli_bulk;
mod cli_client;
mod cli_exits;
mod cli_jobs;
mod cli_ran;
mod client;
mod crash;
mod deploy;
mod effects;
mod examples_workers;
mod faults;
mod follow_ups;
mod half_closed;
mod http_bad_input;
mod http_bodies;
mod http_calls;
mod http_edges;
mod http_headers;
mod http_payload;
mod http_schema;
mod http_stream;
mod http_who;
mod keys;
mod limits;
mod matrix;
mod process;
mod queues;
mod races;
mod sdk;
mod semantics;
mod server;
mod shipments;
mod supersede;
mod support;
mod tls;
mod tokens;
mod tour;
mod type_rules;
mod work_exits;
mod work_life;
mod work_outage;
mod work_process;
