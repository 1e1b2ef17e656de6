//! Table `recovery_codes`: codes for when the phone is lost. Only hashes are kept.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::PersonId;

pub async fn replace(db: &mut DbConnection, person: PersonId, hashes: &[[u8; 32]]) -> Result<()> {
    execute!(db, "DELETE FROM recovery_codes WHERE person_id = $1", [person])?;
    for hash in hashes {
        execute!(db, "INSERT INTO recovery_codes (person_id, code_hash) VALUES ($1, $2)", [person, &hash[..]])?;
    }
    Ok(())
}

/// Uses up a code. False if there is no such code or it was used before.
pub async fn use_up(db: &mut DbConnection, person: PersonId, hash: &[u8; 32], now: UnixTime) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE recovery_codes SET used_at = $3 WHERE person_id = $1 AND code_hash = $2 AND used_at IS NULL",
        [person, &hash[..], now]
    )
}

/// How many codes are left.
pub async fn count_left(db: &mut DbConnection, person: PersonId) -> Result<i64> {
    scalar_one!(db, "SELECT count(*) FROM recovery_codes WHERE person_id = $1 AND used_at IS NULL", [person])
}
