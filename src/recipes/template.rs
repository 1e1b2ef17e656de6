//! Script templates. A value enters the script as one quoted word, or as words already quoted elsewhere; there is no
//! way to insert raw text. Each line remembers which questions wrote it.
//!
//! A template is a piece of bash with `{{ key }}`, `{% if key %}`, `{% if key == "value" %}` and
//! `{% for x in key %}`. A value may appear only where bash reads plain words: inside quotes, comments and the like,
//! its own quotes would mean something else, so such a template is rejected when it is loaded.

mod bash_contexts;
mod script_lines;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Output, UndefinedBehavior, Value};

use super::quoting;
pub use script_lines::{RenderedScriptLine, find_mentions, join_lines};

/// Far more than any template needs; stops those that would never end.
const MAX_TEMPLATE_STEPS: u64 = 200_000;
/// Rendering stops here; no real script is this long.
const MAX_SCRIPT_LEN: usize = 1024 * 1024;

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateValue {
    Empty,
    /// Text, quoted when written.
    Text(String),
    Number(i64),
    /// For conditions.
    Bool(bool),
    /// Already quoted for bash.
    Shell(String),
    /// Words, each already quoted for bash.
    Words(Vec<String>),
}

impl TemplateValue {
    fn to_minijinja(&self) -> Value {
        match self {
            Self::Empty => Value::from(()),
            Self::Text(text) => Value::from(text.as_str()),
            Self::Number(number) => Value::from(*number),
            Self::Bool(yes) => Value::from(*yes),
            Self::Shell(text) => Value::from_safe_string(text.clone()),
            Self::Words(words) => words.iter().map(|word| Value::from_safe_string(word.clone())).collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TemplateError {
    /// Line of the template, from 1.
    pub line: usize,
    pub problem: String,
}

/// Whether a template is usable and every value is in a safe position.
pub fn check(source: &str) -> Result<(), TemplateError> {
    bash_contexts::check(source)?;
    environment().template_from_str(source).map(drop).map_err(|error| to_template_error(&error))
}

/// Renders a checked template.
pub fn render(source: &str, slots: &BTreeMap<&str, TemplateValue>) -> Result<Vec<RenderedScriptLine>, TemplateError> {
    let environment = environment();
    let marked = script_lines::insert_marks(source);
    let template = environment.template_from_str(&marked).map_err(|error| to_template_error(&error))?;
    let context: BTreeMap<&str, Value> = slots.iter().map(|(key, slot)| (*key, slot.to_minijinja())).collect();
    let mut text = BoundedWriter(Vec::new());
    template.render_captured_to(Value::from(context), &mut text).map_err(|error| to_template_error(&error))?;
    let text = String::from_utf8_lossy(&text.0);
    Ok(script_lines::extract_lines(&text))
}

/// Collects the output, up to a length that no real script reaches.
struct BoundedWriter(Vec<u8>);

impl std::io::Write for BoundedWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_SCRIPT_LEN {
            return Err(std::io::Error::other("The script is longer than 1 MB."));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn environment<'source>() -> Environment<'source> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(|out, _, value| write_value(out, value));
    // Lines with nothing but a condition leave no blank line.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(MAX_TEMPLATE_STEPS));
    environment
}

/// The only way for a value to get into a script.
fn write_value(out: &mut Output, value: &Value) -> Result<(), Error> {
    let refuse = |problem: &'static str| Err(Error::new(ErrorKind::InvalidOperation, problem));
    if value.is_safe() {
        return out.write_str(value.as_str().unwrap_or_default()).map_err(Error::from);
    }
    match value.kind() {
        ValueKind::Number => out.write_str(&value.to_string()).map_err(Error::from),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            if text.contains(|c: char| c != '\n' && c != '\t' && !quoting::is_allowed_char(c)) {
                return refuse("A value contains an invisible character.");
            }
            out.write_str(&quoting::quote_word(text)).map_err(Error::from)
        }
        ValueKind::Seq | ValueKind::Iterable => {
            for (index, item) in value.try_iter()?.enumerate() {
                if index > 0 {
                    out.write_str(" ").map_err(Error::from)?;
                }
                write_value(out, &item)?;
            }
            Ok(())
        }
        ValueKind::None => refuse("This can be empty here. Put it between {% if … %} and {% endif %}."),
        _ => refuse("A switch has no text; use it in {% if … %}."),
    }
}

fn to_template_error(error: &Error) -> TemplateError {
    let problem = match (error.kind(), error.detail()) {
        (ErrorKind::UndefinedError, _) => "It uses a key that no question has.".to_owned(),
        (ErrorKind::OutOfFuel, _) => "It never ends.".to_owned(),
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => format!("{kind}."),
    };
    TemplateError { line: error.line().unwrap_or(1), problem }
}
