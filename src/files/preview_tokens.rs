//! Tokens by which a browser loads one file of one person from the dashboards' origin, where none of the portal's cookies
//! arrive. In memory only: after a restart, the file's page gets a new one.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::auth::token::{self, SecretToken};
use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::core::lock;
use crate::domain::{PersonId, RemotePath, SessionId};

/// How long a token works, in seconds: long enough for a viewer to fetch the parts of a large file.
const LIFETIME_S: i64 = 10 * 60;
const MAX_TOKENS: usize = 10_000;
/// More tabs with files than anyone reads at a time.
const MAX_TOKENS_PER_PERSON: usize = 50;

/// What a token opens: this file, for this person, as long as they are signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewTokenTarget {
    pub session: SessionId,
    pub account: ClusterAccountId,
    pub path: RemotePath,
}

/// The tokens that are valid now, by their hashes.
#[derive(Default)]
pub struct PreviewTokenStore(Mutex<HashMap<[u8; 32], IssuedPreviewToken>>);

struct IssuedPreviewToken {
    target: PreviewTokenTarget,
    until: UnixTime,
}

impl PreviewTokenStore {
    /// Issues a token. If there are too many, the oldest one stops working.
    pub fn issue(&self, target: PreviewTokenTarget, now: UnixTime) -> std::io::Result<SecretToken> {
        let token = SecretToken::generate()?;
        let person = target.account.person;
        let mut issued = lock(&self.0);
        issued.retain(|_, token| now < token.until);
        let count = issued.values().filter(|token| token.target.account.person == person).count();
        if count >= MAX_TOKENS_PER_PERSON {
            remove_oldest(&mut issued, Some(person));
        } else if issued.len() >= MAX_TOKENS {
            remove_oldest(&mut issued, None);
        }
        issued.insert(token.hash_token(), IssuedPreviewToken { target, until: now.plus(LIFETIME_S) });
        Ok(token)
    }

    /// What a token opens, if it exists and hasn't expired.
    pub fn find(&self, token: &str, now: UnixTime) -> Option<PreviewTokenTarget> {
        let issued = lock(&self.0);
        issued.get(&token::hash(token)).filter(|token| now < token.until).map(|token| token.target.clone())
    }
}

/// Removes the oldest token, of this person or of all.
fn remove_oldest(issued: &mut HashMap<[u8; 32], IssuedPreviewToken>, person: Option<PersonId>) {
    let is_meant = |token: &IssuedPreviewToken| person.is_none_or(|person| token.target.account.person == person);
    let oldest = issued.iter().filter(|(_, token)| is_meant(token)).min_by_key(|(_, token)| token.until);
    if let Some(key) = oldest.map(|(key, _)| *key) {
        issued.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ClusterId;

    fn target(person: i64, path: &str) -> PreviewTokenTarget {
        PreviewTokenTarget {
            session: SessionId(7),
            account: ClusterAccountId { person: PersonId(person), cluster: ClusterId(1) },
            path: RemotePath::parse(path.as_bytes()).unwrap(),
        }
    }

    #[test]
    fn token_opens_its_file_for_a_few_minutes() {
        let tokens = PreviewTokenStore::default();
        let token = tokens.issue(target(1, "/a.pdf"), UnixTime(1000)).unwrap();
        assert_eq!(tokens.find(token.as_str(), UnixTime(1000)), Some(target(1, "/a.pdf")));
        assert_eq!(tokens.find(token.as_str(), UnixTime(1599)), Some(target(1, "/a.pdf")), "more than once");
        assert_eq!(tokens.find(token.as_str(), UnixTime(1600)), None);
        let other = tokens.issue(target(1, "/b.pdf"), UnixTime(1700)).unwrap();
        assert_eq!(lock(&tokens.0).len(), 1, "expired ones are forgotten");
        assert_eq!(tokens.find(other.as_str(), UnixTime(1700)).unwrap().path, target(1, "/b.pdf").path);
        for wrong in ["", "x", &other.as_str()[1..], &format!("{}x", other.as_str())] {
            assert_eq!(tokens.find(wrong, UnixTime(1700)), None, "{wrong}");
        }
    }

    #[test]
    fn number_of_tokens_is_bounded_for_each_person_and_altogether() {
        let tokens = PreviewTokenStore::default();
        let others = tokens.issue(target(2, "/theirs.pdf"), UnixTime(0)).unwrap();
        let first = tokens.issue(target(1, "/first.pdf"), UnixTime(1)).unwrap();
        let count = i64::try_from(MAX_TOKENS_PER_PERSON).unwrap();
        for at in 0..count {
            tokens.issue(target(1, "/next.pdf"), UnixTime(2 + at)).unwrap();
        }
        assert_eq!(tokens.find(first.as_str(), UnixTime(60)), None, "their oldest has gone");
        assert!(tokens.find(others.as_str(), UnixTime(60)).is_some(), "nobody else's");
        assert_eq!(lock(&tokens.0).len(), MAX_TOKENS_PER_PERSON + 1);
        for person in 0..i64::try_from(MAX_TOKENS).unwrap() {
            tokens.issue(target(100 + person, "/x.pdf"), UnixTime(70)).unwrap();
        }
        assert_eq!(lock(&tokens.0).len(), MAX_TOKENS);
        assert_eq!(tokens.find(others.as_str(), UnixTime(70)), None);
    }
}
