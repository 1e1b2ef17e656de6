//! Connecting: one try at a time per person and host, within what a centre would call polite.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::attempt::{Attempt, Progress, Purpose};
use super::known::Known;
use super::lines::{Lines, NotBegun, State, Up};
use super::look;
use super::notes::{MOST_NOTICES, Trouble};
use crate::auth::activity::Actor;
use crate::auth::keys::OpenKey;
use crate::domain::KeyId;
use crate::sites::prompts::clean_text;
use crate::ssh::keys::PrivateKey;
use crate::ssh::login::{self, CompletedLogin, LoginAttendance, LoginProcess, LoginRequest};
use crate::ssh::route::SshRoute;
use crate::ssh::{ClusterConnection, CommandDialect, LoginError};
use crate::store::lines::LineKey;
use crate::store::{self, StoreError};

/// How long a server usually waits for someone to sign in, less a little (OpenSSH's default is 120 s).
const PATIENCE: Duration = Duration::from_secs(110);
/// Tries of one person at one cluster in an hour, whatever the reason: more would look like an attack.
const PERSON_PER_HOUR: i64 = 20;
/// Of these, so many without the person.
const UNATTENDED_PER_HOUR: i64 = 6;
const HOUR: i64 = 3600;

/// A try, before it begins.
pub(super) struct Errand {
    pub(super) key: LineKey,
    pub(super) known: Known,
    pub(super) route: SshRoute,
    pub(super) purpose: Purpose,
    attended: LoginAttendance,
    pub(super) actor: Actor,
    attempt: Arc<Attempt>,
}

impl Lines {
    /// Begins to connect. If a try is under way or the connection stands, nothing new is begun: two tabs, one try.
    pub async fn connect(
        &self,
        key: LineKey,
        actor: Actor,
        attended: LoginAttendance,
    ) -> Result<(), NotBegun> {
        self.begin(key, actor, attended, Purpose::Connect).await
    }

    /// Begins to test the new key of this person at this cluster, beside the connection that stands.
    pub async fn test_new_key(&self, key: LineKey, actor: Actor) -> Result<(), NotBegun> {
        self.begin(key, actor, LoginAttendance::Attended, Purpose::TestNewKey).await
    }

    async fn begin(
        &self,
        key: LineKey,
        actor: Actor,
        attended: LoginAttendance,
        purpose: Purpose,
    ) -> Result<(), NotBegun> {
        let mut db = self.0.store.read().await?;
        let line = store::lines::get(&mut db, key).await?.ok_or(NotBegun::NoUser)?;
        let row = store::clusters::get(&mut db, key.cluster).await?.ok_or(NotBegun::Closed)?;
        let known = Known::of(&mut db, row).await?;
        let tries =
            store::lines::count_connects(&mut db, key, self.0.clock.now().plus(-HOUR)).await?;
        drop(db);
        if !known.is_open() {
            return Err(NotBegun::Closed);
        }
        refuse_too_many(tries, &known, &actor)?;
        let user = line.remote_user.parse().map_err(|_| NotBegun::NoUser)?;
        let route = known.route(key.role, user).ok_or(NotBegun::Closed)?;
        let keys = self.0.auth.open_keys(key.person, key.role).await?;
        let needed =
            if purpose == Purpose::TestNewKey { 2 } else { usize::from(known.site.keys.opens) };
        if keys.len() < needed {
            return Err(NotBegun::NoKey);
        }
        drop(keys);
        let Some(attempt) = self.reserve(key, purpose) else { return Ok(()) };
        let errand = Errand { key, known, route, purpose, attended, actor, attempt };
        let this = self.clone();
        self.0.tasks.spawn(async move { this.run_errand(errand).await });
        self.tell(key);
        Ok(())
    }

    /// Takes the person's one place to try, if it is free.
    fn reserve(&self, key: LineKey, purpose: Purpose) -> Option<Arc<Attempt>> {
        let mut spots = self.spots();
        let spot = spots.entry(key).or_default();
        let attempt = Arc::new(Attempt::new(purpose));
        match purpose {
            Purpose::Connect if matches!(spot.state, State::Down) => {
                spot.state = State::Opening(attempt.clone());
            }
            Purpose::TestNewKey if spot.test.is_none() => {
                spot.test = Some(attempt.clone());
                spot.tested = None;
            }
            _ => return None,
        }
        Some(attempt)
    }

    async fn run_errand(&self, errand: Errand) {
        let folder = self.spots().entry(errand.key).or_default().folder.clone();
        let _held = match errand.purpose {
            Purpose::Connect => Some(folder.lock_owned().await),
            // It has a folder of its own.
            Purpose::TestNewKey => None,
        };
        let mut work = std::pin::pin!(self.try_to_open(&errand));
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            // A portal that stops does not wait for codes; what stands already stays.
            () = self.0.stop.cancelled() => {
                errand.attempt.give_up();
                work.await
            }
        };
        if errand.purpose == Purpose::TestNewKey {
            let tested =
                outcome.as_ref().map(|_| ()).map_err(|trouble| trouble.failure.to_string());
            self.spots().entry(errand.key).or_default().tested = Some(tested);
        }
        let stored = match outcome {
            Ok(up) if errand.purpose == Purpose::Connect => self.put_up(&errand, up).await,
            Ok(up) => {
                up.line.master().close().await;
                Ok(())
            }
            Err(trouble) => self.note_trouble(&errand, &trouble).await,
        };
        if let Err(error) = stored {
            tracing::error!(%error, "The end of a connection attempt could not be noted");
            self.close(errand.key).await;
        }
        errand.attempt.set(Progress::Over);
        self.clear_attempt(&errand);
        self.tell(errand.key);
    }

    fn clear_attempt(&self, errand: &Errand) {
        let mut spots = self.spots();
        let spot = spots.entry(errand.key).or_default();
        if errand.purpose == Purpose::TestNewKey {
            spot.test.take_if(|test| Arc::ptr_eq(test, &errand.attempt));
        } else if matches!(&spot.state, State::Opening(attempt) if Arc::ptr_eq(attempt, &errand.attempt))
        {
            spot.state = State::Down;
        }
    }

    async fn try_to_open(&self, errand: &Errand) -> Result<Up, Trouble> {
        let turns = self.turns(errand.key.cluster);
        let _turn = tokio::select! {
            turn = self.wait_for_turn(turns, errand) => turn,
            () = errand.attempt.given_up().cancelled() => return Err(Trouble::gave_up()),
        };
        if self.is_alarmed(errand.key.cluster) {
            return Err(Trouble::gave_up());
        }
        let keys = self.keys_for(errand).await?;
        let ids: Vec<KeyId> = keys.iter().map(|(id, _)| *id).collect();
        let begun = self.note_begin(errand.key).await?;
        metrics::counter!("portolan_cluster_connects_total").increment(1);
        let opening = login::start_login(LoginRequest {
            folder: self.folder(errand.key, errand.purpose),
            route: errand.route.clone(),
            keys: keys.into_iter().map(|(_, key)| key).collect(),
            askpass_program: self.0.program.clone(),
            timeout: errand
                .known
                .site
                .login
                .grace_s
                .map_or(PATIENCE, |s| Duration::from_secs(u64::from(s))),
            attendance: errand.attended,
        });
        let opened = self.follow(opening, errand).await;
        let (outcome, used) = match &opened {
            Ok(opened) => {
                let word = if errand.purpose == Purpose::Connect { "up" } else { "tested" };
                (word, opened.signing_key_index.and_then(|index| ids.get(index).copied()))
            }
            Err(trouble) => (trouble.failure.code(), None),
        };
        self.note_end(begun, outcome, used).await?;
        self.settle(errand, opened?).await
    }

    /// Waits for one of the few places to sign in at a cluster, and says so if there is none at once.
    async fn wait_for_turn(
        &self,
        turns: Arc<Semaphore>,
        errand: &Errand,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(turn) = turns.clone().try_acquire_owned() {
            return Some(turn);
        }
        errand.attempt.set(Progress::Waiting);
        self.tell(errand.key);
        turns.acquire_owned().await.ok()
    }

    /// Passes each step on to the page until the end.
    async fn follow(
        &self,
        opening: LoginProcess,
        errand: &Errand,
    ) -> Result<CompletedLogin, Trouble> {
        let LoginProcess { answers, mut stage, mut end } = opening;
        errand.attempt.take_answers(answers);
        loop {
            let now = stage.borrow_and_update().clone();
            errand.attempt.follow(&now);
            self.tell(errand.key);
            tokio::select! {
                biased;
                ended = &mut end => {
                    return match ended {
                        Ok(result) => result.map_err(Trouble::from),
                        Err(error) => Err(Trouble::here(&error)),
                    };
                }
                // An error means that nothing more is told; the end is near.
                Ok(()) = stage.changed() => {}
            }
        }
    }

    /// The connection stands: looks around, unless it was only a test.
    async fn settle(&self, errand: &Errand, opened: CompletedLogin) -> Result<Up, Trouble> {
        let CompletedLogin { master, questions, notices, .. } = opened;
        let line = errand.known.line_on(master, CommandDialect::Bare);
        let now = self.0.clock.now();
        if errand.purpose == Purpose::Connect {
            errand.attempt.set(Progress::Learning);
            self.tell(errand.key);
            let user = errand.route.user.as_str();
            let look = tokio::select! {
                look = look::around(&line, &errand.known.site, errand.key.role, user) => look,
                () = errand.attempt.given_up().cancelled() => {
                    line.master().close().await;
                    return Err(Trouble::gave_up());
                }
            };
            if let Some(why) = look.useless {
                line.master().close().await;
                return Err(Trouble { failure: LoginError::Unusable(why), notices });
            }
            if let Err(trouble) = self.note_up(errand, &look.learnt, questions > 0, now).await {
                line.master().close().await;
                return Err(trouble);
            }
        }
        Ok(Up { line, since: now, notices: clean_text(&notices, MOST_NOTICES) })
    }

    async fn keys_for(&self, errand: &Errand) -> Result<Vec<(KeyId, PrivateKey)>, Trouble> {
        let open = self.0.auth.open_keys(errand.key.person, errand.key.role).await;
        let mut open = open.map_err(|error| Trouble::here(&error))?;
        if errand.purpose == Purpose::TestNewKey {
            // The waiting key comes first; it is the one to be proven, alone.
            open.truncate(1);
        }
        let read =
            |key: &OpenKey| PrivateKey::from_bytes(&key.private).map(|private| (key.id, private));
        open.iter().map(read).collect::<Result<_, _>>().map_err(|error| Trouble::here(&error))
    }

    /// Puts a connection into its place, unless that was given up meanwhile.
    async fn put_up(&self, errand: &Errand, up: Up) -> Result<(), StoreError> {
        let line = up.line.clone();
        let wanted = {
            let mut spots = self.spots();
            let spot = spots.entry(errand.key).or_default();
            // Whoever closed it meanwhile has taken the place away.
            let wanted = matches!(&spot.state, State::Opening(own) if Arc::ptr_eq(own, &errand.attempt))
                && !errand.attempt.given_up().is_cancelled();
            if wanted {
                spot.patience = super::lines::Patience::default();
                spot.state = State::Up(up);
            }
            wanted
        };
        if wanted {
            self.watch_end(errand.key, line);
            return Ok(());
        }
        line.master().close().await;
        self.note_problem(errand.key, "", false).await
    }

    /// Notices the end of a connection that nobody here closed.
    pub(super) fn watch_end(&self, key: LineKey, line: Arc<ClusterConnection>) {
        let this = self.clone();
        tokio::spawn(async move {
            line.master().ended().cancelled().await;
            let folder = this.spots().entry(key).or_default().folder.clone();
            let _held = folder.lock().await;
            let ours = {
                let mut spots = this.spots();
                let spot = spots.entry(key).or_default();
                let ours = matches!(&spot.state, State::Up(up) if Arc::ptr_eq(&up.line, &line));
                if ours {
                    spot.state = State::Down;
                }
                ours
            };
            if ours {
                let words = lost(&line.master().last_log_line());
                line.master().folder().remove();
                if let Err(error) = this.note_problem(key, words, true).await {
                    tracing::warn!(%error, "The end of a connection could not be noted");
                }
                this.tell(key);
            }
        });
    }
}

fn refuse_too_many((mine, all): (i64, i64), known: &Known, actor: &Actor) -> Result<(), NotBegun> {
    let everyone = i64::from(known.site.limits.connects_per_hour);
    let person = if actor.id.is_some() { PERSON_PER_HOUR } else { UNATTENDED_PER_HOUR };
    // One person alone must not use up what is meant for all.
    let person = person.min((everyone / 4).max(4));
    if mine >= person || all >= everyone { Err(NotBegun::TooOften) } else { Ok(()) }
}

/// Why a connection that stood has ended, in words. ssh writes into its log only that it lost patience; that the
/// other side closed the connection goes where servers can write too, and is not read.
fn lost(last_words: &str) -> &'static str {
    if last_words.contains("not responding") || last_words.contains("timed out") {
        "The network between this portal and the cluster was silent for too long, so the connection was lost."
    } else {
        "The connection was lost. The cluster may have closed it, or may have been restarted."
    }
}
