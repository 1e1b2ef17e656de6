//! The page of a group's use, and the part of it that renews itself.

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Me, Path, Query};
use super::super::page::{Page, Section, show};
use super::super::standing::{self, StandingPart};
use super::ask::Option3;
use super::notes::{Note, notes};
use super::sheet::Html;
use super::{Pairs, Sight, note_names, sight};
use crate::auth::Permission;
use crate::domain::GroupId;
use crate::error::AppError;

#[derive(Template)]
#[template(path = "usage/page.html")]
struct UsePage {
    page: Page,
    group: GroupId,
    name: String,
    may_manage: bool,
    has_accounts: bool,
    filters: Filters,
    part: Part,
    standing: StandingPart,
}

impl UsePage {
    /// Where accounts are chosen.
    fn settings(&self) -> String {
        format!("/groups/{}/accounts", self.group)
    }
}

/// The form above the figures.
struct Filters {
    periods: Vec<Option3>,
    /// For days of one's own choice: the first that can be chosen, the last, and what is chosen.
    days: [String; 4],
    steps: Vec<Option3>,
    measures: Vec<Option3>,
    accounts: Vec<Option3>,
}

/// Everything that changes when something was read.
#[derive(Template)]
#[template(path = "usage/part.html")]
struct Part {
    /// The address of the page.
    base: String,
    /// What is looked at, as a part of an address.
    query: String,
    notes: Vec<Note>,
    sheet: Html,
}

/// It escapes what it shows by itself.
impl askama::filters::HtmlSafe for Part {}

/// The page.
pub async fn get(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = sight(&context, &me, group, pairs).await?;
    note_names(&context, &me, &sight.view).await?;
    let looked = &sight.looked;
    let title = format!("{}: use", sight.group.name);
    show(&UsePage {
        page: Page::for_person(&context, &me.0, &title, Section::Groups),
        group,
        name: sight.group.name.clone(),
        may_manage: me.may(Permission::ManageUsage(group)).is_ok(),
        has_accounts: !sight.view.accounts.is_empty(),
        filters: Filters {
            periods: looked.periods(),
            days: looked.chosen_days(),
            steps: looked.steps(),
            measures: looked.measures(),
            accounts: looked.accounts(&sight.view),
        },
        part: part_of(&context, &sight)?,
        standing: standing::part(&context, &me, &sight.view).await?,
    })
}

/// The part that renews itself.
pub async fn part(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = sight(&context, &me, group, pairs).await?;
    note_names(&context, &me, &sight.view).await?;
    show(&part_of(&context, &sight)?)
}

fn part_of(context: &Context, sight: &Sight) -> Result<Part, AppError> {
    Ok(Part {
        base: super::address(sight.group.id),
        query: sight.looked.query(&[]),
        notes: notes(&sight.view, &sight.figures, &sight.looked),
        sheet: context.app.usage_summaries.get(sight)?,
    })
}
