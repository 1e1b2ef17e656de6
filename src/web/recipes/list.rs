//! All recipes that someone can use, and, for administrators, the files that cannot be used.

use std::sync::Arc;

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Me};
use super::super::page::{Page, Section, show};
use super::words;
use crate::auth::Permission;
use crate::jobs::kitchen::Kept;
use crate::recipes::recipe::Recipe;

#[derive(Template)]
#[template(path = "recipes/list.html")]
struct ListPage {
    page: Page,
    mine: Vec<Kept>,
    groups: Vec<Kept>,
    /// Of groups that the viewer, an administrator, does not belong to.
    others: Vec<Kept>,
    shipped: Vec<Arc<Recipe>>,
    /// Files that cannot be used: their names, and why.
    faults: Vec<(String, String)>,
}

/// The page.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Permission::UseClusters)?;
    let (mine, others): (Vec<Kept>, Vec<Kept>) = context
        .app
        .saved_recipes
        .list(&me.0.viewer)
        .await?
        .into_iter()
        .partition(|kept| kept.owner() == Some(me.0.person.id));
    let belongs =
        |kept: &Kept| kept.group().is_some_and(|group| me.0.viewer.role_in(group).is_some());
    let (groups, others) = others.into_iter().partition(belongs);
    let book = context.app.recipe_files.catalog();
    let faults = if me.may(Permission::SeeRecipeFiles).is_ok() {
        book.faults.iter().map(|fault| (fault.file.clone(), words(&fault.error))).collect()
    } else {
        Vec::new()
    };
    let page = Page::for_person(&context, &me.0, "Recipes", Section::Jobs);
    show(&ListPage { page, mine, groups, others, shipped: book.recipes.clone(), faults })
}
