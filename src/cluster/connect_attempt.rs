//! One try to connect, as the person's page sees it.

use std::sync::{Mutex, OnceLock, PoisonError};

use secrecy::SecretString;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::sites::prompts::{LoginPrompt, PromptKind, clean_text};
use crate::ssh::login::{LoginAnswers, LoginStage};

/// Most characters of a server's notices on a page.
const MAX_NOTICES_LEN: usize = 4000;

/// Questions that are remembered, to tell a new one from one that is asked again.
const MAX_EARLIER_PROMPTS: usize = 20;

/// What a try is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectPurpose {
    /// To connect and stay connected.
    Connect,
    /// To see whether a new key works; closed again at once.
    TestNewKey,
}

/// How far a try got.
#[derive(Debug, Clone)]
pub enum ConnectProgress {
    /// Others are signing in at the same host; this one waits for its turn.
    Queued,
    /// On the way to the host.
    Connecting,
    /// The server asks something.
    Prompted {
        /// The how many-th question.
        number: u32,
        prompt: LoginPrompt,
        /// What the server said besides.
        notices: String,
        /// It asks the same as before: the last answer was not accepted.
        again: bool,
    },
    /// The answer is with the server.
    CheckingAnswer {
        /// The person has been sent a request on their phone.
        push: bool,
    },
    Discovering,
    Finished,
}

/// One try to connect.
pub struct ConnectAttempt {
    /// What it is for.
    pub purpose: ConnectPurpose,
    progress: watch::Sender<ConnectProgress>,
    answers: OnceLock<LoginAnswers>,
    cancel: CancellationToken,
    earlier_prompts: Mutex<Vec<LoginPrompt>>,
}

impl ConnectAttempt {
    pub fn new(purpose: ConnectPurpose) -> Self {
        Self {
            purpose,
            progress: watch::Sender::new(ConnectProgress::Connecting),
            answers: OnceLock::new(),
            cancel: CancellationToken::new(),
            earlier_prompts: Mutex::default(),
        }
    }

    /// How far it got.
    pub fn progress(&self) -> ConnectProgress {
        self.progress.borrow().clone()
    }

    /// Tells of each step.
    pub fn subscribe(&self) -> watch::Receiver<ConnectProgress> {
        self.progress.subscribe()
    }

    /// Answers a question. False if it is no longer asked, or the answer cannot be sent.
    pub async fn answer(&self, number: u32, text: SecretString) -> bool {
        use secrecy::ExposeSecret as _;
        let Some(answers) = self.answers.get() else { return false };
        let ConnectProgress::Prompted { number: asked, prompt, .. } = self.progress() else {
            return false;
        };
        if asked != number {
            return false;
        }
        let push = prompt.is_push(text.expose_secret());
        if !answers.submit(number, text).await {
            return false;
        }
        // The next step of the server may be here already; then this is past.
        self.progress.send_if_modified(|progress| {
            let current =
                matches!(progress, ConnectProgress::Prompted { number: now, .. } if *now == number);
            if current {
                *progress = ConnectProgress::CheckingAnswer { push };
            }
            current
        });
        true
    }

    pub fn cancel(&self) {
        self.cancel.cancel();
        if let Some(answers) = self.answers.get() {
            answers.cancel();
        }
    }

    /// Is over when it was given up.
    pub(super) const fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    pub(super) fn set_answers(&self, answers: LoginAnswers) {
        if self.cancel.is_cancelled() {
            answers.cancel();
        }
        let _ = self.answers.set(answers);
    }

    pub(super) fn set_progress(&self, progress: ConnectProgress) {
        self.progress.send_replace(progress);
    }

    /// What ssh reports, in terms of the page.
    pub(super) fn apply_stage(&self, stage: &LoginStage) {
        match stage {
            LoginStage::Connecting => self.set_progress(ConnectProgress::Connecting),
            // The page's own step says more; it knows whether a phone was asked.
            LoginStage::Checking { .. } => {}
            LoginStage::Asked { number, text, notices } => {
                let prompt = LoginPrompt::parse(text);
                let mut earlier =
                    self.earlier_prompts.lock().unwrap_or_else(PoisonError::into_inner);
                let again = earlier.iter().any(|before| is_repeated_prompt(before, &prompt));
                if earlier.len() < MAX_EARLIER_PROMPTS {
                    earlier.push(prompt.clone());
                }
                let notices = clean_text(notices, MAX_NOTICES_LEN);
                self.set_progress(ConnectProgress::Prompted {
                    number: *number,
                    prompt,
                    notices,
                    again,
                });
            }
        }
    }
}

/// Whether a question means that an earlier answer was not accepted: a server that begins again asks the same. Two questions of an unknown kind are
/// the same only if their words are.
fn is_repeated_prompt(last: &LoginPrompt, now: &LoginPrompt) -> bool {
    let familiar = !matches!(now.kind, PromptKind::Other | PromptKind::YesNo);
    std::mem::discriminant(&last.kind) == std::mem::discriminant(&now.kind)
        && (familiar || last.text == now.text)
}

impl std::fmt::Debug for ConnectAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_question_is_told_from_a_refused_answer() {
        let again = |first: &str, second: &str| {
            is_repeated_prompt(&LoginPrompt::parse(first), &LoginPrompt::parse(second))
        };
        assert!(again("Verification code: ", "Verification code: "));
        assert!(again("Password: ", "Password: "));
        assert!(!again("One-time password (OATH) for `alice': ", "Password: "));
        assert!(!again("What is your quest? ", "What is your favourite colour? "));
        assert!(again("What is your quest? ", "What is your quest? "));
    }
}
