//! Output of jobs made readable: what a terminal would have shown, and the errors that stand in it.
//! Pure, and of no other room's words. What is read here was written by programs that are not ours: everything is
//! bounded, and nothing of it steers a page.

pub mod findings;
pub mod terminal;
