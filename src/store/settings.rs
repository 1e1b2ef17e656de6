//! Table `settings`: small named values of this installation.

use super::{DbConnection, Result};

pub async fn get(db: &mut DbConnection, name: &str) -> Result<Option<Vec<u8>>> {
    Ok(sqlx::query_scalar("SELECT value FROM settings WHERE name = $1").bind(name).fetch_optional(db).await?)
}

pub async fn set(db: &mut DbConnection, name: &str, value: &[u8]) -> Result<()> {
    sqlx::query(
        "INSERT INTO settings (name, value) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )
    .bind(name)
    .bind(value)
    .execute(db)
    .await?;
    Ok(())
}
