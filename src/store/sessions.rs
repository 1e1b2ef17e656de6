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
pub struct PendingSignIn {
    pub person_id: PersonId,
    /// Wrong codes so far.
    pub tries: i64,
    /// The key of the person's keychain, sealed for the pending cookie.
    pub keychain: Option<Vec<u8>>,
}

pub async fn exists(db: &mut DbConnection, id: SessionId) -> Result<bool> {
    Ok(sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sessions WHERE id = $1)").bind(id).fetch_one(db).await?)
}

pub async fn add(db: &mut DbConnection, session: &NewSession<'_>, now: UnixTime) -> Result<SessionId> {
    Ok(sqlx::query_scalar(
        "INSERT INTO sessions (token_hash, person_id, created_at, last_seen_at, expires_at, address, user_agent, keychain)
         VALUES ($1, $2, $3, $3, $4, $5, $6, $7) RETURNING id",
    )
    .bind(&session.token_hash[..])
    .bind(session.person)
    .bind(now)
    .bind(session.expires_at)
    .bind(session.address)
    .bind(session.user_agent)
    .bind(session.keychain)
    .fetch_one(db)
    .await?)
}

/// The session behind a cookie, with its person.
pub async fn find(db: &mut DbConnection, token_hash: &[u8; 32]) -> Result<Option<Session>> {
    Ok(sqlx::query_as(concat!(
        "SELECT s.id AS session_id, s.last_seen_at, s.expires_at, s.keychain, ",
        people::columns!(),
        " FROM sessions s JOIN people p ON p.id = s.person_id WHERE s.token_hash = $1"
    ))
    .bind(&token_hash[..])
    .fetch_optional(db)
    .await?)
}

/// Records a request of the browser.
pub async fn touch(db: &mut DbConnection, id: SessionId, now: UnixTime) -> Result<()> {
    sqlx::query("UPDATE sessions SET last_seen_at = $2 WHERE id = $1").bind(id).bind(now).execute(db).await?;
    Ok(())
}

/// A person's signed-in browsers, most recently used first.
pub async fn list_for_person(db: &mut DbConnection, person: PersonId) -> Result<Vec<SignedInBrowser>> {
    Ok(sqlx::query_as(
        "SELECT id, created_at, last_seen_at, address, user_agent FROM sessions
         WHERE person_id = $1 ORDER BY last_seen_at DESC, id DESC",
    )
    .bind(person)
    .fetch_all(db)
    .await?)
}

/// Whether a person is signed in anywhere: a session that has neither expired nor been idle for too long.
pub async fn is_signed_in(
    db: &mut DbConnection,
    person: PersonId,
    idle_since: UnixTime,
    now: UnixTime,
) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE person_id = $1 AND expires_at > $2 AND last_seen_at > $3)",
    )
    .bind(person)
    .bind(now)
    .bind(idle_since)
    .fetch_one(db)
    .await?)
}

/// Ends one session of a person. False if they have no such session.
pub async fn end(db: &mut DbConnection, person: PersonId, id: SessionId) -> Result<bool> {
    let done =
        sqlx::query("DELETE FROM sessions WHERE id = $1 AND person_id = $2").bind(id).bind(person).execute(db).await?;
    Ok(done.rows_affected() == 1)
}

/// Ends every session of a person except the one to keep, and every pending sign-in.
pub async fn end_all(db: &mut DbConnection, person: PersonId, keep: Option<SessionId>) -> Result<u64> {
    sqlx::query("DELETE FROM pending_sign_ins WHERE person_id = $1").bind(person).execute(&mut *db).await?;
    let done = sqlx::query("DELETE FROM sessions WHERE person_id = $1 AND id <> $2")
        .bind(person)
        .bind(keep.unwrap_or(SessionId(0)))
        .execute(db)
        .await?;
    Ok(done.rows_affected())
}

/// Deletes expired sessions and pending sign-ins.
pub async fn sweep(db: &mut DbConnection, idle_since: UnixTime, now: UnixTime) -> Result<u64> {
    sqlx::query("DELETE FROM pending_sign_ins WHERE expires_at <= $1").bind(now).execute(&mut *db).await?;
    let done = sqlx::query("DELETE FROM sessions WHERE expires_at <= $1 OR last_seen_at <= $2")
        .bind(now)
        .bind(idle_since)
        .execute(db)
        .await?;
    Ok(done.rows_affected())
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
    sqlx::query("INSERT INTO pending_sign_ins (token_hash, person_id, keychain, expires_at) VALUES ($1, $2, $3, $4)")
        .bind(&token_hash[..])
        .bind(person)
        .bind(keychain)
        .bind(expires_at)
        .execute(&mut *db)
        .await?;
    sqlx::query(
        "DELETE FROM pending_sign_ins WHERE person_id = $1 AND rowid NOT IN
           (SELECT rowid FROM pending_sign_ins WHERE person_id = $1 ORDER BY rowid DESC LIMIT $2)",
    )
    .bind(person)
    .bind(MAX_PENDING)
    .execute(db)
    .await?;
    Ok(())
}

/// The pending sign-in behind a cookie, if it has not expired.
pub async fn find_pending(
    db: &mut DbConnection,
    token_hash: &[u8; 32],
    now: UnixTime,
) -> Result<Option<PendingSignIn>> {
    Ok(sqlx::query_as(
        "SELECT person_id, tries, keychain FROM pending_sign_ins WHERE token_hash = $1 AND expires_at > $2",
    )
    .bind(&token_hash[..])
    .bind(now)
    .fetch_optional(db)
    .await?)
}

pub async fn count_wrong_code(db: &mut DbConnection, token_hash: &[u8; 32]) -> Result<()> {
    sqlx::query("UPDATE pending_sign_ins SET tries = tries + 1 WHERE token_hash = $1")
        .bind(&token_hash[..])
        .execute(db)
        .await?;
    Ok(())
}

/// Ends a pending sign-in. False if it was gone already: of two answers at once, the other won.
pub async fn end_pending(db: &mut DbConnection, token_hash: &[u8; 32]) -> Result<bool> {
    let done =
        sqlx::query("DELETE FROM pending_sign_ins WHERE token_hash = $1").bind(&token_hash[..]).execute(db).await?;
    Ok(done.rows_affected() == 1)
}
