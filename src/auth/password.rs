//! Passwords: the rules (length and a list of common ones, no character classes) and their sealed hashes.

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use secrecy::{ExposeSecret, SecretString};

use super::rate_limits::RateLimitKey;
use super::{AuthError, AuthService, Result, person_seal_context};
use crate::domain::{PersonId, SignInName};
use crate::vault::VaultPurpose;

pub const MIN_PASSWORD_CHARS: usize = 10;
/// Longer ones only cost time.
pub const MAX_PASSWORD_BYTES: usize = 1024;

/// Lower case, one per line; only those with [`MIN_PASSWORD_CHARS`] or more matter.
const COMMON_PASSWORDS: &str = include_str!("common_passwords.txt");

/// The rule that a password breaks, as a sentence for the person who typed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    #[error("Use at least 10 characters. A short phrase is easy to remember and hard to guess.")]
    Short,
    #[error("Use at most 1,000 characters.")]
    Long,
    /// Among the first that anyone would try.
    #[error("This password is too common and easy to guess. Choose another one.")]
    Common,
    /// Contains the sign-in name.
    #[error("Choose a password that doesn't contain your user name.")]
    ContainsName,
    /// The two fields differ.
    #[error("The two passwords don't match.")]
    Differ,
}

/// Checks a new password against the rules.
pub fn check_rules(password: &SecretString, name: &SignInName) -> std::result::Result<(), PasswordError> {
    let text = password.expose_secret();
    if text.chars().count() < MIN_PASSWORD_CHARS {
        return Err(PasswordError::Short);
    }
    if text.len() > MAX_PASSWORD_BYTES {
        return Err(PasswordError::Long);
    }
    let folded = text.to_lowercase();
    if is_common(&folded) {
        return Err(PasswordError::Common);
    }
    if name.as_str().len() >= 4 && folded.contains(name.as_str()) {
        return Err(PasswordError::ContainsName);
    }
    Ok(())
}

fn is_common(folded: &str) -> bool {
    let listed = COMMON_PASSWORDS.lines().any(|word| word == folded);
    let distinct: std::collections::BTreeSet<char> = folded.chars().collect();
    let steps: std::collections::BTreeSet<i64> = folded
        .chars()
        .zip(folded.chars().skip(1))
        .map(|(a, b)| i64::from(u32::from(b)) - i64::from(u32::from(a)))
        .collect();
    // "aaaaaaaaaa", "abababababab", "1234567890a"-like runs.
    listed || distinct.len() <= 3 || steps.len() == 1
}

impl AuthService {
    pub(super) async fn seal_password(&self, person: PersonId, password: &SecretString) -> Result<Vec<u8>> {
        let hash = self.hash_password(password).await?;
        self.seal_hash(person, &hash)
    }

    /// Hashes a password on a blocking thread. Call it before a transaction begins, so that nobody waits for the
    /// write lock meanwhile.
    pub(super) async fn hash_password(&self, password: &SecretString) -> Result<String> {
        let password = password.clone();
        self.run_hashing(move || {
            Argon2::default()
                .hash_password(password.expose_secret().as_bytes())
                .map(|hash| hash.to_string())
                .map_err(|error| AuthError::System(format!("could not hash a password: {error}")))
        })
        .await?
    }

    /// Seals a hash for its owner.
    pub(super) fn seal_hash(&self, person: PersonId, hash: &str) -> Result<Vec<u8>> {
        Ok(self.vault.seal(VaultPurpose::PasswordHash, &person_seal_context(person), hash.as_bytes())?)
    }

    /// Whether a password matches a sealed hash. Without a hash it takes just as long and says no, so that timing
    /// doesn't reveal which names exist.
    pub(super) async fn verify_password(
        &self,
        stored: Option<(PersonId, &[u8])>,
        password: &SecretString,
    ) -> Result<bool> {
        let hash = match stored {
            Some((person, sealed)) => {
                Some(self.vault.open(VaultPurpose::PasswordHash, &person_seal_context(person), sealed)?)
            }
            None => None,
        };
        self.verify_hash(hash.map(|hash| hash.to_vec()), password).await
    }

    /// The same for an unsealed hash.
    pub(super) async fn verify_hash(&self, hash: Option<Vec<u8>>, password: &SecretString) -> Result<bool> {
        let password = password.clone();
        self.run_hashing(move || {
            let Some(hash) = hash else {
                let _ = Argon2::default().hash_password(password.expose_secret().as_bytes());
                return false;
            };
            std::str::from_utf8(&hash).ok().and_then(|text| PasswordHash::new(text).ok()).is_some_and(|hash| {
                Argon2::default().verify_password(password.expose_secret().as_bytes(), &hash).is_ok()
            })
        })
        .await
    }

    /// Opens an imported key on a blocking thread. A key can be made to take seconds, so imports have their own
    /// slots, and each person a limited number of tries.
    pub async fn run_key_import<T: Send + 'static>(
        &self,
        person: PersonId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.count_try(&[RateLimitKey::KeyImport(person.0)])?;
        let place = self.import_slots.clone().try_acquire_owned().map_err(|_| AuthError::Overloaded)?;
        let counted = move || {
            let _held = place;
            work()
        };
        let system = |error: tokio::task::JoinError| AuthError::System(error.to_string());
        tokio::task::spawn_blocking(counted).await.map_err(system)
    }

    /// Runs slow password work on a blocking thread.
    pub(super) async fn run_hashing<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let place = self.hash_queue.clone().try_acquire_owned().map_err(|_| AuthError::Overloaded)?;
        let system = |error: &dyn std::fmt::Display| AuthError::System(error.to_string());
        let permit = self.hash_slots.clone().acquire_owned().await.map_err(|error| system(&error))?;
        // The work continues after the client disconnects, so it holds the permits itself.
        let counted = move || {
            let _held = (place, permit);
            work()
        };
        tokio::task::spawn_blocking(counted).await.map_err(|error| system(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_counts_and_classes_do_not() {
        let name = "alice".parse().unwrap();
        let check = |text: &str| check_rules(&SecretString::from(text.to_owned()), &name);
        assert_eq!(check("short"), Err(PasswordError::Short));
        assert_eq!(check("Tr0ub4dor"), Err(PasswordError::Short), "nine characters");
        assert_eq!(check("quiet harbour at dawn"), Ok(()));
        assert_eq!(check("naïve café øl"), Ok(()));
        assert_eq!(check(&"x y".repeat(400)), Err(PasswordError::Long));
        assert_eq!(check("ALICE in chains"), Err(PasswordError::ContainsName));
        for common in
            ["password123", "Password123", "1234567890", "qwertyuiop", "aaaaaaaaaaaa", "abcdefghijkl", "ababababab"]
        {
            assert_eq!(check(common), Err(PasswordError::Common), "{common}");
        }
    }

    #[test]
    fn the_list_is_clean() {
        for word in COMMON_PASSWORDS.lines() {
            assert_eq!(word, word.to_lowercase().trim());
            assert!(word.chars().count() >= MIN_PASSWORD_CHARS, "{word} is refused for its length already");
        }
    }
}
