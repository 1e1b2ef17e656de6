//! When someone last visited the portal, so that their home page can say what happened since. Every page that they open
//! counts, not only the home page. Kept in memory, and saved now and then for the time after a restart.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::UnixTime;
use crate::domain::PersonId;
use crate::store::{self, Store, StoreError};

/// Someone who returns after this many seconds starts a new visit.
const VISIT_GAP_SECS: i64 = 30 * 60;
/// How often a visit is saved, in seconds.
const WRITE_INTERVAL_SECS: i64 = 5 * 60;
/// The preference that stores it.
const VISIT_PREFERENCE: &str = "home.visit";
/// How many people are kept in memory.
const MAX_PEOPLE: usize = 20_000;

#[derive(Debug, Default)]
pub struct LastVisits(Mutex<HashMap<PersonId, PortalVisit>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PortalVisit {
    /// When the previous visit ended.
    since: Option<UnixTime>,
    /// When they last opened a page.
    seen: UnixTime,
    written: UnixTime,
}

impl PortalVisit {
    fn first(now: UnixTime) -> Self {
        Self { since: None, seen: now, written: UnixTime(0) }
    }

    fn record_view(mut self, now: UnixTime) -> Self {
        if now.since(self.seen) > VISIT_GAP_SECS {
            self.since = Some(self.seen);
        }
        self.seen = now;
        self
    }

    fn parse(text: &str) -> Option<Self> {
        let (seen, since) = text.split_once(' ')?;
        let seen = UnixTime(seen.parse().ok()?);
        Some(Self { since: since.parse().ok().map(UnixTime), seen, written: seen })
    }

    fn to_text(self) -> String {
        format!("{} {}", self.seen.0, self.since.map_or_else(String::new, |since| since.0.to_string()))
    }
}

impl LastVisits {
    /// Someone opened a page; `last_use` is when their session was used before. Writes nothing: pages must not wait for
    /// a locked database.
    pub async fn record_page(
        &self,
        store: &Store,
        person: PersonId,
        last_use: UnixTime,
        now: UnixTime,
    ) -> Result<(), StoreError> {
        let known = self.lock().get(&person).copied();
        let visit = match known {
            Some(visit) => visit,
            // After a restart, what was saved may be older than the session's last use.
            None => match load_saved(store, person).await? {
                Some(saved) => PortalVisit { seen: saved.seen.max(last_use), ..saved },
                None => PortalVisit::first(last_use),
            },
        };
        self.insert(person, visit.record_view(now));
        Ok(())
    }

    /// The end of someone's previous visit, up to which they know what happened; `None` on their first. Saves it if that
    /// is due.
    pub async fn previous_visit_end(
        &self,
        store: &Store,
        person: PersonId,
        now: UnixTime,
    ) -> Result<Option<UnixTime>, StoreError> {
        let known = self.lock().get(&person).copied();
        let Some(visit) = known else {
            return Ok(load_saved(store, person).await?.and_then(|saved| saved.since));
        };
        if now.since(visit.written) >= WRITE_INTERVAL_SECS {
            self.insert(person, PortalVisit { written: now, ..visit });
            let mut tx = store.write().await?;
            store::queues::set_preference(&mut tx, person, VISIT_PREFERENCE, &visit.to_text()).await?;
            store::commit(tx).await?;
        }
        Ok(visit.since)
    }

    fn insert(&self, person: PersonId, visit: PortalVisit) {
        let mut visits = self.lock();
        if visits.len() >= MAX_PEOPLE {
            visits.clear();
        }
        visits.insert(person, visit);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PersonId, PortalVisit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn load_saved(store: &Store, person: PersonId) -> Result<Option<PortalVisit>, StoreError> {
    let saved = store::queues::load_preference(&mut *store.read().await?, person, VISIT_PREFERENCE).await?;
    Ok(saved.as_deref().and_then(PortalVisit::parse))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_goes_on_until_there_was_a_pause() {
        let visit = PortalVisit::first(UnixTime(10_000)).record_view(UnixTime(10_000));
        assert_eq!(visit.since, None);
        let visit = visit.record_view(UnixTime(10_000 + VISIT_GAP_SECS));
        assert_eq!(visit.since, None, "still the first");
        let back = visit.record_view(UnixTime(50_000));
        assert_eq!(back.since, Some(UnixTime(10_000 + VISIT_GAP_SECS)));
        assert_eq!(back.record_view(UnixTime(50_100)).since, back.since, "reloading the page changes nothing");
        let saved = PortalVisit::parse(&back.to_text()).unwrap();
        assert_eq!((saved.since, saved.seen), (back.since, back.seen));
        assert_eq!(PortalVisit::parse("nonsense"), None);
    }

    /// Whoever works on other pages hasn't left.
    #[tokio::test]
    async fn every_page_counts_and_a_restart_forgets_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let mut tx = store.write().await.unwrap();
        let (name, title) = ("ada".parse().unwrap(), "Ada".parse().unwrap());
        let ada = store::people::add(&mut tx, &name, &title, false, UnixTime(1)).await.unwrap();
        store::commit(tx).await.unwrap();
        let visits = LastVisits::default();
        let now = UnixTime(50_000);
        assert_eq!(visits.previous_visit_end(&store, ada, now).await.unwrap(), None);
        // Home, and then other pages for hours.
        let last_page = UnixTime(10_000 + 10 * 1200);
        for at in (10_000..=last_page.0).step_by(1200).map(UnixTime) {
            visits.record_page(&store, ada, at, at).await.unwrap();
            if at == UnixTime(10_000) {
                assert_eq!(visits.previous_visit_end(&store, ada, at).await.unwrap(), None, "the first");
            }
        }
        assert_eq!(visits.lock().get(&ada).unwrap().since, None, "one long visit");
        for visits in [visits, LastVisits::default()] {
            visits.record_page(&store, ada, last_page, now).await.unwrap();
            visits.record_page(&store, ada, now, now.plus(60)).await.unwrap();
            let end = visits.previous_visit_end(&store, ada, now.plus(60)).await.unwrap();
            assert_eq!(end, Some(last_page), "not when Home was last opened");
            let mut tx = store.write().await.unwrap();
            store::queues::set_preference(&mut tx, ada, VISIT_PREFERENCE, "10000 ").await.unwrap();
            store::commit(tx).await.unwrap();
        }
    }
}
