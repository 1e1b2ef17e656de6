//! Scripts of boards.
