//! Table `settings`: small named values of this installation.

use super::{DbConnection, Result};

pub async fn get(db: &mut DbConnection, name: &str) -> Result<Option<Vec<u8>>> {
    scalar_optional!(db, "SELECT value FROM settings WHERE name = $1", [name])
}

pub async fn set(db: &mut DbConnection, name: &str, value: &[u8]) -> Result<()> {
    execute!(
        db,
        "INSERT INTO settings (name, value) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [name, value]
    )
}
