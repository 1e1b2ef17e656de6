//! What is written down of each try to connect: its beginning, its end, what went wrong, and the alarm.

use super::attempt::Purpose;
use super::connect::Errand;
use super::learnt::Learnt;
use super::lines::Lines;
use crate::auth::activity::{About, Event, record};
use crate::clock::UnixTime;
use crate::domain::{KeyId, LineRole};
use crate::sites::automation::{AutomationTestOutcome, explain_outcome};
use crate::sites::prompts::clean_text;
use crate::ssh::login::FailedLogin;
use crate::ssh::{LoginError, RouteHop};
use crate::store::lines::LineKey;
use crate::store::{self, StoreError};

/// Most characters of a server's words that are kept.
pub(super) const MOST_NOTICES: usize = 4000;

/// Why a try failed, with what the server said.
pub(super) struct Trouble {
    pub(super) failure: LoginError,
    pub(super) notices: String,
}

impl From<FailedLogin> for Trouble {
    fn from(failed: FailedLogin) -> Self {
        Self { failure: failed.error, notices: failed.notices }
    }
}

impl Trouble {
    pub(super) fn here(error: &dyn std::fmt::Display) -> Self {
        Self { failure: LoginError::LocalFault(error.to_string()), notices: String::new() }
    }

    pub(super) const fn gave_up() -> Self {
        Self { failure: LoginError::Cancelled, notices: String::new() }
    }
}

impl Lines {
    pub(super) async fn note_trouble(
        &self,
        errand: &Errand,
        trouble: &Trouble,
    ) -> Result<(), StoreError> {
        let failure = &trouble.failure;
        if let LoginError::HostKeyChanged(hop, offered) = failure {
            self.sound_alarm(errand, *hop, offered.as_deref()).await?;
        }
        let reason = failure.code();
        metrics::counter!("portolan_cluster_connect_failures_total", "reason" => reason)
            .increment(1);
        if *failure == LoginError::Cancelled {
            return Ok(());
        }
        // What a test shows says nothing about the connection beside it.
        let is_test = errand.purpose == Purpose::TestNewKey;
        if !is_test {
            self.be_patient(errand.key, failure);
        }
        let mut words = words(failure, errand.key.role);
        let said = clean_text(&trouble.notices, MOST_NOTICES);
        if !said.trim().is_empty() && !matches!(failure, LoginError::NeedsPerson) {
            words.push_str("\n\n");
            words.push_str(said.trim());
        }
        let mut tx = self.0.store.write().await?;
        let keep = failure.is_transient() || *failure == LoginError::NeedsPerson;
        if !is_test {
            store::lines::note_problem(&mut tx, errand.key, &words, keep).await?;
        }
        if *failure == LoginError::NeedsPerson {
            store::lines::note_asks(&mut tx, errand.key).await?;
        } else {
            let about = About {
                person: Some(errand.key.person),
                subject: &errand.known.row.title,
                detail: failure.short_reason(),
            };
            record(&mut tx, &errand.actor, Event::ConnectFailed, about, self.0.clock.now()).await?;
        }
        store::commit(tx).await
    }

    /// The host key has changed: nothing more is sent to this cluster until an administrator has decided.
    async fn sound_alarm(
        &self,
        errand: &Errand,
        hop: RouteHop,
        offered: Option<&str>,
    ) -> Result<(), StoreError> {
        let now = self.0.clock.now();
        let host = match (hop, &errand.route.jump) {
            (RouteHop::Jump, Some(jump)) => jump.host.as_str(),
            _ => errand.route.target.host.as_str(),
        };
        let words = format!("{host} showed {}", offered.unwrap_or("a key of another kind"));
        self.set_alarm(errand.key.cluster, true);
        let mut tx = self.0.store.write().await?;
        store::clusters::set_alarm(&mut tx, errand.key.cluster, Some((now, &words))).await?;
        let about = About { subject: &errand.known.row.slug, detail: &words, ..About::default() };
        record(&mut tx, &errand.actor, Event::HostKeyAlarm, about, now).await?;
        tracing::error!(
            cluster.name = errand.known.row.slug,
            "{words}, which is not pinned: all connections to this cluster are stopped"
        );
        store::commit(tx).await
    }

    pub(super) async fn note_begin(&self, key: LineKey) -> Result<i64, Trouble> {
        let write = async {
            let mut tx = self.0.store.write().await?;
            let id = store::lines::begin_connect(&mut tx, key, self.0.clock.now()).await?;
            store::commit(tx).await.map(|()| id)
        };
        write.await.map_err(|error| Trouble::here(&error))
    }

    pub(super) async fn note_end(
        &self,
        id: i64,
        outcome: &str,
        used: Option<KeyId>,
    ) -> Result<(), Trouble> {
        let write = async {
            let mut tx = self.0.store.write().await?;
            store::lines::end_connect(&mut tx, id, outcome, used).await?;
            store::commit(tx).await
        };
        write.await.map_err(|error| Trouble::here(&error))
    }

    pub(super) async fn note_up(
        &self,
        errand: &Errand,
        learnt: &Learnt,
        asks: bool,
        now: UnixTime,
    ) -> Result<(), Trouble> {
        let json = serde_json::to_string(learnt).map_err(|error| Trouble::here(&error))?;
        let write = async {
            let mut tx = self.0.store.write().await?;
            let user = errand.route.user.as_str();
            if !store::lines::note_up(&mut tx, errand.key, user, asks, now).await? {
                return Ok(false);
            }
            store::lines::note_learnt(&mut tx, errand.key, &json, now).await?;
            let about = About {
                person: Some(errand.key.person),
                subject: &errand.known.row.slug,
                detail: errand.route.user.as_str(),
            };
            record(&mut tx, &errand.actor, Event::Connected, about, now).await?;
            store::commit(tx).await.map(|()| true)
        };
        // Under another name it is another connection.
        let is_theirs = write.await.map_err(|error: StoreError| Trouble::here(&error))?;
        if is_theirs { Ok(()) } else { Err(Trouble::gave_up()) }
    }

    pub(super) async fn note_problem(
        &self,
        key: LineKey,
        words: &str,
        keep: bool,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.store.write().await?;
        store::lines::note_problem(&mut tx, key, words, keep).await?;
        store::commit(tx).await
    }
}

/// What happened and what to do. Automation hosts fail in ways of their own.
fn words(failure: &LoginError, role: LineRole) -> String {
    let outcome = match failure {
        _ if role == LineRole::Login => None,
        LoginError::NeedsPerson => Some(AutomationTestOutcome::AsksForSecondFactor),
        LoginError::KeyRefused => Some(AutomationTestOutcome::KeyNotAccepted),
        LoginError::SignInRefused { after_key: true, .. } => {
            Some(AutomationTestOutcome::NotEnrolled)
        }
        LoginError::Disconnected { .. } => Some(AutomationTestOutcome::Closed),
        _ => None,
    };
    outcome.map_or_else(|| failure.to_string(), |outcome| explain_outcome(&outcome).join("\n"))
}
