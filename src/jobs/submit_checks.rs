//! What clusters said about the files and jobs that new jobs depend on. Kept for a moment, because a form asks after
//! every change, and most changes concern something else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::cluster::submit_checks::{SubmitCheckReply, check_before_submit};
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::lock;
use crate::ssh::{CallUrgency, RunCommandError};

/// How long an answer is reused.
const REPLY_TTL: Duration = Duration::from_secs(30);
/// Nobody waits longer for an answer, whatever else the connection is busy with.
const REPLY_TIMEOUT: Duration = Duration::from_secs(12);
/// The most answers in memory.
const MAX_ENTRIES: usize = 500;

#[derive(Clone)]
pub struct SubmitCheckCache(Arc<SubmitCheckCacheInner>);

struct SubmitCheckCacheInner {
    connections: ConnectionPool,
    replies: Mutex<HashMap<SubmitCheckKey, CachedSubmitCheck>>,
}

/// Whose question it is, the paths, and the job.
type SubmitCheckKey = (ClusterAccountId, Vec<String>, Option<u64>);

struct CachedSubmitCheck {
    until: Instant,
    reply: SubmitCheckReply,
}

impl SubmitCheckCache {
    pub fn new(connections: ConnectionPool) -> Self {
        Self(Arc::new(SubmitCheckCacheInner { connections, replies: Mutex::default() }))
    }

    /// Looks at these paths, and for this job, with one command over the person's own connection; or answers from
    /// memory, unless the person wants a new look (`is_fresh`).
    pub async fn check(
        &self,
        account: ClusterAccountId,
        paths: &[String],
        job: Option<u64>,
        is_fresh: bool,
    ) -> Result<SubmitCheckReply, RunCommandError> {
        let key = (account, paths.to_vec(), job);
        let now = Instant::now();
        if let Some(cached) = lock(&self.0.replies).get(&key).filter(|cached| cached.until > now && !is_fresh) {
            return Ok(cached.reply.clone());
        }
        let connection = self.0.connections.connection(account.connection_key())?;
        // A form asks by itself; what people do comes first.
        let urgency = if is_fresh { CallUrgency::Interactive } else { CallUrgency::Background };
        let asked = check_before_submit(&connection, paths, job, urgency);
        let reply = tokio::time::timeout(REPLY_TIMEOUT, asked).await.unwrap_or(Err(RunCommandError::TimedOut))?;
        let mut replies = lock(&self.0.replies);
        if replies.len() >= MAX_ENTRIES {
            replies.retain(|_, cached| cached.until > now);
        }
        if replies.len() < MAX_ENTRIES {
            replies.insert(key, CachedSubmitCheck { until: now + REPLY_TTL, reply: reply.clone() });
        }
        Ok(reply)
    }
}
