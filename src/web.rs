//! What browsers and machines request over HTTP: the only module that uses `axum` and `askama`.
//!
//! - `routes`: every URL of the portal, as tables; `listeners` serves them
//! - `portal_state`: what handlers share
//! - `http`: what all pages build on (extractors, middleware, errors, event stream, assets, page frame)
//! - `pages`: the pages, grouped as in the navigation; templates are in the same folders
//! - `dashboard_origin`: the second origin, which serves dashboards and guests' pages

mod dashboard_origin;
mod http;
mod listeners;
mod pages;
mod portal_state;
mod routes;

pub use listeners::{PortalListeners, serve_portal};
pub use portal_state::{CrossRequestState, PortalState};

/// What every handler returns.
type HandlerResult = Result<axum::response::Response, crate::error::AppError>;
