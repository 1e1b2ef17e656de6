//! Sends notifications to a webhook that the person chooses, such as a chat's. Address and secret are sealed and
//! never shown again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use super::notification_digest::NotificationKind;
use super::notifications::NotificationHub;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{self, AuthError};
use crate::clock::UnixTime;
use crate::core::{Core, lock};
use crate::domain::{NotificationId, PersonId};
use crate::entropy;
use crate::store;
use crate::store::webhooks::Webhook;
use crate::vault::VaultPurpose;

mod address;
mod delivery;
mod message;

pub use address::{WebhookAddress, WebhookAddressError, is_public};
pub use delivery::WebhookDeliveryError;

use message::WebhookMessage;

/// The shortest pause between two tests.
const TEST_AGAIN_AFTER: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct WebhookWorker(Arc<WebhookWorkerInner>);

struct WebhookWorkerInner {
    core: Core,
    notifications: NotificationHub,
    tested_at: Mutex<HashMap<PersonId, Instant>>,
    /// Held while sending: two senders at once would send the same messages.
    send_lock: tokio::sync::Mutex<()>,
}

/// The state of a person's webhook, without secrets.
#[derive(Debug, Clone)]
pub struct WebhookStatus {
    /// The host part of the address.
    pub host: String,
    pub kinds: Vec<NotificationKind>,
    /// The last successful delivery.
    pub sent: Option<UnixTime>,
    /// Whether nothing arrives at the moment.
    pub is_failing: bool,
    /// The last error, in words.
    pub problem: String,
    /// The next try.
    pub next: UnixTime,
    /// When the portal gave up.
    pub stopped: Option<UnixTime>,
}

/// Why a webhook was not saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveWebhookError {
    /// The address is not allowed.
    #[error(transparent)]
    Address(#[from] WebhookAddressError),
    /// There is no webhook to change.
    #[error("Enter a webhook address that starts with https://.")]
    Missing,
    #[error(transparent)]
    Auth(#[from] AuthError),
}

macro_rules! our_fault {
    ($($error:ty),*) => {
        $(impl From<$error> for SaveWebhookError {
            fn from(error: $error) -> Self {
                Self::Auth(error.into())
            }
        })*
    };
}
our_fault!(store::StoreError, crate::vault::VaultError);

impl WebhookWorker {
    /// Nothing is sent before [`WebhookWorker::run`].
    pub fn new(core: Core, notifications: NotificationHub) -> Self {
        Self(Arc::new(WebhookWorkerInner {
            core,
            notifications,
            tested_at: Mutex::default(),
            send_lock: tokio::sync::Mutex::default(),
        }))
    }

    pub async fn status(&self, person: PersonId) -> Result<Option<WebhookStatus>, SaveWebhookError> {
        let mut db = self.0.core.store.read().await?;
        let Some(webhook) = store::webhooks::get(&mut db, person).await? else { return Ok(None) };
        drop(db);
        let host = self.0.open_address(&webhook)?.host().to_owned();
        Ok(Some(WebhookStatus {
            host,
            kinds: NotificationKind::parse_list(&webhook.kinds),
            sent: webhook.sent_at,
            next: webhook.next_at,
            stopped: webhook.stopped_at,
            is_failing: webhook.failing_since.is_some(),
            problem: webhook.problem,
        }))
    }

    /// Sets the address and the kinds to send; without a new address, the current one stays. Returns the signing
    /// secret if it is new.
    pub async fn set(
        &self,
        actor: &Actor,
        person: PersonId,
        address: &str,
        kinds: &[NotificationKind],
    ) -> Result<Option<Zeroizing<String>>, SaveWebhookError> {
        let inner = &self.0;
        let new = match address.trim() {
            "" => None,
            text => {
                let address = WebhookAddress::parse(text, inner.core.config.notifications.allow_private)?;
                address.resolve(inner.core.config.notifications.allow_private).await?;
                Some(address)
            }
        };
        let mut tx = inner.core.store.write().await?;
        let webhook = store::webhooks::get(&mut tx, person).await?;
        // Each address gets its own secret: whoever receives messages at one could otherwise forge them for another.
        let (url, secret, new_secret) = match (new, webhook) {
            (None, None) => return Err(SaveWebhookError::Missing),
            (None, Some(webhook)) => (webhook.url, webhook.secret, None),
            (Some(address), _) => {
                let (sealed, secret) = inner.new_secret(person)?;
                (inner.seal(VaultPurpose::WebhookAddress, person, address.as_str())?, sealed, Some(secret))
            }
        };
        let (now, kinds) = (inner.core.clock.now(), NotificationKind::format_list(kinds.iter().copied()));
        store::webhooks::save(&mut tx, person, (&url, &secret), &kinds, now).await?;
        // What was not yet sent to the old address must not go to the new one.
        store::notifications::mark_sent(&mut tx, person, NotificationId(i64::MAX), now).await?;
        let detail = if new_secret.is_some() { "a new address" } else { "what is sent" };
        inner.commit_change(tx, actor, detail).await?;
        Ok(new_secret)
    }

    /// Creates a new secret; the old one stops working.
    pub async fn renew_secret(&self, actor: &Actor, person: PersonId) -> Result<Zeroizing<String>, SaveWebhookError> {
        let inner = &self.0;
        let mut tx = inner.core.store.write().await?;
        let webhook = store::webhooks::get(&mut tx, person).await?.ok_or(SaveWebhookError::Missing)?;
        let (sealed, secret) = inner.new_secret(person)?;
        store::sealed::put(&mut tx, store::sealed::SealedColumn::WebhookSecret, webhook.person_id.0, &sealed).await?;
        inner.commit_change(tx, actor, "a new secret").await?;
        Ok(secret)
    }

    /// Removes a person's webhook and stops sending.
    pub async fn remove(&self, actor: &Actor, person: PersonId) -> Result<(), SaveWebhookError> {
        let now = self.0.core.clock.now();
        let mut tx = self.0.core.store.write().await?;
        if store::webhooks::get(&mut tx, person).await?.is_none() {
            return Ok(());
        }
        store::webhooks::remove(&mut tx, person).await?;
        store::notifications::mark_sent(&mut tx, person, NotificationId(i64::MAX), now).await?;
        self.0.commit_change(tx, actor, "removed").await
    }

    /// Sends a test message now and returns the outcome.
    pub async fn test(&self, person: PersonId) -> Result<Result<(), WebhookDeliveryError>, SaveWebhookError> {
        if !self.0.can_test(person) {
            return Ok(Err(WebhookDeliveryError::TooSoon));
        }
        let mut db = self.0.core.store.read().await?;
        let webhook = store::webhooks::get(&mut db, person).await?.ok_or(SaveWebhookError::Missing)?;
        drop(db);
        let address = self.0.open_address(&webhook)?;
        let message = WebhookMessage::test(
            &self.0.core.config.portal.public_url.to_string(),
            &self.0.open_secret(&webhook)?,
            self.0.core.clock.now(),
        );
        Ok(self.0.deliver(&address, message).await)
    }
}

impl WebhookWorkerInner {
    fn can_test(&self, person: PersonId) -> bool {
        let now = Instant::now();
        let mut tested_at = lock(&self.tested_at);
        tested_at.retain(|_, at| now.saturating_duration_since(*at) < TEST_AGAIN_AFTER);
        tested_at.insert(person, now).is_none()
    }

    fn new_secret(&self, person: PersonId) -> Result<(Vec<u8>, Zeroizing<String>), SaveWebhookError> {
        let bytes = Zeroizing::new(entropy::random_bytes::<32>().map_err(crate::vault::VaultError::from)?);
        let secret = Zeroizing::new(URL_SAFE_NO_PAD.encode(&bytes[..]));
        Ok((self.seal(VaultPurpose::WebhookSecret, person, &secret)?, secret))
    }

    fn seal(&self, purpose: VaultPurpose, person: PersonId, text: &str) -> Result<Vec<u8>, SaveWebhookError> {
        Ok(self.core.vault.seal(purpose, &auth::person_seal_context(person), text.as_bytes())?)
    }

    /// Records the change in the same transaction.
    async fn commit_change(
        &self,
        mut tx: store::Transaction,
        actor: &Actor,
        detail: &str,
    ) -> Result<(), SaveWebhookError> {
        let about = ActivityDetails { detail, ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::WebhookChanged, about, self.core.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    fn open_secret(&self, webhook: &Webhook) -> Result<Zeroizing<Vec<u8>>, SaveWebhookError> {
        let context = auth::person_seal_context(webhook.person_id);
        Ok(self.core.vault.open(VaultPurpose::WebhookSecret, &context, &webhook.secret)?)
    }

    fn open_address(&self, webhook: &Webhook) -> Result<WebhookAddress, SaveWebhookError> {
        let context = auth::person_seal_context(webhook.person_id);
        let opened = self.core.vault.open(VaultPurpose::WebhookAddress, &context, &webhook.url)?;
        let text = std::str::from_utf8(&opened).unwrap_or_default();
        // Parsed without the private-network rule: that may have changed since, and is checked before every delivery.
        Ok(WebhookAddress::parse(text, true)?)
    }
}
