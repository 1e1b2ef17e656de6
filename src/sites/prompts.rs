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
            PromptKind::DuoMenu { .. } => "Confirm your identity",
            PromptKind::Password => "Enter your cluster password",
            PromptKind::CurrentPassword => "Your cluster password has expired: enter the current one",
            PromptKind::NewPassword => "Choose a new cluster password",
            PromptKind::RetypePassword => "Enter the new password again",
            PromptKind::Passphrase => "Enter the key's passphrase",
            PromptKind::YesNo => "The cluster asks a yes/no question",
            PromptKind::Other => "The cluster asks a question",
        }
    }

    /// What to do, in a few sentences.
    pub const fn help(&self) -> &'static str {
        match self.kind {
            PromptKind::OneTimeCode => {
                "Open the authenticator app on your phone and enter the current code for this cluster. \
                 Each code works once and lasts about 30 seconds; if it's about to change, wait for the next one."
            }
            PromptKind::DuoMenu { .. } => {
                "Choose an option and confirm on your phone. Or enter a passcode from the Duo app, or \
                 touch your security key while the cursor is in the field."
            }
            PromptKind::Password => {
                "This is the password of your cluster account, not your portal password. It goes straight \
                 to the cluster and isn't stored."
            }
            PromptKind::CurrentPassword => {
                "You must change your cluster password before you can connect. First, enter your \
                 current password."
            }
            PromptKind::NewPassword => {
                "The cluster requires a new password for your account. Choose one that you use nowhere else, and \
                 save it in your password manager: this portal doesn't store it."
            }
            PromptKind::RetypePassword => "Enter the new password again, so that a typo doesn't lock you out.",
            PromptKind::Passphrase => {
                "The key is protected by a passphrase, chosen when the key was created. It's used once and \
                 isn't stored."
            }
            PromptKind::YesNo => "Read the cluster's message below, then answer yes or no.",
            PromptKind::Other => {
                "The question below comes from the cluster itself. If you're not sure what it means, cancel and ask \
                 your portal administrator."
            }
        }
    }

    /// What to do when the last answer was not accepted and the server asks again.
    pub const fn retry_help(&self) -> &'static str {
        match self.kind {
            PromptKind::OneTimeCode => {
                "The cluster rejected the code. Each code works only once: if you've already used it, wait for the next one."
            }
            PromptKind::DuoMenu { .. } => {
                "The last request wasn't confirmed. Choose again, and approve the request on your phone."
            }
            PromptKind::Password | PromptKind::CurrentPassword | PromptKind::Passphrase => {
                "The cluster rejected the password. Enter it again, and check capital letters."
            }
            PromptKind::NewPassword | PromptKind::RetypePassword => {
                "The cluster rejected the new password. Read the reason below, and choose another one."
            }
            PromptKind::YesNo | PromptKind::Other => "The cluster rejected the last answer.",
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
