//! Recognises the kind of a question by its words.
//!
//! Codes come before passwords: some servers call a code a "one-time password", and looking for "password" first
//! would send the wrong secret.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptKind {
    /// A code from an app or a token.
    OneTimeCode,
    /// Duo's menu: choose an entry, or type a passcode.
    DuoMenu {
        /// In the server's order.
        choices: Vec<PromptChoice>,
    },
    /// The password of the account.
    Password,
    /// The current password, because it must be changed.
    CurrentPassword,
    NewPassword,
    /// The new password again.
    RetypePassword,
    /// The passphrase of a key.
    Passphrase,
    YesNo,
    Other,
}

/// One entry of a menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptChoice {
    /// What to send: `1`.
    pub answer: String,
    /// What it does, in the server's words.
    pub label: String,
    /// Whether it sends a request to a phone, which must then be approved there.
    pub is_push: bool,
}

/// The longest menu that is offered as buttons.
const MAX_CHOICES: usize = 20;

const CODE_WORDS: &[&str] = &[
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
const PASSWORD_WORDS: &[&str] = &["password", "passord", "mot de passe", "first factor"];
const NEW_WORDS: &[&str] = &["new", "nouveau", "nytt"];
const RETYPE_WORDS: &[&str] = &["retype", "re type", "re enter", "reenter", "again", "repeat"];
/// These mean "again" only next to "new".
const CONFIRM_WORDS: &[&str] = &["confirm", "verify"];
const CURRENT_WORDS: &[&str] = &["current", "old", "actuel"];
/// Lines that only mark where to type.
const INPUT_MARKER_WORDS: &[&str] = &["response", "answer", "reply", "input"];

/// Determines what a cleaned question asks for.
pub(super) fn classify(text: &str) -> PromptKind {
    if find_ssh_password_user(text).is_some() {
        return PromptKind::Password;
    }
    let asked = question_line(text).to_lowercase();
    let words = normalize_words(&asked);
    let has = |list: &[&str]| list.iter().any(|phrase| words.contains(&format!(" {phrase} ")));
    if ["(yes/no", "[yes/no", "(y/n", "[y/n"].iter().any(|mark| asked.contains(mark)) {
        return PromptKind::YesNo;
    }
    let choices = parse_choices(text);
    if !choices.is_empty() && has(&["option", "passcode", "choice", "select"]) {
        return PromptKind::DuoMenu { choices };
    }
    if has(&["passphrase"]) {
        return PromptKind::Passphrase;
    }
    let without_codes = words.replace(" one time password ", " one time ").replace(" onetime password ", " onetime ");
    let password = PASSWORD_WORDS.iter().any(|phrase| without_codes.contains(&format!(" {phrase} ")));
    match (has(CODE_WORDS), password) {
        // Both in one answer: only the server's own words can say how.
        (true, true) | (false, false) => PromptKind::Other,
        (true, false) => PromptKind::OneTimeCode,
        (false, true) if has(RETYPE_WORDS) || (has(NEW_WORDS) && has(CONFIRM_WORDS)) => PromptKind::RetypePassword,
        (false, true) if has(NEW_WORDS) => PromptKind::NewPassword,
        (false, true) if has(CURRENT_WORDS) => PromptKind::CurrentPassword,
        (false, true) => PromptKind::Password,
    }
}

/// `user@host` from `user@host's password:`, which is how `ssh` itself asks.
pub(super) fn find_ssh_password_user(text: &str) -> Option<&str> {
    let who = text.trim_end_matches([':', ' ']).strip_suffix("'s password")?;
    (who.contains('@') && !who.contains(char::is_whitespace)).then_some(who)
}

/// Whether the answer may come from a security key, which types letters.
pub(super) fn mentions_security_key(text: &str) -> bool {
    let words = normalize_words(&text.to_lowercase());
    ["yubikey", "token", "passcode"].iter().any(|word| words.contains(&format!(" {word} ")))
}

/// The line that asks: the last one, or the one before it if the last only marks where to type.
fn question_line(text: &str) -> &str {
    let mut lines = text.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.next().unwrap_or_default();
    let word = last.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    if word.is_empty() || INPUT_MARKER_WORDS.contains(&word.as_str()) {
        return lines.next().unwrap_or(last);
    }
    last
}

/// The words with single spaces around each, without names of people and hosts.
fn normalize_words(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    // A name is enclosed by a backquote and a quote: `alice'.
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
fn parse_choices(text: &str) -> Vec<PromptChoice> {
    let mut found: Vec<PromptChoice> = Vec::new();
    for line in text.lines() {
        let Some((number, label)) = line.trim().split_once(". ") else {
            continue;
        };
        let label = label.trim();
        if number != (found.len() + 1).to_string() || label.is_empty() {
            continue;
        }
        found.push(PromptChoice {
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
