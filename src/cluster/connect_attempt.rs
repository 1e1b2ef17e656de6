//! One connect attempt, as the person's page shows it.

use std::sync::{Mutex, PoisonError};

use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::attempt_log::MAX_NOTICES_LEN;
use crate::sites::prompts::{LoginPrompt, PromptKind};
use crate::ssh::login::{LoginQuestion, is_valid_answer};
use crate::text::clean_text;

/// How many prompts are remembered, to tell a new one from a repeated one.
const MAX_EARLIER_PROMPTS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectPurpose {
    /// Connect and stay connected.
    Connect,
    /// Check whether a new key works; the connection is closed immediately afterwards.
    TestNewKey,
}

impl ConnectPurpose {
    /// The value that the page sends back.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::TestNewKey => "test",
        }
    }
}

/// How far an attempt got.
#[derive(Debug, Clone)]
pub enum ConnectState {
    /// Others are logging in at the same host; this attempt waits for its turn.
    Queued,
    Connecting,
    /// The server asks a question.
    Prompted {
        /// Counts the questions of this attempt.
        number: u32,
        prompt: LoginPrompt,
        /// What the server printed besides the question.
        notices: String,
        /// The server asks the same as before: it did not accept the last answer.
        again: bool,
    },
    /// The server is checking the answer.
    CheckingAnswer {
        /// The person has received a request on their phone.
        push: bool,
    },
    Discovering,
    Finished,
}

impl ConnectState {
    /// What is happening and what it means, for the person who waits.
    pub const fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Queued => ("Waiting for your turn", "Other people are connecting to the same host right now."),
            Self::Connecting => ("Contacting the cluster", "This takes a few seconds."),
            Self::Prompted { prompt, .. } => (prompt.title(), prompt.help()),
            Self::CheckingAnswer { push: true } => (
                "Check your phone",
                "The cluster sent a request to your phone. Approve it there, and this page continues automatically.",
            ),
            Self::CheckingAnswer { push: false } => ("Checking your answer", "This takes a few seconds."),
            Self::Discovering => (
                "Connected. Reading your setup",
                "The portal is finding out which accounts, folders and nodes you can use.",
            ),
            Self::Finished => ("One moment", "This page continues automatically."),
        }
    }
}

pub struct ConnectAttempt {
    pub purpose: ConnectPurpose,
    state: watch::Sender<ConnectState>,
    /// Accepts the answer to the current question.
    reply: Mutex<Option<oneshot::Sender<SecretString>>>,
    cancel: CancellationToken,
    earlier_prompts: Mutex<Vec<LoginPrompt>>,
}

impl ConnectAttempt {
    pub fn new(purpose: ConnectPurpose) -> Self {
        Self {
            purpose,
            state: watch::Sender::new(ConnectState::Connecting),
            reply: Mutex::default(),
            cancel: CancellationToken::new(),
            earlier_prompts: Mutex::default(),
        }
    }

    pub fn state(&self) -> ConnectState {
        self.state.borrow().clone()
    }

    /// Receives every change of state.
    pub fn subscribe(&self) -> watch::Receiver<ConnectState> {
        self.state.subscribe()
    }

    /// Answers a question. False if it is no longer open, or the answer cannot be sent.
    pub(super) fn answer(&self, number: u32, text: SecretString) -> bool {
        if !is_valid_answer(text.expose_secret()) {
            return false;
        }
        let is_asked = self.state.send_if_modified(|state| match state {
            ConnectState::Prompted { number: asked, prompt, .. } if *asked == number => {
                let push = prompt.is_push(text.expose_secret());
                *state = ConnectState::CheckingAnswer { push };
                true
            }
            _ => false,
        });
        let reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take_if(|_| is_asked);
        reply.is_some_and(|reply| reply.send(text).is_ok())
    }

    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Cancelled when the attempt is.
    pub(super) const fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    pub(super) fn set_state(&self, state: ConnectState) {
        self.state.send_replace(state);
    }

    /// Shows a question from the server to the person.
    pub(super) fn ask(&self, question: LoginQuestion) {
        let prompt = LoginPrompt::parse(&question.text);
        let mut earlier = self.earlier_prompts.lock().unwrap_or_else(PoisonError::into_inner);
        let again = earlier.iter().any(|before| is_repeated_prompt(before, &prompt));
        if earlier.len() < MAX_EARLIER_PROMPTS {
            earlier.push(prompt.clone());
        }
        let notices = clean_text(&question.notices, MAX_NOTICES_LEN);
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(question.answer);
        self.set_state(ConnectState::Prompted { number: question.number, prompt, notices, again });
    }
}

/// Whether a question means that an earlier answer was not accepted: a server that starts over asks the same. Two
/// questions of an unknown kind are the same only if their texts are.
fn is_repeated_prompt(last: &LoginPrompt, now: &LoginPrompt) -> bool {
    let familiar = !matches!(now.kind, PromptKind::Other | PromptKind::YesNo);
    std::mem::discriminant(&last.kind) == std::mem::discriminant(&now.kind) && (familiar || last.text == now.text)
}

impl std::fmt::Debug for ConnectAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectAttempt").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_question_is_told_from_a_refused_answer() {
        let again =
            |first: &str, second: &str| is_repeated_prompt(&LoginPrompt::parse(first), &LoginPrompt::parse(second));
        assert!(again("Verification code: ", "Verification code: "));
        assert!(again("Password: ", "Password: "));
        assert!(!again("One-time password (OATH) for `alice': ", "Password: "));
        assert!(!again("What is your quest? ", "What is your favourite colour? "));
        assert!(again("What is your quest? ", "What is your quest? "));
    }

    #[test]
    fn an_answer_reaches_only_the_question_it_was_meant_for() {
        let attempt = ConnectAttempt::new(ConnectPurpose::Connect);
        let ask = |number| {
            let (answer, answered) = oneshot::channel();
            let (text, notices) = ("Password: ".to_owned(), String::new());
            attempt.ask(LoginQuestion { number, text, notices, answer });
            answered
        };
        assert!(!attempt.answer(1, "early".into()), "nothing is asked yet");
        let mut first = ask(1);
        assert!(!attempt.answer(2, "other".into()));
        assert!(!attempt.answer(1, "two\nlines".into()));
        assert!(matches!(attempt.state(), ConnectState::Prompted { number: 1, again: false, .. }));
        assert!(attempt.answer(1, "secret".into()));
        assert!(!attempt.answer(1, "twice".into()), "it is no longer asked");
        assert_eq!(first.try_recv().unwrap().expose_secret(), "secret");
        let mut second = ask(2);
        assert!(matches!(attempt.state(), ConnectState::Prompted { number: 2, again: true, .. }));
        assert!(!attempt.answer(1, "late".into()));
        assert!(second.try_recv().is_err());
    }
}
