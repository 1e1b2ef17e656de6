//! Table `recovery_codes`: codes for when the phone is lost. Only hashes are kept.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::PersonId;

pub async fn replace(db: &mut DbConnection, person: PersonId, hashes: &[[u8; 32]]) -> Result<()> {
    sqlx::query("DELETE FROM recovery_codes WHERE person_id = $1").bind(person).execute(&mut *db).await?;
    for hash in hashes {
        sqlx::query("INSERT INTO recovery_codes (person_id, code_hash) VALUES ($1, $2)")
            .bind(person)
            .bind(&hash[..])
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

/// Uses up a code. False if there is no such code or it was used before.
pub async fn use_up(db: &mut DbConnection, person: PersonId, hash: &[u8; 32], now: UnixTime) -> Result<bool> {
    let done = sqlx::query(
        "UPDATE recovery_codes SET used_at = $3 WHERE person_id = $1 AND code_hash = $2 AND used_at IS NULL",
    )
    .bind(person)
    .bind(&hash[..])
    .bind(now)
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// How many codes are left.
pub async fn count_left(db: &mut DbConnection, person: PersonId) -> Result<i64> {
    Ok(sqlx::query_scalar("SELECT count(*) FROM recovery_codes WHERE person_id = $1 AND used_at IS NULL")
        .bind(person)
        .fetch_one(db)
        .await?)
}
