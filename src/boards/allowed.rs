//! What those who are not a board's owner may ask of it: reading, and nothing that writes, uploads or calls out. Pure.
//!
//! One table for each kind, found out from the programs' routes and from what their pages ask for. `server.py` gets the
//! same table for versions of MLflow that it shows read-only to everyone.

use super::Kind;

/// Whether a guest's request passes. `path` is the part after the board's prefix as the board will get it, without its
/// query: percent-encoded, beginning with a slash. What does not decode, or holds anything odd, does not pass.
pub fn is_allowed(kind: Kind, method: &str, path: &str) -> bool {
    let Some(path) = decoded(path) else { return false };
    let method = if method == "HEAD" { "GET" } else { method };
    rules(kind).any(|(known, pattern)| known == method && fits(pattern, &path))
}

/// The table of a kind: a method (GET stands for HEAD, too) and a path, in which `*` is one step and `**` at the end is
/// one step or more.
pub fn rules(kind: Kind) -> impl Iterator<Item = (&'static str, &'static str)> {
    let table = match kind {
        Kind::TensorBoard => TENSORBOARD,
        Kind::Mlflow => MLFLOW,
    };
    table.iter().flat_map(|(method, paths)| paths.iter().map(move |path| (*method, *path)))
}

fn fits(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut steps) = (pattern.split('/').skip(1), path.split('/').skip(1));
    loop {
        match (wanted.next(), steps.next()) {
            (Some("**"), Some(_)) => return true,
            (Some("*"), Some(step)) if !step.is_empty() => {}
            (Some(want), Some(step)) if want == step => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// The path as the board reads it, if there is only one way to read it.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' {
            let pair = [rest.next()?, rest.next()?];
            let pair = str::from_utf8(&pair).ok().filter(|pair| !pair.starts_with('+'))?;
            // A slash that is written in code may or may not divide steps, depending on who reads it.
            u8::from_str_radix(pair, 16).ok().filter(|byte| *byte != b'/')?
        } else {
            byte
        };
        bytes.push(byte);
    }
    let path = String::from_utf8(bytes).ok()?;
    let is_clear = path.starts_with('/')
        && !path.contains(['\\', '?', '#', '%'])
        && !path.contains("//")
        && !path.chars().any(char::is_control)
        && !path.split('/').any(|step| step == "." || step == "..");
    is_clear.then_some(path)
}

type Table = &'static [(&'static str, &'static [&'static str])];

const TENSORBOARD: Table = &[];
const MLFLOW: Table = &[];

#[cfg(test)]
mod tests;
