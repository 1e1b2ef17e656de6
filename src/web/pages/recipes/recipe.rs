//! A recipe's page: what it is, its versions, and the actions available.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::domain::GroupId;
use crate::error::AppError;
use crate::jobs::saved_recipes::{RecipeVersion, SaveRecipeError, SavedRecipeRow, recipe_ownership};
use crate::recipes::form;
use crate::recipes::recipe::Recipe;
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::compose::compose_target;
use crate::web::pages::recipes::{RecipeRequest, describe_error, recipe_path};

#[derive(Template)]
#[template(path = "recipes/recipe.html")]
struct RecipePage {
    page: PageFrame,
    recipe: SavedRecipeRow,
    summary: String,
    /// Why it can't be used; empty if it can.
    problem: String,
    /// The answers that it fixes: question, answer.
    fixed: Vec<(String, String)>,
    versions: Vec<RecipeVersion>,
    file: String,
    /// The clusters that it can be used on: URL, name.
    targets: Vec<(String, String)>,
    is_mine: bool,
    may_change: bool,
    /// Groups that it can be published to: id, name.
    groups: Vec<(GroupId, String)>,
}

#[derive(Deserialize)]
pub struct PublishRecipeForm {
    /// A group's id; empty for nobody but its owner.
    group: String,
}

pub async fn get(request: RecipeRequest) -> HandlerResult {
    let (saved, version) = request.find(None).await?;
    let RecipeRequest { context, me, id } = request;
    let catalog = context.app.recipe_files.catalog();
    let (summary, problem, fixed) = match Recipe::parse(&version.text, &catalog.blocks) {
        Ok(recipe) => {
            let form = form::RecipeQuestionForm::new(&recipe, &catalog.blocks);
            let fixed = form.questions().filter(|question| form.locked.contains(&question.key));
            let fixed = fixed.map(|question| (question.label.clone(), question.default.0.clone())).collect();
            (recipe.summary, String::new(), fixed)
        }
        Err(error) => (String::new(), describe_error(&error), Vec::new()),
    };
    let targets = compose_target::list_choices(&context, &me, "")
        .await?
        .into_iter()
        .map(|target| (format!("/compose/{}/r{id}", target.cluster().slug), target.cluster().title.clone()));
    let may_publish = |group| me.may(Permission::PublishRecipe(recipe_ownership(&saved), group)).is_ok();
    let groups = me.0.memberships.iter();
    let groups =
        groups.filter(|membership| saved.group() != Some(membership.group_id) && may_publish(membership.group_id));
    respond(&RecipePage {
        page: PageFrame::for_person(&context, &me.0, &saved.title, NavSection::Jobs),
        summary,
        problem,
        fixed,
        versions: context.app.saved_recipes.versions(id).await?,
        file: version.text,
        targets: targets.collect(),
        is_mine: saved.owner() == Some(me.0.person.id),
        may_change: me.may(Permission::ChangeRecipe(recipe_ownership(&saved))).is_ok(),
        groups: groups.map(|membership| (membership.group_id, membership.group_name.clone())).collect(),
        recipe: saved,
    })
}

/// Publishes it to a group, or unpublishes it.
pub async fn publish(request: RecipeRequest, FormBody(form): FormBody<PublishRecipeForm>) -> HandlerResult {
    let RecipeRequest { context, me, id } = request;
    me.may(Permission::UseClusters)?;
    let actor = me.actor(&context);
    if form.group.is_empty() {
        context.app.saved_recipes.withdraw(&actor, id).await.map_err(to_app_error)?;
        // Someone who unpublished it may no longer be able to see it.
        let is_seen = context.app.saved_recipes.get(&me.0.viewer, id, None).await?.is_some();
        let to = if is_seen { recipe_path(id) } else { "/recipes".to_owned() };
        return Ok(flash::redirect(context, &to, FlashMessage::RecipeWithdrawn));
    }
    let group = form.group.parse().map_err(|_| AppError::BadRequest("no such group".to_owned()))?;
    context.app.saved_recipes.publish(&actor, id, GroupId(group)).await.map_err(to_app_error)?;
    Ok(flash::redirect(context, &recipe_path(id), FlashMessage::RecipePublished))
}

pub async fn delete(RecipeRequest { context, me, id }: RecipeRequest) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    context.app.saved_recipes.delete(&me.actor(&context), id).await.map_err(to_app_error)?;
    Ok(flash::redirect(context, "/recipes", FlashMessage::RecipeDeleted))
}

fn to_app_error(error: SaveRecipeError) -> AppError {
    match error {
        SaveRecipeError::Auth(error) => error.into(),
        SaveRecipeError::Store(error) => error.into(),
        other => AppError::Internal(other.to_string()),
    }
}
