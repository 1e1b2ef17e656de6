//! What all pages build on.

pub(in crate::web) mod assets;
pub(in crate::web) mod cookies;
pub(in crate::web) mod csv;
pub(in crate::web) mod errors;
pub(in crate::web) mod event_stream;
pub(in crate::web) mod extractors;
pub(in crate::web) mod file_response;
pub(in crate::web) mod flash;
pub(in crate::web) mod form_errors;
pub(in crate::web) mod health;
pub(in crate::web) mod middleware;
pub(in crate::web) mod old_urls;
pub(in crate::web) mod page_frame;
pub(in crate::web) mod qr_code;
pub(in crate::web) mod reveal_once;
pub(in crate::web) mod stream_limits;
pub(in crate::web) mod visitor;
