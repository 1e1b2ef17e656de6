//! A recipe's own page: what it is, its versions, and what one may do with it.

use askama::Template;
use serde::Deserialize;

use super::super::Answer;
use super::super::compose::place;
use super::super::extract::{Context, Form, Me, Path};
use super::super::flash::{self, Flash};
use super::super::page::{Page, Section, show};
use super::{address, find, words};
use crate::auth::Permission;
use crate::domain::{GroupId, RecipeId};
use crate::error::AppError;
use crate::jobs::kitchen::{Kept, NotKept, RecipeVersion, whose};
use crate::recipes::form;
use crate::recipes::recipe::Recipe;

#[derive(Template)]
#[template(path = "recipes/recipe.html")]
struct RecipePage {
    page: Page,
    kept: Kept,
    summary: String,
    /// Why it cannot be used; empty: it can.
    problem: String,
    /// What it fixes: question, answer.
    fixed: Vec<(String, String)>,
    versions: Vec<RecipeVersion>,
    file: String,
    /// Where it is used: address, name of the cluster.
    places: Vec<(String, String)>,
    is_mine: bool,
    may_change: bool,
    /// Groups that it can be published to: number, name.
    groups: Vec<(GroupId, String)>,
}

/// Who may use it.
#[derive(Deserialize)]
pub struct PublishForm {
    /// A group's number; empty: nobody but its owner.
    group: String,
}

/// The page.
pub async fn get(context: Context, me: Me, Path(id): Path<RecipeId>) -> Answer {
    me.may(Permission::UseClusters)?;
    let (kept, version) = find(&context, &me, id).await?;
    let book = context.app.recipe_files.catalog();
    let (summary, problem, fixed) = match Recipe::read(&version.text, &book.blocks) {
        Ok(recipe) => {
            let form = form::Form::of(&recipe, &book.blocks);
            let fixed = form.questions().filter(|one| form.locked.contains(&one.key));
            let fixed = fixed.map(|one| (one.label.clone(), one.default.0.clone())).collect();
            (recipe.summary, String::new(), fixed)
        }
        Err(error) => (String::new(), words(&error), Vec::new()),
    };
    let places = place::all(&context, &me)
        .await?
        .into_iter()
        .map(|spot| (format!("/compose/{}/r{id}", spot.cluster.slug), spot.cluster.title.clone()));
    let may_publish = |group| me.may(Permission::PublishRecipe(whose(&kept), group)).is_ok();
    let groups = me.0.memberships.iter();
    let groups =
        groups.filter(|one| kept.group() != Some(one.group_id) && may_publish(one.group_id));
    show(&RecipePage {
        page: Page::for_person(&context, &me.0, &kept.title, Section::Jobs),
        summary,
        problem,
        fixed,
        versions: context.app.saved_recipes.versions(id).await?,
        file: version.text,
        places: places.collect(),
        is_mine: kept.owner() == Some(me.0.person.id),
        may_change: me.may(Permission::ChangeRecipe(whose(&kept))).is_ok(),
        groups: groups.map(|one| (one.group_id, one.group_name.clone())).collect(),
        kept,
    })
}

/// Publishes it to a group, or takes it back.
pub async fn publish(
    context: Context,
    me: Me,
    Path(id): Path<RecipeId>,
    Form(form): Form<PublishForm>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let actor = me.actor(&context);
    if form.group.is_empty() {
        context.app.saved_recipes.withdraw(&actor, id).await.map_err(fault)?;
        // Whoever took it back from its group may not see it any more.
        let is_seen = context.app.saved_recipes.get(&me.0.viewer, id, None).await?.is_some();
        let to = if is_seen { address(id) } else { "/recipes".to_owned() };
        return Ok(flash::redirect(context, &to, Flash::RecipeWithdrawn));
    }
    let group = form.group.parse().map_err(|_| AppError::BadRequest("no such group".to_owned()))?;
    context.app.saved_recipes.publish(&actor, id, GroupId(group)).await.map_err(fault)?;
    Ok(flash::redirect(context, &address(id), Flash::RecipePublished))
}

/// Deletes it.
pub async fn delete(context: Context, me: Me, Path(id): Path<RecipeId>) -> Answer {
    me.may(Permission::UseClusters)?;
    context.app.saved_recipes.delete(&me.actor(&context), id).await.map_err(fault)?;
    Ok(flash::redirect(context, "/recipes", Flash::RecipeDeleted))
}

fn fault(error: NotKept) -> AppError {
    match error {
        NotKept::Auth(error) => error.into(),
        NotKept::Store(error) => error.into(),
        other => AppError::Internal(other.to_string()),
    }
}
