//! Tables `sessions` and `pending_sign_ins`. Only hashes of the cookies are kept.

use super::{DbConnection, Result, people};
use crate::clock::UnixTime;
use crate::domain::{PersonId, SessionId};

/// A signed-in browser with its person.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Session {
    #[sqlx(rename = "session_id")]
    pub id: SessionId,
    /// Last request (to the minute).
    pub last_seen_at: UnixTime,
    /// The session ends then at the latest.
    pub expires_at: UnixTime,
    /// The key of the person's keychain, sealed for this browser's cookie.
    pub keychain: Option<Vec<u8>>,
    #[sqlx(flatten)]
    pub person: people::Person,
}

/// A signed-in browser as its owner sees it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct SignedInBrowser {
    pub id: SessionId,
    pub created_at: UnixTime,
    pub last_seen_at: UnixTime,
    /// The address it signed in from.
    pub address: String,
    /// The browser's user agent.
    pub user_agent: String,
}

pub struct NewSession<'a> {
    /// SHA-256 of the cookie.
    pub token_hash: [u8; 32],
    pub person: PersonId,
    /// The session ends then at the latest.
    pub expires_at: UnixTime,
    /// The address it signs in from.
    pub address: &'a str,
    /// The browser's user agent.
    pub user_agent: &'a str,
    /// The key of the person's keychain, sealed for the cookie.
    pub keychain: Option<&'a [u8]>,
}

/// A sign-in that waits for its one-time code.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct SignInAwaitingCode {
    pub person_id: PersonId,
    /// Wrong codes so far.
    pub tries: i64,
    /// The key of the person's keychain, sealed for the pending cookie.
    pub keychain: Option<Vec<u8>>,
}

pub async fn exists(db: &mut DbConnection, id: SessionId) -> Result<bool> {
    scalar_one!(db, "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = $1)", [id])
}

pub async fn add(db: &mut DbConnection, session: &NewSession<'_>, now: UnixTime) -> Result<SessionId> {
    scalar_one!(
        db,
        "INSERT INTO sessions (token_hash, person_id, created_at, last_seen_at, expires_at, address, user_agent, keychain)
         VALUES ($1, $2, $3, $3, $4, $5, $6, $7) RETURNING id",
        [
            &session.token_hash[..], session.person, now, session.expires_at, session.address, session.user_agent,
            session.keychain
        ]
    )
}

/// The session behind a cookie, with its person.
pub async fn find(db: &mut DbConnection, token_hash: &[u8; 32]) -> Result<Option<Session>> {
    fetch_optional!(
        db,
        concat!(
            "SELECT s.id AS session_id, s.last_seen_at, s.expires_at, s.keychain, ",
            people::columns!(),
            " FROM sessions s JOIN people p ON p.id = s.person_id WHERE s.token_hash = $1"
        ),
        [&token_hash[..]]
    )
}

/// Records a request of the browser.
pub async fn touch(db: &mut DbConnection, id: SessionId, now: UnixTime) -> Result<()> {
    execute!(db, "UPDATE sessions SET last_seen_at = $2 WHERE id = $1", [id, now])
}

/// A person's signed-in browsers, most recently used first.
pub async fn list_for_person(db: &mut DbConnection, person: PersonId) -> Result<Vec<SignedInBrowser>> {
    fetch_all!(
        db,
        "SELECT id, created_at, last_seen_at, address, user_agent FROM sessions
         WHERE person_id = $1 ORDER BY last_seen_at DESC, id DESC",
        [person]
    )
}

/// Whether a person is signed in anywhere: a session that has neither expired nor been idle for too long.
pub async fn is_signed_in(
    db: &mut DbConnection,
    person: PersonId,
    idle_since: UnixTime,
    now: UnixTime,
) -> Result<bool> {
    scalar_one!(
        db,
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE person_id = $1 AND expires_at > $2 AND last_seen_at > $3)",
        [person, now, idle_since]
    )
}

/// Ends one session of a person. False if they have no such session.
pub async fn end(db: &mut DbConnection, person: PersonId, id: SessionId) -> Result<bool> {
    affects_row!(db, "DELETE FROM sessions WHERE id = $1 AND person_id = $2", [id, person])
}

/// Ends every session of a person except the one to keep, and every pending sign-in.
pub async fn end_all(db: &mut DbConnection, person: PersonId, keep: Option<SessionId>) -> Result<u64> {
    execute!(db, "DELETE FROM pending_sign_ins WHERE person_id = $1", [person])?;
    affected_rows!(db, "DELETE FROM sessions WHERE person_id = $1 AND id <> $2", [person, keep.unwrap_or(SessionId(0))])
}

/// Deletes expired sessions and pending sign-ins.
pub async fn sweep(db: &mut DbConnection, idle_since: UnixTime, now: UnixTime) -> Result<u64> {
    execute!(db, "DELETE FROM pending_sign_ins WHERE expires_at <= $1", [now])?;
    affected_rows!(db, "DELETE FROM sessions WHERE expires_at <= $1 OR last_seen_at <= $2", [now, idle_since])
}

/// Pending sign-ins per person. Anyone who knows the password could create more.
const MAX_PENDING: i64 = 10;

/// Adds a sign-in that waits for its code.
pub async fn add_pending(
    db: &mut DbConnection,
    token_hash: &[u8; 32],
    person: PersonId,
    keychain: Option<&[u8]>,
    expires_at: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "INSERT INTO pending_sign_ins (token_hash, person_id, keychain, expires_at) VALUES ($1, $2, $3, $4)",
        [&token_hash[..], person, keychain, expires_at]
    )?;
    execute!(
        db,
        "DELETE FROM pending_sign_ins WHERE person_id = $1 AND rowid NOT IN
           (SELECT rowid FROM pending_sign_ins WHERE person_id = $1 ORDER BY rowid DESC LIMIT $2)",
        [person, MAX_PENDING]
    )
}

/// The pending sign-in behind a cookie, if it has not expired.
pub async fn find_pending(
    db: &mut DbConnection,
    token_hash: &[u8; 32],
    now: UnixTime,
) -> Result<Option<SignInAwaitingCode>> {
    fetch_optional!(
        db,
        "SELECT person_id, tries, keychain FROM pending_sign_ins WHERE token_hash = $1 AND expires_at > $2",
        [&token_hash[..], now]
    )
}

pub async fn count_wrong_code(db: &mut DbConnection, token_hash: &[u8; 32]) -> Result<()> {
    execute!(db, "UPDATE pending_sign_ins SET tries = tries + 1 WHERE token_hash = $1", [&token_hash[..]])
}

/// Ends a pending sign-in. False if it was gone already: of two answers at once, the other won.
pub async fn end_pending(db: &mut DbConnection, token_hash: &[u8; 32]) -> Result<bool> {
    affects_row!(db, "DELETE FROM pending_sign_ins WHERE token_hash = $1", [&token_hash[..]])
}
