//! Rate limits. Leaky buckets in memory: each try fills a bucket, time drains it.
//!
//! Nobody can lock a victim out for good: the bucket that strangers share doesn't apply to a browser in which the
//! person has signed in before, and every bucket drains by itself.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use crate::clock::UnixTime;
use crate::domain::GuestLinkId;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RateLimitKey {
    /// All tries from one address (IPv6: from one /64).
    Address(IpAddr),
    /// Tries at one account from one address.
    AccountFrom(String, IpAddr),
    /// Tries at one account from anywhere, by unknown browsers.
    Account(String),
    /// Tries at one account by one known browser.
    AccountBrowser(String, String),
    /// One-time codes for one account, by unknown browsers. Reached only with the right password.
    Code(String),
    /// One-time codes for one account, by one known browser.
    CodeBrowser(String, String),
    /// Wrong confirmations by a signed-in person, such as their current password.
    Confirmation(i64),
    /// Key imports by one person; opening a key may take seconds.
    KeyImport(i64),
    /// Guest links that don't exist, from one address. Sign-ins have their own bucket.
    GuestLinkGuess(IpAddr),
    /// Openings of one guest link, from one address.
    GuestLinkOpening(GuestLinkId, IpAddr),
    /// Passphrases for one guest link, from one address.
    GuestPassphraseFrom(GuestLinkId, IpAddr),
    /// Passphrases for one guest link, from anywhere.
    GuestPassphrase(GuestLinkId),
    /// Requests by one guest link that need the cluster: listings, downloads and new uploads, from anywhere.
    GuestFileRequest(GuestLinkId),
    /// Requests by one guest link about uploads that were begun, from anywhere: each writes to the database.
    GuestUploadRequest(GuestLinkId),
}

impl RateLimitKey {
    /// Tries until the bucket is full, and seconds until it has room for one more.
    const fn capacity_and_refill(&self) -> (f64, f64) {
        match self {
            Self::Address(_) | Self::GuestLinkGuess(_) => (30.0, 10.0),
            Self::GuestLinkOpening(..) => (60.0, 5.0),
            Self::AccountFrom(..) | Self::GuestPassphraseFrom(..) => (8.0, 30.0),
            Self::Account(_) | Self::GuestPassphrase(_) => (40.0, 60.0),
            // A guest who clicks through folders or drops a hundred files notices nothing.
            Self::GuestFileRequest(_) => (120.0, 2.0),
            Self::GuestUploadRequest(_) => (300.0, 0.2),
            Self::KeyImport(_) => (40.0, 20.0),
            Self::Code(_) => (10.0, 120.0),
            Self::AccountBrowser(..) | Self::CodeBrowser(..) | Self::Confirmation(_) => (10.0, 30.0),
        }
    }
}

/// IPv6 addresses are counted by the network that a household or institute gets.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        },
    }
}

#[derive(Debug, Clone, Copy)]
struct BucketLevel {
    tries: f64,
    at: UnixTime,
}

/// Beyond this, empty ones are dropped first.
const MAX_BUCKETS: usize = 50_000;

#[derive(Debug, Default)]
pub struct RateLimiter {
    levels: Mutex<HashMap<RateLimitKey, BucketLevel>>,
}

impl RateLimiter {
    /// Takes one try from every bucket, or from none and returns the seconds to wait.
    pub fn take(&self, buckets: &[RateLimitKey], now: UnixTime) -> Result<(), i64> {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = buckets.iter().filter_map(|bucket| seconds_to_wait(&levels, bucket, now)).max();
        if let Some(seconds) = wait {
            return Err(seconds);
        }
        if levels.len() + buckets.len() > MAX_BUCKETS {
            evict_buckets(&mut levels, now);
        }
        for bucket in buckets {
            let tries = current_level(&levels, bucket, now) + 1.0;
            levels.insert(bucket.clone(), BucketLevel { tries, at: now });
        }
        Ok(())
    }

    /// Gives a try back after a correct one.
    pub fn refund(&self, buckets: &[RateLimitKey], now: UnixTime) {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        for bucket in buckets {
            let tries = (current_level(&levels, bucket, now) - 1.0).max(0.0);
            levels.insert(bucket.clone(), BucketLevel { tries, at: now });
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds between two tries are small numbers")]
fn current_level(levels: &HashMap<RateLimitKey, BucketLevel>, bucket: &RateLimitKey, now: UnixTime) -> f64 {
    let (_, seconds_per_try) = bucket.capacity_and_refill();
    levels.get(bucket).map_or(0.0, |level| {
        // A clock that was set back drains nothing and penalises nobody.
        let gone = now.since(level.at).max(0) as f64;
        (level.tries - gone / seconds_per_try).max(0.0)
    })
}

#[expect(clippy::cast_possible_truncation, reason = "waits are minutes at the most")]
fn seconds_to_wait(levels: &HashMap<RateLimitKey, BucketLevel>, bucket: &RateLimitKey, now: UnixTime) -> Option<i64> {
    let (most, seconds_per_try) = bucket.capacity_and_refill();
    let over = current_level(levels, bucket, now) + 1.0 - most;
    (over > 0.0).then(|| (over * seconds_per_try).ceil().max(1.0) as i64)
}

fn evict_buckets(levels: &mut HashMap<RateLimitKey, BucketLevel>, now: UnixTime) {
    let empty: Vec<RateLimitKey> =
        levels.keys().filter(|bucket| current_level(levels, bucket, now) <= 0.0).cloned().collect();
    for bucket in &empty {
        levels.remove(bucket);
    }
    if levels.len() > MAX_BUCKETS / 2 {
        let mut oldest: Vec<(UnixTime, RateLimitKey)> =
            levels.iter().map(|(bucket, level)| (level.at, bucket.clone())).collect();
        oldest.sort_by_key(|(at, _)| *at);
        for (_, bucket) in oldest.into_iter().take(MAX_BUCKETS / 4) {
            levels.remove(&bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime(1_000_000);

    fn account_from() -> Vec<RateLimitKey> {
        vec![RateLimitKey::AccountFrom("alice".into(), "127.0.0.1".parse().unwrap())]
    }

    #[test]
    fn a_full_bucket_empties_with_time() {
        let limits = RateLimiter::default();
        for _ in 0..8 {
            limits.take(&account_from(), NOW).unwrap();
        }
        assert_eq!(limits.take(&account_from(), NOW), Err(30));
        assert_eq!(limits.take(&account_from(), NOW.plus(29)), Err(1));
        limits.take(&account_from(), NOW.plus(30)).unwrap();
        assert!(limits.take(&account_from(), NOW.plus(30)).is_err());
    }

    #[test]
    fn a_refused_try_fills_nothing() {
        let limits = RateLimiter::default();
        for _ in 0..8 {
            limits.take(&account_from(), NOW).unwrap();
        }
        let both = [account_from(), vec![RateLimitKey::Account("alice".into())]].concat();
        for _ in 0..100 {
            assert!(limits.take(&both, NOW).is_err());
        }
        assert!(limits.take(&[RateLimitKey::Account("alice".into())], NOW).is_ok());
    }

    #[test]
    fn right_answers_are_given_back() {
        let limits = RateLimiter::default();
        for _ in 0..100 {
            limits.take(&account_from(), NOW).unwrap();
            limits.refund(&account_from(), NOW);
        }
    }

    #[test]
    fn a_clock_set_back_locks_nobody_out() {
        let limits = RateLimiter::default();
        limits.take(&account_from(), NOW).unwrap();
        limits.take(&account_from(), NOW.plus(-100_000)).unwrap();
    }

    #[test]
    fn many_addresses_do_not_fill_the_memory() {
        let limits = RateLimiter::default();
        for n in 0..120_000_u32 {
            limits.take(&[RateLimitKey::Address(IpAddr::V4(n.into()))], NOW).unwrap();
        }
        assert!(limits.levels.lock().unwrap().len() <= MAX_BUCKETS);
    }

    #[test]
    fn an_ipv6_household_counts_as_one() {
        let a = client_network("2001:db8:1:2::1".parse().unwrap());
        assert_eq!(a, client_network("2001:db8:1:2:ffff::9".parse().unwrap()));
        assert_ne!(a, client_network("2001:db8:1:3::1".parse().unwrap()));
        assert_eq!(client_network("::ffff:10.0.0.1".parse().unwrap()), "10.0.0.1".parse::<IpAddr>().unwrap());
    }
}
