//! Makes job output readable: what a terminal would have shown, and the errors in it. Pure, and independent of other
//! modules. The output comes from untrusted programs, so everything is bounded and none of it can control a page.

pub mod findings;
pub mod terminal;
