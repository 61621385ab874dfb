//! The `OpenAPI` 3.1 document, made from the wire types and one table of routes.
//!
//! The table is the only list of routes: a test of the server compares its router against it.

mod alerts;
mod bounds;
mod document;
mod effects;
mod examples;
mod jobs;
mod operating;
mod queues;
mod route;
mod schemas;
mod workers;

pub use document::document;
pub use route::{Answer, Body, Group, Header, Lines, Method, Param, ParamKind, Route, Shape, is_report};

/// Every route, in the order of the documentation.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    jobs::ROUTES
        .iter()
        .chain(workers::ROUTES)
        .chain(effects::ROUTES)
        .chain(operating::ROUTES)
        .chain(queues::ROUTES)
        .chain(alerts::ROUTES)
}

#[cfg(test)]
mod tests;
