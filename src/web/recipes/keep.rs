//! Saving a form as a recipe of one's own.

use askama::Template;

use super::super::Answer;
use super::super::compose::chosen::{self, Chosen};
use super::super::compose::filled::{Fields, Filled, Job};
use super::super::compose::place;
use super::super::extract::{Context, Form, Me, Path};
use super::super::flash::{self, Flash};
use super::super::page::{PROBLEMS, Page, Section, show, show_with};
use super::sheet::{Sheet, field, read, wish_of};
use super::{address, told};
use crate::auth::Permission;
use crate::domain::GroupId;
use crate::error::AppError;
use crate::jobs::kitchen::Draft;
use crate::recipes::compose::Problem;
use crate::recipes::keep::{Wish, keep};

#[derive(Template)]
#[template(path = "recipes/keep.html")]
struct KeepPage {
    page: Page,
    sheet: Sheet,
    /// The recipe that the form is of.
    base: String,
    /// Groups to publish it to: number, name, and whether it is chosen.
    groups: Vec<(String, String, bool)>,
    /// Whether the script was changed by hand, which no recipe can hold.
    is_by_hand: bool,
    /// Whether several values were to be tried, which no recipe holds.
    is_swept: bool,
}

/// The question what is to be saved, for a form as it is now. Nothing is saved yet.
pub async fn ask(
    context: Context,
    me: Me,
    Path((slug, name)): Path<(String, String)>,
    Form(fields): Form<Fields>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let spot = place::one(&context, &me, &slug).await?;
    let chosen = chosen::find(&context, &me, &name).await?;
    let filled = Filled::read(fields);
    let job = Job::of(&chosen.form, &filled, &spot.place, &[]);
    let wish = wish_of(&chosen.recipe, &chosen.form, Some(&filled.answers));
    let mut page = page(&context, &me, &chosen, (&wish, None), &[]);
    page.is_by_hand = job.edited.is_some_and(|edited| !edited.changes.is_empty());
    page.is_swept = job.composed.sweep.is_some();
    show(&page)
}

/// Saves it.
pub async fn save(context: Context, me: Me, Form(fields): Form<Fields>) -> Answer {
    me.may(Permission::UseClusters)?;
    let (wish, rest) = read(fields);
    if !rest.iter().any(|(name, _)| name == "base") {
        return Err(AppError::BadRequest("a field is missing: base".to_owned()));
    }
    let chosen = chosen::find(&context, &me, field(&rest, "base")).await?;
    let group = match field(&rest, "who") {
        "" | "me" => None,
        number => {
            let id = number.parse().map_err(|_| AppError::BadRequest("no such group".to_owned()));
            Some(GroupId(id?))
        }
    };
    let book = context.app.recipe_files.catalog();
    let problems = match keep(&chosen.recipe, &book.blocks, &wish) {
        Ok(recipe) => {
            let text = recipe.write();
            let draft = Draft { text: &text, note: "" };
            let actor = me.actor(&context);
            match context.app.saved_recipes.save(&actor, draft, group, &book.blocks).await {
                Ok(id) => return Ok(flash::redirect(context, &address(id), Flash::RecipeSaved)),
                Err(error) => vec![Problem { key: "title".to_owned(), sentence: told(error)? }],
            }
        }
        Err(problems) => problems,
    };
    show_with(PROBLEMS, &page(&context, &me, &chosen, (&wish, group), &problems))
}

fn page(
    context: &Context,
    me: &Me,
    chosen: &Chosen,
    (wish, group): (&Wish, Option<GroupId>),
    problems: &[Problem],
) -> KeepPage {
    let groups =
        me.0.memberships.iter().map(|one| {
            (one.group_id.to_string(), one.group_name.clone(), group == Some(one.group_id))
        });
    KeepPage {
        page: Page::for_person(context, &me.0, "Save as a recipe", Section::Jobs),
        sheet: Sheet::of(&chosen.form, wish, problems),
        // The version that is shown here, even if another one is saved meanwhile.
        base: match (chosen.id, chosen.version) {
            (Some(id), Some(version)) => format!("r{id}v{version}"),
            _ => chosen.address.clone(),
        },
        groups: groups.collect(),
        is_by_hand: false,
        is_swept: false,
    }
}
