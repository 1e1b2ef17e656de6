//! Who may ask for what.
