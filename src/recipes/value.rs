//! Answers: parses what a person typed, or explains in a sentence what is wrong.

mod amounts;
#[cfg(test)]
mod tests;

use super::question::{RecipeQuestion, RecipeQuestionKind, TextAnswerFormat};
use super::quoting::{self, ShellWord, reject_invisible_chars};

pub use self::amounts::{parse_duration, parse_memory};

/// For answers on one line.
const MAX_LINE_LEN: usize = 4000;
/// For answers with several lines.
const MAX_TEXT_LEN: usize = 200_000;
/// For lists.
const MAX_LINES: usize = 5000;

/// A parsed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerValue {
    Text(String),
    Number(i64),
    Switch(bool),
    Minutes(u32),
    Memory(u64),
    /// Words that may contain known variables: a path, arguments.
    Words(Vec<ShellWord>),
    Variables(Vec<(String, ShellWord)>),
    /// Shell code, run as it is.
    Code(String),
    /// Differs per point of a sweep; holds the variable's name.
    Swept(String),
}

/// Parses a non-empty answer. `known`: sweep variables that words may contain.
pub fn parse_answer(question: &RecipeQuestion, text: &str, known: &[String]) -> Result<AnswerValue, String> {
    if text.len() > if question.kind.is_multiline() { MAX_TEXT_LEN } else { MAX_LINE_LEN } {
        return Err("This is too long.".to_owned());
    }
    match question.kind {
        RecipeQuestionKind::Text if question.shape == TextAnswerFormat::Location => {
            Ok(AnswerValue::Words(vec![quoting::parse_location(text.trim(), known)?]))
        }
        RecipeQuestionKind::Text => {
            reject_invisible_chars(text)?;
            check_format(text, question.shape)?;
            Ok(AnswerValue::Text(text.to_owned()))
        }
        RecipeQuestionKind::Gpu | RecipeQuestionKind::Account | RecipeQuestionKind::JobType => {
            check_format(text, TextAnswerFormat::Name)?;
            Ok(AnswerValue::Text(text.to_owned()))
        }
        RecipeQuestionKind::Choice => {
            let known = question.choices.iter().any(|choice| choice.value == text);
            if known { Ok(AnswerValue::Text(text.to_owned())) } else { Err(NOT_OFFERED_MESSAGE.to_owned()) }
        }
        RecipeQuestionKind::Switch => match text {
            "true" | "on" | "yes" => Ok(AnswerValue::Switch(true)),
            "false" | "off" | "no" => Ok(AnswerValue::Switch(false)),
            _ => Err(NOT_OFFERED_MESSAGE.to_owned()),
        },
        RecipeQuestionKind::Number => parse_number(text, question).map(AnswerValue::Number),
        RecipeQuestionKind::Job => {
            let digits = text.trim().parse::<i64>().ok().filter(|number| *number > 0);
            digits.map(AnswerValue::Number).ok_or_else(|| "Enter a job ID.".to_owned())
        }
        RecipeQuestionKind::Duration => {
            let minutes = parse_duration(text)?;
            amounts::check_limits(&minutes, question, |text| parse_duration(text).ok())?;
            Ok(AnswerValue::Minutes(minutes))
        }
        RecipeQuestionKind::Memory => {
            let mb = parse_memory(text)?;
            amounts::check_limits(&mb, question, |text| parse_memory(text).ok())?;
            Ok(AnswerValue::Memory(mb))
        }
        RecipeQuestionKind::Path => {
            let shape =
                if question.relative { quoting::PathStartRule::Relative } else { quoting::PathStartRule::Absolute };
            Ok(AnswerValue::Words(vec![quoting::parse_path(text.trim(), shape, known)?]))
        }
        RecipeQuestionKind::Paths => {
            let read = |line: &str| quoting::parse_path(line, quoting::PathStartRule::Relative, known);
            parse_lines(text)?.into_iter().map(read).collect::<Result<_, _>>().map(AnswerValue::Words)
        }
        RecipeQuestionKind::Arguments => quoting::parse_arguments(text, known).map(AnswerValue::Words),
        RecipeQuestionKind::Variables => parse_lines(text)?
            .into_iter()
            .map(|line| parse_variable(line, known))
            .collect::<Result<_, _>>()
            .map(AnswerValue::Variables),
        RecipeQuestionKind::List => {
            let read = |line: &str| match question.shape {
                TextAnswerFormat::Location => quoting::parse_location(line, known),
                _ => Ok(ShellWord::literal(line)),
            };
            parse_lines(text)?.into_iter().map(read).collect::<Result<_, _>>().map(AnswerValue::Words)
        }
        RecipeQuestionKind::Modules => {
            let mut all = Vec::new();
            for name in text.split([' ', ',', '\t', '\n', '\r']).filter(|name| !name.is_empty()) {
                check_format(name, TextAnswerFormat::Name)?;
                all.push(ShellWord::literal(name));
            }
            Ok(AnswerValue::Words(all))
        }
        RecipeQuestionKind::Command | RecipeQuestionKind::Script => parse_code(text).map(AnswerValue::Code),
    }
}

const NOT_OFFERED_MESSAGE: &str = "Choose one of the options.";

/// Code may have several lines, but no invisible characters.
fn parse_code(text: &str) -> Result<String, String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let bad = |c: char| c != '\n' && c != '\t' && !quoting::is_allowed_char(c);
    if text.contains(bad) {
        return Err("This contains an invisible character. Type it again.".to_owned());
    }
    Ok(text.trim_end().to_owned())
}

fn parse_lines(text: &str) -> Result<Vec<&str>, String> {
    let all: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if all.len() > MAX_LINES {
        return Err(format!("Enter at most {MAX_LINES} lines."));
    }
    for line in &all {
        reject_invisible_chars(line)?;
    }
    Ok(all)
}

fn parse_number(text: &str, question: &RecipeQuestion) -> Result<i64, String> {
    let number: i64 = text.trim().parse().map_err(|_| "Enter a whole number, such as 4.".to_owned())?;
    let limit = |given: &str| given.parse::<i64>().ok();
    if let Some(least) = limit(&question.min.0).filter(|least| number < *least) {
        return Err(format!("Must be at least {least}."));
    }
    if let Some(most) = limit(&question.max.0).filter(|most| number > *most) {
        return Err(format!("Must be at most {most}."));
    }
    Ok(number)
}

fn parse_variable(line: &str, known: &[String]) -> Result<(String, ShellWord), String> {
    let (name, value) =
        line.split_once('=').ok_or_else(|| format!("Write each line as NAME=value. “{line}” has no equals sign."))?;
    let name = name.trim();
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !good {
        return Err(format!("“{name}” isn't a valid variable name. Use letters, digits and _."));
    }
    // The value is one word, with or without quotes around it.
    let mut words = quoting::parse_arguments(value.trim(), known)?;
    match words.len() {
        0 => Ok((name.to_owned(), ShellWord::default())),
        1 => Ok((name.to_owned(), words.remove(0))),
        _ => quoting::parse_path(value.trim(), quoting::PathStartRule::Relative, known)
            .map(|words| (name.to_owned(), words)),
    }
}

fn check_format(text: &str, shape: TextAnswerFormat) -> Result<(), String> {
    let all =
        |extra: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c)) && !text.starts_with('-');
    match shape {
        TextAnswerFormat::Any | TextAnswerFormat::Location => Ok(()),
        TextAnswerFormat::Name if all("-_.+:/@") => Ok(()),
        TextAnswerFormat::Name => Err("Use only letters, digits and - _ . + : / @, without spaces.".to_owned()),
        TextAnswerFormat::Url => {
            let known = ["https://", "http://", "s3://", "ssh://", "git@"];
            let good = known.iter().any(|start| text.len() > start.len() && text.starts_with(start));
            if good && !text.contains(char::is_whitespace) {
                Ok(())
            } else {
                Err("Enter an address that starts with https:// or s3://, without spaces.".to_owned())
            }
        }
        TextAnswerFormat::GitRef if all("-_./+@") && !text.contains("..") => Ok(()),
        TextAnswerFormat::GitRef => Err("Enter a branch, a tag or a commit hash.".to_owned()),
    }
}
