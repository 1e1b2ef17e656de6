//! Records each connect attempt: its start, its end, what went wrong, and host key alarms.

use super::connect::ConnectRequest;
use super::connect_attempt::ConnectPurpose;
use super::connection_pool::ConnectionPool;
use super::discovered_facts::DiscoveredFacts;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, record};
use crate::clock::UnixTime;
use crate::domain::{ConnectionRole, SshKeyId};
use crate::sites::automation::{AutomationTestOutcome, explain_outcome};
use crate::ssh::{ConnectError, RouteHop, SshLoginError};
use crate::store::connections::{ConnectionKey, ConnectionProblem};
use crate::store::{self, StoreError};
use crate::text::clean_text;

/// How much of a server's notices is kept, in characters.
pub(super) const MAX_NOTICES_LEN: usize = 4000;

impl ConnectionPool {
    pub(super) async fn record_failure(
        &self,
        request: &ConnectRequest,
        error: &ConnectError,
    ) -> Result<(), StoreError> {
        let failure = &error.failure;
        if let SshLoginError::HostKeyChanged(hop, offered) = failure {
            self.raise_host_key_alarm(request, *hop, offered.as_deref()).await?;
        }
        let reason = failure.code();
        metrics::counter!("portolan_cluster_connection_failures_total", "reason" => reason).increment(1);
        if *failure == SshLoginError::Cancelled {
            return Ok(());
        }
        // The result of a key test says nothing about the open connection.
        let is_test = request.purpose == ConnectPurpose::TestNewKey;
        if !is_test {
            self.back_off(request.key, failure);
        }
        let mut problem = ConnectionProblem::new(reason, failure_message(failure, request.key.role));
        if *failure != SshLoginError::NeedsPerson {
            clean_text(&error.notices, MAX_NOTICES_LEN).trim().clone_into(&mut problem.notices);
        }
        let mut tx = self.0.core.store.write().await?;
        let keep = failure.is_transient() || *failure == SshLoginError::NeedsPerson;
        if !is_test {
            store::connections::set_problem(&mut tx, request.key, &problem, keep).await?;
        }
        if *failure == SshLoginError::NeedsPerson {
            store::connections::mark_asks(&mut tx, request.key).await?;
        } else {
            let about = ActivityDetails {
                person: Some(request.key.person),
                subject: &request.profile.row.title,
                detail: failure.short_reason(),
            };
            record(&mut tx, &request.actor, ActivityEventKind::ConnectFailed, about, self.0.core.clock.now()).await?;
        }
        store::commit(tx).await
    }

    /// The host key has changed: nothing more is sent to this cluster until an administrator decides.
    async fn raise_host_key_alarm(
        &self,
        request: &ConnectRequest,
        hop: RouteHop,
        offered: Option<&str>,
    ) -> Result<(), StoreError> {
        let now = self.0.core.clock.now();
        let host = match (hop, &request.route.jump) {
            (RouteHop::Jump, Some(jump)) => jump.host.as_str(),
            _ => request.route.target.host.as_str(),
        };
        let words = format!("{host} presented {}", offered.unwrap_or("a key of another type"));
        self.set_alarm(request.key.cluster, true);
        let mut tx = self.0.core.store.write().await?;
        store::clusters::set_alarm(&mut tx, request.key.cluster, Some((now, &words))).await?;
        let about =
            ActivityDetails { subject: &request.profile.row.title, detail: &words, ..ActivityDetails::default() };
        record(&mut tx, &request.actor, ActivityEventKind::HostKeyAlarm, about, now).await?;
        tracing::error!(
            cluster.name = request.profile.row.slug,
            "{words}, which isn't pinned; all connections to this cluster are blocked"
        );
        store::commit(tx).await
    }

    pub(super) async fn record_start(&self, key: ConnectionKey) -> Result<i64, ConnectError> {
        let write = async {
            let mut tx = self.0.core.store.write().await?;
            let id = store::connections::begin_attempt(&mut tx, key, self.0.core.clock.now()).await?;
            store::commit(tx).await.map(|()| id)
        };
        write.await.map_err(|error| ConnectError::internal(&error))
    }

    pub(super) async fn record_end(&self, id: i64, outcome: &str, used: Option<SshKeyId>) -> Result<(), ConnectError> {
        let write = async {
            let mut tx = self.0.core.store.write().await?;
            store::connections::finish_attempt(&mut tx, id, outcome, used).await?;
            store::commit(tx).await
        };
        write.await.map_err(|error| ConnectError::internal(&error))
    }

    pub(super) async fn record_connected(
        &self,
        request: &ConnectRequest,
        facts: &DiscoveredFacts,
        has_prompts: bool,
        now: UnixTime,
    ) -> Result<(), ConnectError> {
        let json = serde_json::to_string(facts).map_err(|error| ConnectError::internal(&error))?;
        let write = async {
            let mut tx = self.0.core.store.write().await?;
            let user = request.route.user.as_str();
            if !store::connections::mark_connected(&mut tx, request.key, user, has_prompts, now).await? {
                return Ok(false);
            }
            store::connections::save_discovered(&mut tx, request.key, &json, now).await?;
            let about = ActivityDetails {
                person: Some(request.key.person),
                subject: &request.profile.row.title,
                detail: request.route.user.as_str(),
            };
            record(&mut tx, &request.actor, ActivityEventKind::Connected, about, now).await?;
            store::commit(tx).await.map(|()| true)
        };
        // With another user name it is another connection.
        let is_theirs = write.await.map_err(|error: StoreError| ConnectError::internal(&error))?;
        if is_theirs { Ok(()) } else { Err(SshLoginError::Cancelled.into()) }
    }

    pub(super) async fn save_problem(
        &self,
        key: ConnectionKey,
        problem: &ConnectionProblem,
        keep: bool,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.core.store.write().await?;
        store::connections::set_problem(&mut tx, key, problem, keep).await?;
        store::commit(tx).await
    }
}

/// What happened and what to do. Automation hosts fail in ways of their own.
fn failure_message(failure: &SshLoginError, role: ConnectionRole) -> String {
    let outcome = match failure {
        _ if role == ConnectionRole::Login => None,
        SshLoginError::NeedsPerson => Some(AutomationTestOutcome::AsksForSecondFactor),
        SshLoginError::KeyRefused => Some(AutomationTestOutcome::KeyNotAccepted),
        SshLoginError::SignInRefused { after_key: true, .. } => Some(AutomationTestOutcome::NotEnrolled),
        SshLoginError::Disconnected { .. } => Some(AutomationTestOutcome::Closed),
        _ => None,
    };
    outcome.map_or_else(|| failure.to_string(), |outcome| explain_outcome(&outcome).join("\n"))
}
