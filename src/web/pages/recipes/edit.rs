//! Editing a recipe: each change is a new version, and older versions stay as they are.

use askama::Template;
use serde::Deserialize;

use crate::error::AppError;
use crate::jobs::saved_recipes::{RecipeVersionDraft, SavedRecipeRow};
use crate::recipes::compose::ComposeProblem;
use crate::recipes::form;
use crate::recipes::overrides::build_recipe;
use crate::recipes::recipe::Recipe;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::pages::compose::form_values::FormFields;
use crate::web::pages::recipes::editor::{RecipeEditor, field_value, overrides_from_form, parse_fields};
use crate::web::pages::recipes::{RecipeRequest, describe_error, recipe_path, save_error_text};

#[derive(Template)]
#[template(path = "recipes/edit.html")]
struct EditRecipePage {
    page: PageFrame,
    recipe: SavedRecipeRow,
    /// The version that is being edited.
    was: i64,
    /// Its questions; `None` if the file can no longer be parsed.
    editor: Option<RecipeEditor>,
    note: String,
    file: String,
    file_error: String,
    file_note: String,
}

/// A file, and a note on what changed.
#[derive(Deserialize)]
pub struct RecipeTextForm {
    file: String,
    was: i64,
    #[serde(default)]
    note: String,
}

pub async fn get(request: RecipeRequest) -> HandlerResult {
    let (recipe, version) = request.find_to_change().await?;
    respond(&build_page(&request.context, &request.me, recipe, version.text))
}

/// Saves the form as a new version.
pub async fn save(request: RecipeRequest, FormBody(fields): FormBody<FormFields>) -> HandlerResult {
    let (saved, _) = request.find_to_change().await?;
    let (overrides, rest) = parse_fields(fields);
    let missing = || AppError::BadRequest("a field is missing: was".to_owned());
    let was: i64 = field_value(&rest, "was").parse().map_err(|_| missing())?;
    let note = field_value(&rest, "note").to_owned();
    let (_, base) = request.find(Some(was)).await?;
    let RecipeRequest { context, me, id } = request;
    let catalog = context.app.recipe_files.catalog();
    let recipe = Recipe::parse(&base.text, &catalog.blocks).map_err(|error| AppError::BrokenRecipe(error.problem))?;
    let problems = match build_recipe(&recipe, &catalog.blocks, &overrides) {
        Ok(recipe) => {
            let text = recipe.to_toml();
            let draft = RecipeVersionDraft { text: &text, note: &note };
            let actor = me.actor(&context);
            match context.app.saved_recipes.update(&actor, (id, was), draft, &catalog.blocks).await {
                Ok(_) => {
                    return Ok(flash::redirect(context, &recipe_path(id), FlashMessage::RecipeChanged));
                }
                Err(error) => vec![ComposeProblem { key: "title".to_owned(), sentence: save_error_text(error)? }],
            }
        }
        Err(problems) => problems,
    };
    let form = form::RecipeQuestionForm::new(&recipe, &catalog.blocks);
    let mut page = build_page(&context, &me, saved, base.text);
    page.editor = Some(RecipeEditor::new(&form, &overrides, &problems));
    (page.note, page.was) = (note, was);
    respond_with(FORM_ERROR_STATUS, &page)
}

/// Saves a file as a new version.
pub async fn save_file(request: RecipeRequest, FormBody(form): FormBody<RecipeTextForm>) -> HandlerResult {
    let (recipe, version) = request.find_to_change().await?;
    let RecipeRequest { context, me, id } = request;
    let text = form.file.replace("\r\n", "\n");
    let catalog = context.app.recipe_files.catalog();
    let draft = RecipeVersionDraft { text: &text, note: &form.note };
    let actor = me.actor(&context);
    match context.app.saved_recipes.update(&actor, (id, form.was), draft, &catalog.blocks).await {
        Ok(_) => Ok(flash::redirect(context, &recipe_path(id), FlashMessage::RecipeChanged)),
        Err(error) => {
            let mut page = build_page(&context, &me, recipe, version.text);
            page.file_error = save_error_text(error)?;
            (page.file, page.file_note, page.was) = (text, form.note, form.was);
            respond_with(FORM_ERROR_STATUS, &page)
        }
    }
}

fn build_page(context: &RequestContext, me: &CurrentPerson, saved: SavedRecipeRow, text: String) -> EditRecipePage {
    let catalog = context.app.recipe_files.catalog();
    let title = format!("Edit {}", saved.title);
    let (editor, file_error) = match Recipe::parse(&text, &catalog.blocks) {
        Ok(recipe) => {
            let form = form::RecipeQuestionForm::new(&recipe, &catalog.blocks);
            (Some(RecipeEditor::new(&form, &overrides_from_form(&recipe, &form, None), &[])), String::new())
        }
        Err(error) => (None, describe_error(&error)),
    };
    EditRecipePage {
        page: PageFrame::for_person(context, &me.0, &title, NavSection::Jobs),
        was: saved.version,
        recipe: saved,
        editor,
        note: String::new(),
        file: text,
        file_error,
        file_note: String::new(),
    }
}
