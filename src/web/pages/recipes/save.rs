//! Saving a form as a recipe of your own.

use askama::Template;

use crate::auth::Permission;
use crate::domain::GroupId;
use crate::error::AppError;
use crate::jobs::saved_recipes::RecipeVersionDraft;
use crate::recipes::compose::ComposeProblem;
use crate::recipes::overrides::{RecipeOverrides, build_recipe};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::pages::compose::form_values::FormFields;
use crate::web::pages::compose::job_draft::ComposeRequest;
use crate::web::pages::compose::recipe_lookup::{self, ChosenRecipe};
use crate::web::pages::recipes::editor::{RecipeEditor, field_value, overrides_from_form, parse_fields};
use crate::web::pages::recipes::{recipe_path, save_error_text};

#[derive(Template)]
#[template(path = "recipes/save.html")]
struct SaveRecipePage {
    page: PageFrame,
    editor: RecipeEditor,
    /// The recipe that the form belongs to.
    base: String,
    /// Groups to publish it to: id, name, and whether it is selected.
    groups: Vec<(String, String, bool)>,
    /// Whether the script was edited by hand, which no recipe can hold.
    is_by_hand: bool,
    /// Whether the form has a sweep, which no recipe can hold.
    is_swept: bool,
}

/// Asks how to save the current form. Nothing is saved yet.
pub async fn show_form(request: ComposeRequest) -> HandlerResult {
    let (context, me, draft) = request.into_draft().await?;
    let (job, chosen) = (draft.compose(), draft.chosen);
    let mut overrides = overrides_from_form(&chosen.recipe, &chosen.form, Some(&draft.values.answers));
    // With the name of the recipe it comes from, nobody could tell the two apart.
    overrides.title.clear();
    let mut page = build_page(&context, &me, &chosen, (&overrides, None), &[]);
    page.is_by_hand = job.edited.is_some_and(|edited| !edited.changes.is_empty());
    page.is_swept = job.sweep.is_some();
    respond(&page)
}

pub async fn save(context: RequestContext, me: CurrentPerson, FormBody(fields): FormBody<FormFields>) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let (overrides, rest) = parse_fields(fields);
    if !rest.iter().any(|(name, _)| name == "base") {
        return Err(AppError::BadRequest("a field is missing: base".to_owned()));
    }
    let chosen = recipe_lookup::find_recipe(&context, &me, field_value(&rest, "base")).await?;
    let group = match field_value(&rest, "who") {
        "" | "me" => None,
        number => {
            let id = number.parse().map_err(|_| AppError::BadRequest("no such group".to_owned()));
            Some(GroupId(id?))
        }
    };
    let catalog = context.app.recipe_files.catalog();
    let problems = match build_recipe(&chosen.recipe, &catalog.blocks, &overrides) {
        Ok(recipe) => {
            let text = recipe.to_toml();
            let draft = RecipeVersionDraft { text: &text, note: "" };
            let actor = me.actor(&context);
            match context.app.saved_recipes.save(&actor, draft, group, &catalog.blocks).await {
                Ok(id) => {
                    return Ok(flash::redirect(context, &recipe_path(id), FlashMessage::RecipeSaved));
                }
                Err(error) => vec![ComposeProblem { key: "title".to_owned(), sentence: save_error_text(error)? }],
            }
        }
        Err(problems) => problems,
    };
    respond_with(FORM_ERROR_STATUS, &build_page(&context, &me, &chosen, (&overrides, group), &problems))
}

fn build_page(
    context: &RequestContext,
    me: &CurrentPerson,
    chosen: &ChosenRecipe,
    (overrides, group): (&RecipeOverrides, Option<GroupId>),
    problems: &[ComposeProblem],
) -> SaveRecipePage {
    let groups = me.0.memberships.iter().map(|membership| {
        (membership.group_id.to_string(), membership.group_name.clone(), group == Some(membership.group_id))
    });
    SaveRecipePage {
        page: PageFrame::for_person(context, &me.0, "Save as recipe", NavSection::Jobs),
        editor: RecipeEditor::new(&chosen.form, overrides, problems),
        // Keep the version that is shown here, even if another one is saved meanwhile.
        base: match (chosen.id, chosen.version) {
            (Some(id), Some(version)) => format!("r{id}v{version}"),
            _ => chosen.address.clone(),
        },
        groups: groups.collect(),
        is_by_hand: false,
        is_swept: false,
    }
}
