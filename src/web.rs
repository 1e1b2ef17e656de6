//! What browsers and machines ask for over HTTP: the only room that names `axum` and `askama`.
//!
//! - `routes`: every address of the portal, as tables; `listeners` serves them
//! - `portal_state`: what handlers share
//! - `http`: what all pages stand on (extractors, middleware, errors, event stream, assets, page frame)
//! - `pages`: the pages, grouped as the navigation groups them; templates are in the same folders
//! - `dashboard_origin`: the second origin, on which dashboards and guests' pages are shown

mod dashboard_origin;
mod http;
mod listeners;
mod pages;
mod portal_state;
mod routes;

pub use listeners::{PortalListeners, serve_portal};
pub use portal_state::{PageState, PortalState};

/// What every handler answers with.
type HandlerResult = Result<axum::response::Response, crate::error::AppError>;
