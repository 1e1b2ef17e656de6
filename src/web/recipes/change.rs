//! Changing a recipe: each change is a new version, and older ones stay as they are.

use askama::Template;
use serde::Deserialize;

use super::super::Answer;
use super::super::compose::filled::Fields;
use super::super::extract::{Context, Form, Me, Path};
use super::super::flash::{self, Flash};
use super::super::page::{PROBLEMS, Page, Section, show, show_with};
use super::sheet::{Sheet, field, read, wish_of};
use super::{address, find, told, words};
use crate::auth::Permission;
use crate::domain::RecipeId;
use crate::error::AppError;
use crate::jobs::kitchen::{Draft, Kept, whose};
use crate::recipes::compose::Problem;
use crate::recipes::form;
use crate::recipes::keep::keep;
use crate::recipes::recipe::Recipe;

#[derive(Template)]
#[template(path = "recipes/change.html")]
struct ChangePage {
    page: Page,
    kept: Kept,
    /// The version that the changes are made from.
    was: i64,
    /// Its questions; none if the file can no longer be read.
    sheet: Option<Sheet>,
    note: String,
    file: String,
    /// What is wrong with the file.
    file_error: String,
    file_note: String,
}

/// A file, and what is new in it.
#[derive(Deserialize)]
pub struct FileForm {
    file: String,
    was: i64,
    #[serde(default)]
    note: String,
}

/// The form.
pub async fn get(context: Context, me: Me, Path(id): Path<RecipeId>) -> Answer {
    me.may(Permission::UseClusters)?;
    let (kept, version) = find(&context, &me, id).await?;
    me.may(Permission::ChangeRecipe(whose(&kept)))?;
    show(&page(&context, &me, kept, version.text))
}

/// Saves what the form says as a new version.
pub async fn save(
    context: Context,
    me: Me,
    Path(id): Path<RecipeId>,
    Form(fields): Form<Fields>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let (kept, _) = find(&context, &me, id).await?;
    me.may(Permission::ChangeRecipe(whose(&kept)))?;
    let (wish, rest) = read(fields);
    let missing = || AppError::BadRequest("a field is missing: was".to_owned());
    let was: i64 = field(&rest, "was").parse().map_err(|_| missing())?;
    let note = field(&rest, "note").to_owned();
    let found = context.app.saved_recipes.get(&me.0.viewer, id, Some(was)).await?;
    let (_, base) = found.ok_or(AppError::NotFound)?;
    let book = context.app.recipe_files.catalog();
    let recipe = Recipe::read(&base.text, &book.blocks)
        .map_err(|error| AppError::BrokenRecipe(error.problem))?;
    let problems = match keep(&recipe, &book.blocks, &wish) {
        Ok(recipe) => {
            let text = recipe.write();
            let draft = Draft { text: &text, note: &note };
            let actor = me.actor(&context);
            match context.app.saved_recipes.change(&actor, (id, was), draft, &book.blocks).await {
                Ok(_) => {
                    return Ok(flash::redirect(context, &address(id), Flash::RecipeChanged));
                }
                Err(error) => vec![Problem { key: "title".to_owned(), sentence: told(error)? }],
            }
        }
        Err(problems) => problems,
    };
    let form = form::Form::of(&recipe, &book.blocks);
    let mut page = page(&context, &me, kept, base.text);
    page.sheet = Some(Sheet::of(&form, &wish, &problems));
    (page.note, page.was) = (note, was);
    show_with(PROBLEMS, &page)
}

/// Saves a file as a new version.
pub async fn save_file(
    context: Context,
    me: Me,
    Path(id): Path<RecipeId>,
    Form(form): Form<FileForm>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let (kept, version) = find(&context, &me, id).await?;
    me.may(Permission::ChangeRecipe(whose(&kept)))?;
    let text = form.file.replace("\r\n", "\n");
    let book = context.app.recipe_files.catalog();
    let draft = Draft { text: &text, note: &form.note };
    let actor = me.actor(&context);
    match context.app.saved_recipes.change(&actor, (id, form.was), draft, &book.blocks).await {
        Ok(_) => Ok(flash::redirect(context, &address(id), Flash::RecipeChanged)),
        Err(error) => {
            let mut page = page(&context, &me, kept, version.text);
            page.file_error = told(error)?;
            (page.file, page.file_note, page.was) = (text, form.note, form.was);
            show_with(PROBLEMS, &page)
        }
    }
}

fn page(context: &Context, me: &Me, kept: Kept, text: String) -> ChangePage {
    let book = context.app.recipe_files.catalog();
    let title = format!("Change {}", kept.title);
    let (sheet, file_error) = match Recipe::read(&text, &book.blocks) {
        Ok(recipe) => {
            let form = form::Form::of(&recipe, &book.blocks);
            (Some(Sheet::of(&form, &wish_of(&recipe, &form, None), &[])), String::new())
        }
        Err(error) => (None, words(&error)),
    };
    ChangePage {
        page: Page::for_person(context, &me.0, &title, Section::Jobs),
        was: kept.version,
        kept,
        sheet,
        note: String::new(),
        file: text,
        file_error,
        file_note: String::new(),
    }
}
