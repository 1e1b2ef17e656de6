//! What a group used, as people see it: the page with its chart and tables, the jobs behind a figure, the same as files
//! for other programs, and what those who lead the group decide. Everything is added up in `crate::usage`.

mod ask;
mod burn;
mod chart;
pub mod csv;
mod grant;
mod job;
pub mod jobs;
mod notes;
pub mod page;
mod rows;
mod search;
pub mod settings;
mod sheet;
mod words;

use std::sync::Arc;

use ask::{Ask, Looked};
pub use sheet::Sheets;
pub use words::exact;

use super::extract::{Context, Me};
use crate::auth::Permission;
use crate::domain::GroupId;
use crate::error::AppError;
use crate::store;
use crate::store::allocations::Allocation;
use crate::store::groups::Group;
use crate::usage::View;
use crate::usage::figures::Figures;

/// What came after `?`, in any order and as often as someone likes.
pub type Pairs = Vec<(String, String)>;

/// What is looked at.
pub struct Sight {
    group: Group,
    view: View,
    allocations: Vec<Allocation>,
    looked: Looked,
    figures: Arc<Figures>,
}

/// A group's page of use.
fn address(group: GroupId) -> String {
    format!("/groups/{group}/use")
}

/// The group, what is known of its use, and what of it was asked for.
async fn sight(
    context: &Context,
    me: &Me,
    group: GroupId,
    pairs: Pairs,
) -> Result<(Sight, Ask), AppError> {
    let mut db = context.app.store.read().await?;
    let found = store::groups::get(&mut db, group).await?.ok_or(AppError::NotFound)?;
    let allocations = store::allocations::list_for_group(&mut db, group).await?;
    drop(db);
    let view = context.app.usage.look(&me.0.viewer, group).await?;
    let ask = Ask::of(pairs);
    let looked = Looked::of(&ask, &view, &allocations, context.app.clock.now());
    let figures = context.app.usage.figures(&view, &looked.choice);
    Ok((Sight { group: found, view, allocations, looked, figures }, ask))
}

/// Records that names were looked at, if there are any to be seen.
pub async fn note_names(context: &Context, me: &Me, view: &View) -> Result<(), AppError> {
    if me.may(Permission::SeePeoplesUsage(view.group)).is_ok() && !view.accounts.is_empty() {
        context.app.usage.note_seen(&me.actor(context), view.group, None).await?;
    }
    Ok(())
}
