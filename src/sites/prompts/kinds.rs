//! Tells the kinds of questions apart by their words.
//!
//! Codes come before passwords: some servers call a code a "one-time password", and whoever looks for "password" first
//! sends the wrong secret.

/// What a server asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A code from an app or a token.
    OneTimeCode,
    /// Duo's list: choose one, or type a passcode.
    DuoMenu {
        /// The choices, in the server's order.
        choices: Vec<Choice>,
    },
    /// The password of the account.
    Password,
    /// The password so far, because it must be changed.
    CurrentPassword,
    /// A new password.
    NewPassword,
    /// The new password again.
    RetypePassword,
    /// What protects a key.
    Passphrase,
    /// Yes or no.
    YesNo,
    /// Something else.
    Other,
}

/// One line of a list to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What to send: `1`.
    pub answer: String,
    /// What it does, in the server's words.
    pub label: String,
    /// Whether it sends a request to a phone, which must then be approved there.
    pub is_push: bool,
}

/// Longest list that is offered as buttons.
const MAX_CHOICES: usize = 20;

const CODE: &[&str] = &[
    "one time",
    "onetime",
    "otp",
    "totp",
    "hotp",
    "oath",
    "code",
    "codes",
    "passcode",
    "tokencode",
    "token",
    "authenticator",
    "second factor",
    "two factor",
    "2fa",
    "mfa",
    "yubikey",
    "engangskode",
    "engangspassord",
    "kode",
];
const PASSWORD: &[&str] = &["password", "passord", "mot de passe", "first factor"];
const NEW: &[&str] = &["new", "nouveau", "nytt"];
const AGAIN: &[&str] = &["retype", "re type", "re enter", "reenter", "again", "repeat"];
/// These mean "again" only beside "new".
const CONFIRM: &[&str] = &["confirm", "verify"];
const CURRENT: &[&str] = &["current", "old", "actuel"];
/// Lines that only mark where to type.
const BARE: &[&str] = &["response", "answer", "reply", "input"];

/// Finds out what a cleaned question asks for.
pub(super) fn classify(text: &str) -> Kind {
    if asks_by_name(text).is_some() {
        return Kind::Password;
    }
    let asked = question(text).to_lowercase();
    let words = normal(&asked);
    let has = |list: &[&str]| list.iter().any(|phrase| words.contains(&format!(" {phrase} ")));
    if ["(yes/no", "[yes/no", "(y/n", "[y/n"].iter().any(|mark| asked.contains(mark)) {
        return Kind::YesNo;
    }
    let choices = choices(text);
    if !choices.is_empty() && has(&["option", "passcode", "choice", "select"]) {
        return Kind::DuoMenu { choices };
    }
    if has(&["passphrase"]) {
        return Kind::Passphrase;
    }
    let spoken = words
        .replace(" one time password ", " one time ")
        .replace(" onetime password ", " onetime ");
    let password = PASSWORD.iter().any(|phrase| spoken.contains(&format!(" {phrase} ")));
    match (has(CODE), password) {
        // Both in one answer: only the server's own words can tell how.
        (true, true) | (false, false) => Kind::Other,
        (true, false) => Kind::OneTimeCode,
        (false, true) if has(AGAIN) || (has(NEW) && has(CONFIRM)) => Kind::RetypePassword,
        (false, true) if has(NEW) => Kind::NewPassword,
        (false, true) if has(CURRENT) => Kind::CurrentPassword,
        (false, true) => Kind::Password,
    }
}

/// `user@host` of `user@host's password:`, which is how `ssh` itself asks.
pub(super) fn asks_by_name(text: &str) -> Option<&str> {
    let who = text.trim_end_matches([':', ' ']).strip_suffix("'s password")?;
    (who.contains('@') && !who.contains(char::is_whitespace)).then_some(who)
}

/// Whether the answer may come from a security key, which types letters.
pub(super) fn mentions_security_key(text: &str) -> bool {
    let words = normal(&text.to_lowercase());
    ["yubikey", "token", "passcode"].iter().any(|word| words.contains(&format!(" {word} ")))
}

/// The line that asks: the last one, or the one before it where the last only marks the place to type.
fn question(text: &str) -> &str {
    let mut lines = text.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.next().unwrap_or_default();
    let word = last.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    if word.is_empty() || BARE.contains(&word.as_str()) {
        return lines.next().unwrap_or(last);
    }
    last
}

/// The words with single blanks around each, without names of people and hosts.
fn normal(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    // A name stands between a backquote and a quote: `alice'.
    while let Some((before, after)) = rest.split_once('`') {
        plain.push_str(before);
        plain.push(' ');
        rest = after.split_once('\'').map_or(after, |(_, after)| after);
    }
    plain.push_str(rest);
    let mut words = String::from(" ");
    for part in plain.split_whitespace().filter(|part| !part.contains('@')) {
        for word in part.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            words.push_str(word);
            words.push(' ');
        }
    }
    words
}

/// Lines such as ` 1. Duo Push to My phone (iOS)`, numbered from one.
fn choices(text: &str) -> Vec<Choice> {
    let mut found: Vec<Choice> = Vec::new();
    for line in text.lines() {
        let Some((number, label)) = line.trim().split_once(". ") else {
            continue;
        };
        let label = label.trim();
        if number != (found.len() + 1).to_string() || label.is_empty() {
            continue;
        }
        found.push(Choice {
            answer: number.to_owned(),
            label: label.to_owned(),
            is_push: label.to_lowercase().contains("push"),
        });
        if found.len() == MAX_CHOICES {
            break;
        }
    }
    found
}
