//! Answers: what a person typed, read as what it means, or a sentence that says what is wrong.

mod amounts;
#[cfg(test)]
mod tests;

use super::question::{Kind, Question, Shape};
use super::quoting::{self, Words, refuse_tricks};

pub use self::amounts::{duration, memory};

/// No answer on one line is longer.
const LONGEST_LINE: usize = 4000;
/// No answer of several lines is longer.
const LONGEST: usize = 200_000;
/// No list has more lines.
const MOST_LINES: usize = 5000;

/// An answer that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text, taken literally.
    Text(String),
    /// A whole number.
    Number(i64),
    /// Yes or no.
    Switch(bool),
    /// Minutes.
    Minutes(u32),
    /// Mebibytes.
    Memory(u64),
    /// Words with known variables in them: a path, arguments.
    Words(Vec<Words>),
    /// Environment variables.
    Variables(Vec<(String, Words)>),
    /// Code, run as it stands.
    Code(String),
    /// Each point of a sweep has its own: the variable's name.
    Swept(String),
}

/// Reads an answer that is not empty. `known`: the names of a sweep, which words may hold.
pub fn read(question: &Question, text: &str, known: &[String]) -> Result<Value, String> {
    if text.len() > if question.kind.has_lines() { LONGEST } else { LONGEST_LINE } {
        return Err("This is too long.".to_owned());
    }
    match question.kind {
        Kind::Text => {
            refuse_tricks(text)?;
            shaped(text, question.shape)?;
            Ok(Value::Text(text.to_owned()))
        }
        Kind::Gpu | Kind::Account | Kind::JobType => {
            shaped(text, Shape::Name)?;
            Ok(Value::Text(text.to_owned()))
        }
        Kind::Choice => {
            let known = question.choices.iter().any(|choice| choice.value == text);
            if known { Ok(Value::Text(text.to_owned())) } else { Err(NOT_OFFERED.to_owned()) }
        }
        Kind::Switch => match text {
            "true" | "on" | "yes" => Ok(Value::Switch(true)),
            "false" | "off" | "no" => Ok(Value::Switch(false)),
            _ => Err(NOT_OFFERED.to_owned()),
        },
        Kind::Number => number(text, question).map(Value::Number),
        Kind::Job => {
            let digits = text.trim().parse::<i64>().ok().filter(|number| *number > 0);
            digits.map(Value::Number).ok_or_else(|| "Give the job's number.".to_owned())
        }
        Kind::Duration => {
            let minutes = duration(text)?;
            amounts::within(&minutes, question, |text| duration(text).ok())?;
            Ok(Value::Minutes(minutes))
        }
        Kind::Memory => {
            let mb = memory(text)?;
            amounts::within(&mb, question, |text| memory(text).ok())?;
            Ok(Value::Memory(mb))
        }
        Kind::Path => {
            let shape =
                if question.relative { quoting::Shape::Relative } else { quoting::Shape::Full };
            Ok(Value::Words(vec![quoting::path(text.trim(), shape, known)?]))
        }
        Kind::Paths => {
            let read = |line: &str| quoting::path(line, quoting::Shape::Relative, known);
            lines(text)?.into_iter().map(read).collect::<Result<_, _>>().map(Value::Words)
        }
        Kind::Arguments => quoting::arguments(text, known).map(Value::Words),
        Kind::Variables => lines(text)?
            .into_iter()
            .map(|line| variable(line, known))
            .collect::<Result<_, _>>()
            .map(Value::Variables),
        Kind::List => {
            let all = lines(text)?;
            Ok(Value::Words(all.into_iter().map(Words::literal).collect()))
        }
        Kind::Modules => {
            let mut all = Vec::new();
            for name in text.split([' ', ',', '\t', '\n', '\r']).filter(|name| !name.is_empty()) {
                shaped(name, Shape::Name)?;
                all.push(Words::literal(name));
            }
            Ok(Value::Words(all))
        }
        Kind::Command | Kind::Script => code(text).map(Value::Code),
    }
}

const NOT_OFFERED: &str = "Choose one of those that are offered.";

/// Code may have lines; what no terminal shows does not belong in it.
fn code(text: &str) -> Result<String, String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let bad = |c: char| c != '\n' && c != '\t' && !quoting::is_allowed(c);
    if text.contains(bad) {
        return Err("This holds a character that cannot be seen. Type it anew.".to_owned());
    }
    Ok(text.trim_end().to_owned())
}

fn lines(text: &str) -> Result<Vec<&str>, String> {
    let all: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if all.len() > MOST_LINES {
        return Err(format!("These are more than {MOST_LINES} lines."));
    }
    for line in &all {
        refuse_tricks(line)?;
    }
    Ok(all)
}

fn number(text: &str, question: &Question) -> Result<i64, String> {
    let number: i64 =
        text.trim().parse().map_err(|_| "Give a whole number, such as 4.".to_owned())?;
    let limit = |given: &str| given.parse::<i64>().ok();
    if let Some(least) = limit(&question.min.0).filter(|least| number < *least) {
        return Err(format!("At least {least}."));
    }
    if let Some(most) = limit(&question.max.0).filter(|most| number > *most) {
        return Err(format!("At most {most}."));
    }
    Ok(number)
}

fn variable(line: &str, known: &[String]) -> Result<(String, Words), String> {
    let (name, value) = line
        .split_once('=')
        .ok_or_else(|| format!("Write each as NAME=value; “{line}” has no equals sign."))?;
    let name = name.trim();
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !good {
        return Err(format!(
            "“{name}” cannot be the name of a variable: letters, digits and _ only."
        ));
    }
    // The value is one word, with or without quotes around it.
    let mut words = quoting::arguments(value.trim(), known)?;
    match words.len() {
        0 => Ok((name.to_owned(), Words::default())),
        1 => Ok((name.to_owned(), words.remove(0))),
        _ => quoting::path(value.trim(), quoting::Shape::Relative, known)
            .map(|words| (name.to_owned(), words)),
    }
}

fn shaped(text: &str, shape: Shape) -> Result<(), String> {
    let all = |extra: &str| {
        text.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
            && !text.starts_with('-')
    };
    match shape {
        Shape::Any => Ok(()),
        Shape::Name if all("-_.+:/@") => Ok(()),
        Shape::Name => Err("Letters, digits and - _ . + : / @ only, without spaces.".to_owned()),
        Shape::Url => {
            let known = ["https://", "http://", "s3://", "ssh://", "git@"];
            let good =
                known.iter().any(|start| text.len() > start.len() && text.starts_with(start));
            if good && !text.contains(char::is_whitespace) {
                Ok(())
            } else {
                Err("Give an address that begins with https:// or s3://, without spaces."
                    .to_owned())
            }
        }
        Shape::GitRef if all("-_./+@") && !text.contains("..") => Ok(()),
        Shape::GitRef => Err("Give the name of a branch or tag, or a commit's number.".to_owned()),
    }
}
