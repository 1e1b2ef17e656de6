//! Delivers webhooks: everything new for a person goes out in one message, is retried with growing pauses, and is
//! given up after three days. Pending messages are in the database, so a restart loses nothing.

use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use super::{SaveWebhookError, WebhookAddress, WebhookAddressError, WebhookMessage, WebhookWorker, WebhookWorkerInner};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::http_client;
use crate::jobs::notification_digest::NotificationKind;
use crate::store::webhooks::Webhook;
use crate::store::{self, StoreError};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to check for due messages, besides after each notification.
const CHECK_EVERY: Duration = Duration::from_secs(10);
/// The shortest pause between two messages to one address, in seconds.
const BETWEEN_MESSAGES: i64 = 30;
/// The first pause after a failure, in seconds; each further one is twice as long.
const FIRST_PAUSE: i64 = 60;
const MAX_PAUSE: i64 = 6 * 3600;
/// Give up after failing for this long.
const GIVE_UP_AFTER: i64 = 3 * SECONDS_PER_DAY;
/// The most notifications in one message; the rest follow in the next.
const MAX_NOTIFICATIONS: i64 = 500;
/// How many addresses are sent to in parallel.
const MAX_PARALLEL: i64 = 16;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookDeliveryError {
    /// The address is not allowed or does not resolve.
    #[error("{0}")]
    Address(WebhookAddressError),
    #[error("Couldn't reach {0}.")]
    Unreachable(String),
    #[error("{0} didn't respond within 10 seconds.")]
    Timeout(String),
    /// It answered with an error status.
    #[error("{0} responded with an error (status {1}). Check that the address is still valid.")]
    Refused(String, u16),
    /// It answered with a redirect.
    #[error("{0} redirects to another address, which the portal doesn't follow. Enter the final address.")]
    Redirect(String),
    #[error("The saved address couldn't be read. Enter it again.")]
    Sealed,
    #[error("You sent a test message a moment ago. Wait a few seconds.")]
    TooSoon,
}

impl WebhookWorker {
    /// Delivers until the portal stops.
    pub async fn run(self) {
        let stop = &self.0.core.stop;
        let mut notifications_changed = self.0.notifications.subscribe();
        let mut ticks = tokio::time::interval(CHECK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
                received = notifications_changed.recv() => if received == Err(RecvError::Closed) { return },
            }
            tokio::select! {
                () = stop.cancelled() => return,
                result = self.send_due() => if let Err(error) = result {
                    tracing::warn!(%error, "Could not deliver webhooks; will retry");
                }
            }
        }
    }

    /// Delivers everything that is due.
    pub async fn send_due(&self) -> Result<(), StoreError> {
        let _round = self.0.send_lock.lock().await;
        loop {
            let now = self.0.core.clock.now();
            let mut db = self.0.core.store.read().await?;
            let due = store::webhooks::list_due(&mut db, now, MAX_PARALLEL).await?;
            drop(db);
            let is_all = i64::try_from(due.len()).unwrap_or(0) < MAX_PARALLEL;
            let mut sending = JoinSet::new();
            for webhook in due {
                let this = self.clone();
                sending.spawn(async move { this.0.send_pending(webhook).await });
            }
            while let Some(sent) = sending.join_next().await {
                if let Ok(sent) = sent {
                    sent?;
                }
            }
            if is_all {
                return Ok(());
            }
        }
    }
}

impl WebhookWorkerInner {
    /// Sends one person's pending notifications in one message.
    async fn send_pending(&self, webhook: Webhook) -> Result<(), StoreError> {
        let person = webhook.person_id;
        let mut db = self.core.store.read().await?;
        let mut notifications = store::notifications::list_unsent(&mut db, person, MAX_NOTIFICATIONS).await?;
        drop(db);
        let Some(last) = notifications.last().map(|notification| notification.id) else { return Ok(()) };
        let kinds = NotificationKind::parse_list(&webhook.kinds);
        notifications.retain(|notification| {
            NotificationKind::parse(&notification.kind).is_some_and(|kind| kinds.contains(&kind))
        });
        // Newest first, as everywhere.
        notifications.reverse();
        let outcome = if notifications.is_empty() { None } else { Some(self.try_send(&webhook, &notifications).await) };
        let now = self.core.clock.now();
        let mut tx = self.core.store.write().await?;
        match &outcome {
            None => store::notifications::mark_sent(&mut tx, person, last, now).await?,
            Some(Ok(())) => {
                store::notifications::mark_sent(&mut tx, person, last, now).await?;
                let next = now.plus(BETWEEN_MESSAGES);
                store::webhooks::mark_sent(&mut tx, person, next, now).await?;
            }
            Some(Err(failure)) => {
                let next = now.plus(retry_pause(webhook.failures));
                store::webhooks::record_failure(&mut tx, person, &failure.to_string(), next, now).await?;
                if has_failed_too_long(&webhook, now) {
                    store::webhooks::stop(&mut tx, person, now).await?;
                    store::notifications::mark_sent(&mut tx, person, last, now).await?;
                    store::notifications::add_webhook_off(&mut tx, person, now).await?;
                }
            }
        }
        store::commit(tx).await?;
        if outcome.is_some_and(|outcome| outcome.is_err()) && has_failed_too_long(&webhook, now) {
            self.notifications.notify(person);
        }
        Ok(())
    }

    async fn try_send(
        &self,
        webhook: &Webhook,
        notifications: &[store::notifications::Notification],
    ) -> Result<(), WebhookDeliveryError> {
        let open = || Ok::<_, SaveWebhookError>((self.open_address(webhook)?, self.open_secret(webhook)?));
        let (address, secret) = open().map_err(|_| WebhookDeliveryError::Sealed)?;
        let message = WebhookMessage::from_notifications(
            notifications,
            &self.core.config.portal.public_url.to_string(),
            &secret,
            self.core.clock.now(),
        );
        self.deliver(&address, message).await
    }

    /// Sends one message. Only the host of the address is ever shown or logged.
    pub(super) async fn deliver(
        &self,
        address: &WebhookAddress,
        message: WebhookMessage,
    ) -> Result<(), WebhookDeliveryError> {
        let found = address
            .resolve(self.core.config.notifications.allow_private)
            .await
            .map_err(WebhookDeliveryError::Address)?;
        let host = address.host().to_owned();
        // Connect to the checked addresses, so that a name that resolves differently a moment later changes nothing.
        let client = http_client::client_builder(ANSWER_TIMEOUT).resolve_to_addrs(&host, &found).build();
        let client = client.map_err(|_| WebhookDeliveryError::Unreachable(host.clone()))?;
        let request = client
            .post(address.url())
            .header("content-type", "application/json")
            .header("user-agent", concat!("Portolan/", env!("CARGO_PKG_VERSION")))
            .header("x-portolan-timestamp", message.timestamp)
            .header("x-portolan-signature", message.signature)
            .body(message.body);
        // The response body is not read.
        let status = match request.send().await {
            Ok(answer) => answer.status(),
            Err(error) if error.is_timeout() => return Err(WebhookDeliveryError::Timeout(host)),
            Err(_) => return Err(WebhookDeliveryError::Unreachable(host)),
        };
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(WebhookDeliveryError::Redirect(host)),
            status => Err(WebhookDeliveryError::Refused(host, status.as_u16())),
        }
    }
}

fn has_failed_too_long(webhook: &Webhook, now: UnixTime) -> bool {
    webhook.failing_since.is_some_and(|since| now.since(since) >= GIVE_UP_AFTER)
}

/// The pause after a failure, given how many came before it.
fn retry_pause(failures: i64) -> i64 {
    let doubled = u32::try_from(failures.clamp(0, 20)).unwrap_or(20);
    FIRST_PAUSE.saturating_mul(2_i64.saturating_pow(doubled)).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_three_days_are_some_twenty_tries() {
        assert_eq!(
            [retry_pause(0), retry_pause(1), retry_pause(5), retry_pause(9), retry_pause(1000)],
            [60, 120, 1920, 21_600, 21_600]
        );
        let mut passed = 0;
        let tries = (0..1000)
            .take_while(|failures| {
                passed += retry_pause(*failures);
                passed < GIVE_UP_AFTER
            })
            .count();
        assert!((15..25).contains(&tries), "{tries}");
    }
}
