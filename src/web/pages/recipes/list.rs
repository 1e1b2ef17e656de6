//! All recipes that someone can use and, for administrators, the files that can't be used.

use std::sync::Arc;

use askama::Template;

use crate::auth::Permission;
use crate::jobs::saved_recipes::SavedRecipeRow;
use crate::recipes::recipe::Recipe;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::recipes::describe_error;

#[derive(Template)]
#[template(path = "recipes/list.html")]
struct RecipeListPage {
    page: PageFrame,
    mine: Vec<SavedRecipeRow>,
    groups: Vec<SavedRecipeRow>,
    /// Recipes of groups that the viewer, an administrator, doesn't belong to.
    others: Vec<SavedRecipeRow>,
    shipped: Vec<Arc<Recipe>>,
    /// Files that can't be used: their names, and why.
    faults: Vec<(String, String)>,
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let (mine, others): (Vec<SavedRecipeRow>, Vec<SavedRecipeRow>) = context
        .app
        .saved_recipes
        .list(&me.0.viewer)
        .await?
        .into_iter()
        .partition(|recipe| recipe.owner() == Some(me.0.person.id));
    let belongs = |recipe: &SavedRecipeRow| recipe.group().is_some_and(|group| me.0.viewer.role_in(group).is_some());
    let (groups, others) = others.into_iter().partition(belongs);
    let catalog = context.app.recipe_files.catalog();
    let faults = if me.may(Permission::SeeRecipeFiles).is_ok() {
        catalog.rejected.iter().map(|fault| (fault.file.clone(), describe_error(&fault.error))).collect()
    } else {
        Vec::new()
    };
    let page = PageFrame::for_person(&context, &me.0, "Recipes", NavSection::Jobs);
    respond(&RecipeListPage { page, mine, groups, others, shipped: catalog.recipes.clone(), faults })
}
