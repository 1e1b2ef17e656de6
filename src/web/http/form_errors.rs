//! What is wrong with a form, field by field.

use std::fmt::Display;
use std::str::FromStr;

use axum::http::StatusCode;

use crate::web::http::page_frame::FORM_ERROR_STATUS;

/// The problems of a form; empty if it is valid.
#[derive(Debug, Default)]
pub struct FormErrors(Vec<(&'static str, String)>);

impl FormErrors {
    /// Records a problem with a field.
    pub fn add(&mut self, field: &'static str, problem: impl Display) {
        self.0.push((field, problem.to_string()));
    }

    pub fn single(field: &'static str, problem: impl Display) -> Self {
        let mut problems = Self::default();
        problems.add(field, problem);
        problems
    }

    /// Parses a field, or records why it can't be parsed.
    pub fn parse<T: FromStr<Err: Display>>(&mut self, field: &'static str, text: &str) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(field, error);
                None
            }
        }
    }

    /// The first problem of a field, or an empty string.
    pub fn of(&self, field: &str) -> &str {
        self.0.iter().find(|(name, _)| *name == field).map_or("", |(_, problem)| problem)
    }

    /// All problems, for the summary at the top.
    pub fn all(&self) -> &[(&'static str, String)] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The status of a page that shows the form.
    pub fn status(&self) -> StatusCode {
        if self.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS }
    }
}

/// Cuts input to a length that is worth showing again.
pub fn echo_input(text: &str) -> String {
    text.chars().filter(|c| !crate::text::is_disruptive(*c)).take(200).collect()
}
