//! A recipe from a file.

use askama::Template;
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Form, Me};
use super::super::flash::{self, Flash};
use super::super::page::{PROBLEMS, Page, Section, show, show_with};
use super::{address, told};
use crate::auth::Permission;
use crate::jobs::kitchen::Draft;

#[derive(Template)]
#[template(path = "recipes/import.html")]
struct ImportPage {
    page: Page,
    file: String,
    error: String,
}

/// A recipe's file.
#[derive(Deserialize)]
pub struct FileForm {
    file: String,
}

/// The page.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Permission::UseClusters)?;
    show(&page(&context, &me, String::new(), String::new()))
}

/// Saves it as one's own.
pub async fn save(context: Context, me: Me, Form(form): Form<FileForm>) -> Answer {
    me.may(Permission::UseClusters)?;
    let text = form.file.replace("\r\n", "\n");
    let book = context.app.recipe_files.catalog();
    let draft = Draft { text: &text, note: "" };
    match context.app.saved_recipes.save(&me.actor(&context), draft, None, &book.blocks).await {
        Ok(id) => Ok(flash::redirect(context, &address(id), Flash::RecipeSaved)),
        Err(error) => {
            let error = told(error)?;
            show_with(PROBLEMS, &page(&context, &me, text, error))
        }
    }
}

fn page(context: &Context, me: &Me, file: String, error: String) -> ImportPage {
    let page = Page::for_person(context, &me.0, "Import a recipe", Section::Jobs);
    ImportPage { page, file, error }
}
