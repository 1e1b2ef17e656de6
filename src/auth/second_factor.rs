//! The second factor: one-time codes from an app (TOTP, RFC 6238) and recovery codes for a lost phone.

use secrecy::SecretString;
use totp_rs::{Builder, Secret, Totp};
use zeroize::Zeroizing;

use super::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use super::sessions::SignedInPerson;
use super::{AuthError, AuthService, Permission, RequestClient, Result, person_seal_context};
use crate::domain::PersonId;
use crate::entropy;
use crate::store::{self, people::PersonCredentials};
use crate::vault::VaultPurpose;

const RECOVERY_CODE_COUNT: usize = 10;
/// Without letters and digits that are easily confused.
const RECOVERY_CODE_ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const TOTP_STEP_SECS: u64 = 30;

/// A second factor being set up; nothing is stored until its first code was right.
pub struct TotpEnrolment {
    /// The secret, sealed for this person; passed along in the form.
    pub sealed: Vec<u8>,
    /// The secret as people type it, in groups of four.
    pub secret: Zeroizing<String>,
    /// The `otpauth://` URL in the QR code.
    pub address: Zeroizing<String>,
}

impl AuthService {
    /// Starts setting up a second factor, or continues with what the form sent back.
    pub fn begin_totp_enrolment(
        &self,
        who: &SignedInPerson,
        issuer: &str,
        sealed: Option<&[u8]>,
    ) -> Result<TotpEnrolment> {
        let bytes = match sealed {
            Some(sealed) => self.open_secret(&enrolment_seal_context(who.person.id), sealed)?,
            None => Zeroizing::new(entropy::random_bytes::<20>()?.to_vec()),
        };
        let sealed =
            self.vault.seal(VaultPurpose::OneTimeCodeSecret, &enrolment_seal_context(who.person.id), &bytes)?;
        let totp = build_totp(&bytes, issuer, &who.person.name)?;
        let text = totp.secret().to_base32();
        let groups: Vec<&str> = text.as_bytes().chunks(4).filter_map(|four| std::str::from_utf8(four).ok()).collect();
        let address = totp.to_url().map_err(|error| AuthError::System(error.to_string()))?;
        Ok(TotpEnrolment { sealed, secret: Zeroizing::new(groups.join(" ")), address: Zeroizing::new(address) })
    }

    /// Enables the second factor; needs the password and a correct code. Returns the recovery codes.
    pub async fn enable_second_factor(
        &self,
        who: &SignedInPerson,
        sealed: &[u8],
        code: &str,
        password: &SecretString,
        client: &RequestClient,
    ) -> Result<Vec<String>> {
        self.confirm_password(who.person.id, password).await?;
        let now = self.clock.now();
        let bytes = self.open_secret(&enrolment_seal_context(who.person.id), sealed)?;
        let step = matching_step(&bytes, code, now.0).ok_or(AuthError::WrongCode)?;
        let stored = self.vault.seal(VaultPurpose::OneTimeCodeSecret, &person_seal_context(who.person.id), &bytes)?;
        let codes = generate_recovery_codes()?;
        let mut tx = self.store.write().await?;
        store::people::set_totp(&mut tx, who.person.id, Some(&stored), step).await?;
        store::recovery_codes::replace(&mut tx, who.person.id, &self.sign_codes(who.person.id, &codes)).await?;
        self.record_own(&mut tx, who, ActivityEventKind::SecondFactorOn, client).await?;
        store::commit(tx).await?;
        Ok(codes)
    }

    /// Disables the second factor; needs the password.
    pub async fn disable_second_factor(
        &self,
        who: &SignedInPerson,
        password: &SecretString,
        client: &RequestClient,
    ) -> Result<()> {
        self.confirm_password(who.person.id, password).await?;
        let mut tx = self.store.write().await?;
        store::people::set_totp(&mut tx, who.person.id, None, 0).await?;
        store::recovery_codes::replace(&mut tx, who.person.id, &[]).await?;
        self.record_own(&mut tx, who, ActivityEventKind::SecondFactorOff, client).await?;
        Ok(store::commit(tx).await?)
    }

    /// Disables someone's second factor after they lost their phone and recovery codes.
    pub async fn remove_second_factor(&self, actor: &Actor, person: PersonId) -> Result<()> {
        let mut tx = self.store.write().await?;
        self.authorise(&mut tx, actor, Permission::ManagePeople).await?;
        let account = store::people::get(&mut tx, person).await?.ok_or(AuthError::NotFound)?;
        store::people::set_totp(&mut tx, person, None, 0).await?;
        store::recovery_codes::replace(&mut tx, person, &[]).await?;
        let about = ActivityDetails { person: Some(person), subject: &account.name, ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::SecondFactorRemoved, about, self.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    /// Creates new recovery codes, which replace the old ones; needs the password.
    pub async fn renew_recovery_codes(
        &self,
        who: &SignedInPerson,
        password: &SecretString,
        client: &RequestClient,
    ) -> Result<Vec<String>> {
        self.confirm_password(who.person.id, password).await?;
        if !who.person.has_totp {
            return Err(AuthError::NotFound);
        }
        let codes = generate_recovery_codes()?;
        let mut tx = self.store.write().await?;
        store::recovery_codes::replace(&mut tx, who.person.id, &self.sign_codes(who.person.id, &codes)).await?;
        self.record_own(&mut tx, who, ActivityEventKind::RecoveryCodesMade, client).await?;
        store::commit(tx).await?;
        Ok(codes)
    }

    /// Uses up a code. Returns a description for the activity log.
    pub(super) async fn consume_code(
        &self,
        db: &mut store::DbConnection,
        credentials: &PersonCredentials,
        code: &str,
        client: &RequestClient,
    ) -> Result<&'static str> {
        let person = credentials.person.id;
        let now = self.clock.now();
        let sealed = credentials.totp_sealed.as_deref().ok_or(AuthError::WrongCode)?;
        let bytes = self.open_secret(&person_seal_context(person), sealed)?;
        if let Some(step) = matching_step(&bytes, code, now.0) {
            if store::people::use_totp_step(db, person, step).await? {
                return Ok("with a one-time code");
            }
            let is_long_past = credentials.totp_last_step > step + 2;
            return Err(if is_long_past { AuthError::ClockBehind } else { AuthError::CodeAlreadyUsed });
        }
        let mut hashes = vec![self.sign_code(person, code)];
        for retired in self.retired_signing_keys(db).await? {
            hashes.push(retired.sign(code_message(person, code).as_bytes()));
        }
        for hash in hashes {
            if store::recovery_codes::use_up(db, person, &hash, now).await? {
                let actor = Actor::from_person(&credentials.person, client);
                record(db, &actor, ActivityEventKind::RecoveryCodeUsed, ActivityDetails::default(), now).await?;
                return Ok("with a recovery code");
            }
        }
        Err(AuthError::WrongCode)
    }

    fn sign_codes(&self, person: PersonId, codes: &[String]) -> Vec<[u8; 32]> {
        codes.iter().map(|code| self.sign_code(person, code)).collect()
    }

    /// What is stored of a code: useless without the master key, and bound to its owner.
    fn sign_code(&self, person: PersonId, code: &str) -> [u8; 32] {
        self.vault.sign(VaultPurpose::RecoveryCode, code_message(person, code).as_bytes())
    }

    fn open_secret(&self, context: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        Ok(self.vault.open(VaultPurpose::OneTimeCodeSecret, context, sealed)?)
    }
}

/// A secret being set up opens only on the set-up form, not as a stored one.
fn enrolment_seal_context(person: PersonId) -> String {
    format!("enrolment:{person}")
}

fn build_totp(bytes: &[u8], issuer: &str, account: &str) -> Result<Totp> {
    Builder::new()
        .with_secret(Secret::new(bytes.into()))
        .with_step_duration(TOTP_STEP_SECS)
        .with_skew(1)
        .with_account_name(account)
        .with_issuer(Some(issuer))
        .build()
        .map_err(|error| AuthError::System(error.to_string()))
}

/// The time step that a code belongs to, allowing one step either way for clock differences.
fn matching_step(bytes: &[u8], code: &str, now: i64) -> Option<i64> {
    let digits: String = code.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    if digits.len() != 6 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let step = build_totp(bytes, "Portolan", "x").ok()?.check(&digits, u64::try_from(now).ok()?)?;
    i64::try_from(step).ok()
}

fn generate_recovery_codes() -> Result<Vec<String>> {
    (0..RECOVERY_CODE_COUNT)
        .map(|_| {
            let letters: String = entropy::random_bytes::<10>()?
                .iter()
                .map(|byte| char::from(RECOVERY_CODE_ALPHABET[usize::from(byte % 32)]))
                .collect();
            Ok(format!("{}-{}", &letters[..5], &letters[5..]))
        })
        .collect()
}

fn code_message(person: PersonId, code: &str) -> String {
    format!("{} {}", person_seal_context(person), normalise_code(code))
}

/// Normalises a code for comparison, however it was typed.
fn normalise_code(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appendix B of RFC 6238 (SHA-1, the last six of its eight digits).
    #[test]
    fn codes_are_those_of_the_standard() {
        let secret = b"12345678901234567890";
        for (time, code) in
            [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (2_000_000_000, "279037")]
        {
            assert_eq!(matching_step(secret, code, time), Some(time / 30));
            assert_eq!(matching_step(secret, &format!("{} {}", &code[..3], &code[3..]), time + 30), Some(time / 30));
            assert_eq!(matching_step(secret, code, time + 90), None);
        }
        for bad in ["", "28708", "2870822", "abcdef", "２８７０８２"] {
            assert_eq!(matching_step(secret, bad, 59), None);
        }
        assert_eq!(matching_step(secret, "287082", -5), None, "a clock before 1970");
    }

    #[test]
    fn recovery_codes_forgive_how_they_are_typed() {
        let codes = generate_recovery_codes().unwrap();
        assert_eq!(codes.len(), RECOVERY_CODE_COUNT);
        let typed = format!(" {} ", codes[0].to_uppercase().replace('-', " "));
        assert_eq!(normalise_code(&typed), normalise_code(&codes[0]));
        assert_ne!(normalise_code(&codes[0]), normalise_code(&codes[1]));
        assert_eq!(normalise_code(&codes[0]).len(), 10);
    }
}
