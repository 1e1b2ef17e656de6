//! Reads what a server asks while a person logs in to a cluster, and explains it to people who have never used a
//! terminal.
//!
//! The text comes from the server and may contain anything: it is cleaned and bounded here, and never trusted.
//! Recognising a prompt only affects the wording and the form field; the answer always goes to the server as typed.

use crate::text::{self, CleanedText};

mod kinds;

pub use kinds::{PromptChoice, PromptKind};

pub const MAX_PROMPT_CHARS: usize = 4000;

/// One question from a server, safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginPrompt {
    /// The host that asks, if `ssh` names it: with a jump host, this tells the two hosts apart.
    pub hop: Option<String>,
    /// The question with the lines before it; line breaks are its only control characters.
    pub text: String,
    /// Whether it was too long and its end was cut off.
    pub is_truncated: bool,
    pub kind: PromptKind,
}

impl LoginPrompt {
    /// Parses the text that `ssh` passes to the askpass program.
    pub fn parse(raw: &str) -> Self {
        // Room for the prefix, which is removed afterwards.
        let CleanedText { text, is_truncated: too_long } =
            text::clean_bounded(raw, MAX_PROMPT_CHARS + PREFIX_MAX, text::MAX_LINES);
        let (hop, question) = split_prefix(&text);
        let CleanedText { text, is_truncated: cut } = text::clean_bounded(question, MAX_PROMPT_CHARS, text::MAX_LINES);
        let kind = kinds::classify(&text);
        Self { hop: hop.or_else(|| password_host(&text)), text, is_truncated: cut || too_long, kind }
    }

    /// A heading for the form.
    pub const fn title(&self) -> &'static str {
        match self.kind {
            PromptKind::OneTimeCode => "Enter your one-time code",
            PromptKind::DuoMenu { .. } => "Confirm that it is you",
            PromptKind::Password => "Enter your password for the cluster",
            PromptKind::CurrentPassword => "Your password has run out: enter the old one",
            PromptKind::NewPassword => "Choose a new password for the cluster",
            PromptKind::RetypePassword => "Enter the new password once more",
            PromptKind::Passphrase => "Enter the passphrase of the key",
            PromptKind::YesNo => "The cluster asks for a yes or a no",
            PromptKind::Other => "The cluster asks a question",
        }
    }

    /// What to do, in a few sentences.
    pub const fn help(&self) -> &'static str {
        match self.kind {
            PromptKind::OneTimeCode => {
                "Open the app on your phone that shows codes for this cluster, and type the code it shows now. \
                 A code is valid for about half a minute and works once; if it is about to change, wait for the next."
            }
            PromptKind::DuoMenu { .. } => {
                "Choose what your phone should do, then confirm there. Or type a passcode from the Duo app, or \
                 touch your security key while the cursor is in the field."
            }
            PromptKind::Password => {
                "This is the password of your account at the cluster, not the one of this portal. It goes straight \
                 to the cluster and is not kept."
            }
            PromptKind::CurrentPassword => {
                "The cluster wants you to change your password there before it lets you in. First it asks for the \
                 password that you have used so far."
            }
            PromptKind::NewPassword => {
                "The cluster wants a new password for your account there. Choose one that you use nowhere else, and \
                 note it where you keep passwords: this portal does not keep it."
            }
            PromptKind::RetypePassword => {
                "Type the same new password again, so that a slip of the finger does not lock you out."
            }
            PromptKind::Passphrase => {
                "The key is protected by a passphrase, which was chosen when the key was made. It is used now and \
                 not kept."
            }
            PromptKind::YesNo => "Read what the cluster says below, then answer yes or no.",
            PromptKind::Other => {
                "The words below come from the cluster itself. If they make no sense to you, cancel and ask the \
                 people who run this portal."
            }
        }
    }

    /// What to do when the last answer was not accepted and the server asks again.
    pub const fn retry_help(&self) -> &'static str {
        match self.kind {
            PromptKind::OneTimeCode => {
                "The last answer was not accepted. A code works only once: if you have used it, wait for the next."
            }
            PromptKind::DuoMenu { .. } => {
                "The last try was not confirmed. Choose again; if you chose the phone, approve the request there."
            }
            PromptKind::Password | PromptKind::CurrentPassword | PromptKind::Passphrase => {
                "The last answer was not accepted. Type it again, and mind capital letters."
            }
            PromptKind::NewPassword | PromptKind::RetypePassword => {
                "The cluster did not take the new password. Read below why, and choose another."
            }
            PromptKind::YesNo | PromptKind::Other => "The last answer was not accepted.",
        }
    }

    /// The label of the field.
    pub const fn label(&self) -> &'static str {
        match self.kind {
            PromptKind::OneTimeCode => "Code",
            PromptKind::DuoMenu { .. } => "Or a passcode",
            PromptKind::Password | PromptKind::CurrentPassword => "Password",
            PromptKind::NewPassword | PromptKind::RetypePassword => "New password",
            PromptKind::Passphrase => "Passphrase",
            PromptKind::YesNo | PromptKind::Other => "Answer",
        }
    }

    /// The choices to offer as buttons.
    pub fn choices(&self) -> &[PromptChoice] {
        match &self.kind {
            PromptKind::DuoMenu { choices } => choices,
            _ => &[],
        }
    }

    /// Whether an answer sends a request to a phone, which must then be approved there.
    pub fn is_push(&self, answer: &str) -> bool {
        let answer = answer.trim();
        self.choices().iter().any(|choice| choice.is_push && choice.answer == answer)
    }

    /// Whether the answer is a code of a few digits.
    pub const fn is_code(&self) -> bool {
        matches!(self.kind, PromptKind::OneTimeCode | PromptKind::DuoMenu { .. })
    }

    /// Whether to hide the answer while it is typed.
    pub const fn is_secret(&self) -> bool {
        !matches!(self.kind, PromptKind::OneTimeCode | PromptKind::DuoMenu { .. } | PromptKind::YesNo)
    }

    /// Which keyboard a phone shows.
    pub fn input_mode(&self) -> &'static str {
        match self.kind {
            PromptKind::OneTimeCode if !kinds::mentions_security_key(&self.text) => "numeric",
            _ => "text",
        }
    }
}

/// The longest prefix that `ssh` can put before a question.
const PREFIX_MAX: usize = 400;

/// Removes `(user@host) `, which `ssh` puts before a server's questions.
fn split_prefix(text: &str) -> (Option<String>, &str) {
    let found = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let Some((inside, question)) = found else {
        return (None, text);
    };
    let plain = inside.len() < PREFIX_MAX && !inside.contains([' ', '\n', '(']);
    match inside.rsplit_once('@') {
        Some((user, host)) if plain && !user.is_empty() && !host.is_empty() => {
            (Some(host.to_owned()), question.strip_prefix(' ').unwrap_or(question))
        }
        _ => (None, text),
    }
}

/// The host in `user@host's password:`, which is how `ssh` itself asks.
fn password_host(text: &str) -> Option<String> {
    let who = kinds::find_ssh_password_user(text)?;
    who.rsplit_once('@').map(|(_, host)| host.to_owned())
}

#[cfg(test)]
mod tests;
