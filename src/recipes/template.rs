//! Script templates. A value enters the script as one quoted word, or as words that were written for bash elsewhere;
//! there is no way to paste text. Each line remembers which questions made it.
//!
//! A template is a piece of bash with `{{ key }}`, `{% if key %}`, `{% if key == "value" %}` and `{% for x in key %}`.
//! A value may stand only where bash reads plain words: inside quotes, comments and the like its own quotes would mean
//! something else, so such a template is refused when it is loaded.

mod contexts;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Output, UndefinedBehavior, Value};

use super::quoting;
pub use lines::{Line, mentions};

/// Steps that a template may take: far more than any needs, and an end to those that never would.
const FUEL: u64 = 200_000;
/// More than this is not written: no script is as long.
const LONGEST: usize = 1024 * 1024;

/// What stands for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// There is no answer.
    Empty,
    /// Text, which will be quoted.
    Text(String),
    /// A number.
    Number(i64),
    /// Yes or no: for conditions.
    Yes(bool),
    /// Written for bash already.
    Shell(String),
    /// Words, each written for bash already.
    Words(Vec<String>),
}

impl Slot {
    fn value(&self) -> Value {
        match self {
            Self::Empty => Value::from(()),
            Self::Text(text) => Value::from(text.as_str()),
            Self::Number(number) => Value::from(*number),
            Self::Yes(yes) => Value::from(*yes),
            Self::Shell(text) => Value::from_safe_string(text.clone()),
            Self::Words(words) => {
                words.iter().map(|word| Value::from_safe_string(word.clone())).collect()
            }
        }
    }
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TemplateError {
    /// In which line of the template, from 1.
    pub line: usize,
    /// What, as a sentence.
    pub problem: String,
}

/// Whether a template can be used, with every value in a place where it is safe.
pub fn check(source: &str) -> Result<(), TemplateError> {
    contexts::check(source)?;
    environment().template_from_str(source).map(drop).map_err(|error| told(&error))
}

/// Renders a template that was checked.
pub fn render(source: &str, slots: &BTreeMap<&str, Slot>) -> Result<Vec<Line>, TemplateError> {
    let environment = environment();
    let marked = lines::mark(source);
    let template = environment.template_from_str(&marked).map_err(|error| told(&error))?;
    let context: BTreeMap<&str, Value> =
        slots.iter().map(|(key, slot)| (*key, slot.value())).collect();
    let mut text = Bounded(Vec::new());
    template.render_captured_to(Value::from(context), &mut text).map_err(|error| told(&error))?;
    let text = String::from_utf8_lossy(&text.0);
    Ok(lines::read(&text))
}

/// What a template writes, up to a length that no script has.
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
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
    environment.set_formatter(|out, _, value| write(out, value));
    // Lines that hold nothing but a condition leave nothing behind.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(FUEL));
    environment
}

/// The only way by which a value gets into a script.
fn write(out: &mut Output, value: &Value) -> Result<(), Error> {
    let refuse = |problem: &'static str| Err(Error::new(ErrorKind::InvalidOperation, problem));
    if value.is_safe() {
        return out.write_str(value.as_str().unwrap_or_default()).map_err(Error::from);
    }
    match value.kind() {
        ValueKind::Number => out.write_str(&value.to_string()).map_err(Error::from),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            if text.contains(|c: char| c != '\n' && c != '\t' && !quoting::is_allowed(c)) {
                return refuse("A value holds a character that cannot be seen.");
            }
            out.write_str(&quoting::word(text)).map_err(Error::from)
        }
        ValueKind::Seq | ValueKind::Iterable => {
            for (place, one) in value.try_iter()?.enumerate() {
                if place > 0 {
                    out.write_str(" ").map_err(Error::from)?;
                }
                write(out, &one)?;
            }
            Ok(())
        }
        ValueKind::None => refuse("This is empty here. Put it between {% if … %} and {% endif %}."),
        _ => refuse("A switch has no text of its own; use it in {% if … %}."),
    }
}

fn told(error: &Error) -> TemplateError {
    let problem = match (error.kind(), error.detail()) {
        (ErrorKind::UndefinedError, _) => {
            "It names something that no question asks for.".to_owned()
        }
        (ErrorKind::OutOfFuel, _) => "It goes on without an end.".to_owned(),
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => format!("{kind}."),
    };
    TemplateError { line: error.line().unwrap_or(1), problem }
}
