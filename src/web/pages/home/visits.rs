//! When someone last visited their home page, so that it can say what happened since. Kept in memory, and saved now
//! and then for the time after a restart.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::app::AppState;
use crate::clock::UnixTime;
use crate::domain::PersonId;
use crate::store::{self, StoreError};

/// Someone who returns after this many seconds starts a new visit.
const VISIT_GAP_SECS: i64 = 30 * 60;
/// How often a visit is saved, in seconds.
const WRITE_INTERVAL_SECS: i64 = 5 * 60;
/// The preference that stores it.
const VISIT_PREFERENCE: &str = "home.visit";
/// How many people are kept in memory.
const MAX_PEOPLE: usize = 20_000;

#[derive(Debug, Default)]
pub struct LastHomeVisits(Mutex<HashMap<PersonId, HomeVisit>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HomeVisit {
    /// When the previous visit ended.
    since: Option<UnixTime>,
    /// When they last loaded the page.
    seen: UnixTime,
    written: UnixTime,
}

impl HomeVisit {
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

impl LastHomeVisits {
    /// The end of someone's previous visit, up to which they know what happened; `None` on their first.
    pub async fn previous_visit_end(
        &self,
        app: &AppState,
        person: PersonId,
        is_visit: bool,
    ) -> Result<Option<UnixTime>, StoreError> {
        let now = app.clock.now();
        let mut last = self.lock().get(&person).copied();
        if last.is_none() {
            let mut db = app.store.read().await?;
            let saved = store::queues::load_preference(&mut db, person, VISIT_PREFERENCE).await?;
            last = saved.as_deref().and_then(HomeVisit::parse);
        }
        let mut visit = last.unwrap_or_else(|| HomeVisit::first(now));
        if is_visit {
            visit = visit.record_view(now);
            if now.since(visit.written) >= WRITE_INTERVAL_SECS {
                visit.written = now;
                let mut tx = app.store.write().await?;
                store::queues::set_preference(&mut tx, person, VISIT_PREFERENCE, &visit.to_text()).await?;
                store::commit(tx).await?;
            }
        }
        let mut visits = self.lock();
        if visits.len() >= MAX_PEOPLE {
            visits.clear();
        }
        visits.insert(person, visit);
        Ok(visit.since)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PersonId, HomeVisit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_goes_on_until_there_was_a_pause() {
        let visit = HomeVisit::first(UnixTime(10_000)).record_view(UnixTime(10_000));
        assert_eq!(visit.since, None);
        let visit = visit.record_view(UnixTime(10_000 + VISIT_GAP_SECS));
        assert_eq!(visit.since, None, "still the first");
        let back = visit.record_view(UnixTime(50_000));
        assert_eq!(back.since, Some(UnixTime(10_000 + VISIT_GAP_SECS)));
        assert_eq!(back.record_view(UnixTime(50_100)).since, back.since, "reloading the page changes nothing");
        let saved = HomeVisit::parse(&back.to_text()).unwrap();
        assert_eq!((saved.since, saved.seen), (back.since, back.seen));
        assert_eq!(HomeVisit::parse("nonsense"), None);
    }
}
