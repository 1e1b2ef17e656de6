//! Importing a recipe from a file.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::jobs::saved_recipes::RecipeVersionDraft;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::pages::recipes::{recipe_path, save_error_text};

#[derive(Template)]
#[template(path = "recipes/import.html")]
struct ImportRecipePage {
    page: PageFrame,
    file: String,
    error: String,
}

#[derive(Deserialize)]
pub struct ImportRecipeForm {
    file: String,
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    respond(&build_page(&context, &me, String::new(), String::new()))
}

/// Saves it as the person's own.
pub async fn save(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ImportRecipeForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let text = form.file.replace("\r\n", "\n");
    let catalog = context.app.recipe_files.catalog();
    let draft = RecipeVersionDraft { text: &text, note: "" };
    match context.app.saved_recipes.save(&me.actor(&context), draft, None, &catalog.blocks).await {
        Ok(id) => Ok(flash::redirect(context, &recipe_path(id), FlashMessage::RecipeSaved)),
        Err(error) => {
            let error = save_error_text(error)?;
            respond_with(FORM_ERROR_STATUS, &build_page(&context, &me, text, error))
        }
    }
}

fn build_page(context: &RequestContext, me: &CurrentPerson, file: String, error: String) -> ImportRecipePage {
    let page = PageFrame::for_person(context, &me.0, "Import recipe", NavSection::Jobs);
    ImportRecipePage { page, file, error }
}
