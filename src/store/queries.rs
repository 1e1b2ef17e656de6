//! A statement run with its values, which are bound in order: `fetch_all!(db, "SELECT … WHERE a = $1", [a])`, or
//! `execute!(db, "INSERT …", row.{a, b})` for fields of a struct. Each macro gives a [`Result`](super::Result).
//! `fetch_…` reads rows, `scalar_…` a single column.

macro_rules! execute {
    ($($call:tt)*) => { run_query!(query, execute, $($call)*).map(|_| ()) };
}

macro_rules! affected_rows {
    ($($call:tt)*) => { run_query!(query, execute, $($call)*).map(|done| done.rows_affected()) };
}

/// Whether the statement changed a row.
macro_rules! affects_row {
    ($($call:tt)*) => { affected_rows!($($call)*).map(|rows| rows == 1) };
}

macro_rules! fetch_one {
    ($($call:tt)*) => { run_query!(query_as, fetch_one, $($call)*) };
}

macro_rules! fetch_optional {
    ($($call:tt)*) => { run_query!(query_as, fetch_optional, $($call)*) };
}

macro_rules! fetch_all {
    ($($call:tt)*) => { run_query!(query_as, fetch_all, $($call)*) };
}

macro_rules! scalar_one {
    ($($call:tt)*) => { run_query!(query_scalar, fetch_one, $($call)*) };
}

macro_rules! scalar_optional {
    ($($call:tt)*) => { run_query!(query_scalar, fetch_optional, $($call)*) };
}

macro_rules! scalar_all {
    ($($call:tt)*) => { run_query!(query_scalar, fetch_all, $($call)*) };
}

macro_rules! run_query {
    ($query:ident, $method:ident, $db:expr, $sql:expr
     $(, [$($value:expr),+ $(,)?])? $(, $row:ident.{$($field:ident),+})? $(,)?) => {
        sqlx::$query($sql)$($(.bind($value))+)?$($(.bind(&$row.$field))+)?
            .$method(&mut *$db)
            .await
            .map_err($crate::store::StoreError::from)
    };
}
