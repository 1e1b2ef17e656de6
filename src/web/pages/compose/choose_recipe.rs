//! New job: the recipes to choose from, and the cluster that the job is for.

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::error::AppError;
use crate::recipes::recipe::{Recipe, RecipeCategory};
use crate::recipes::requirements::unmet_requirement;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, QueryParams, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::example::example_href;

#[derive(Template)]
#[template(path = "compose/choose_recipe.html")]
struct ChooseRecipePage {
    page: PageFrame,
    targets: Vec<ComposeTarget>,
    /// The chosen cluster.
    target: Option<ComposeTarget>,
    /// The link to the example on this cluster; empty if it doesn't work there.
    example: String,
    /// Recipes published to the person's groups.
    groups: Vec<RecipeCard>,
    own: Vec<RecipeCard>,
    run: Vec<RecipeCard>,
    prepare: Vec<RecipeCard>,
    /// Recipes that don't work on this cluster.
    elsewhere: Vec<RecipeCard>,
}

struct RecipeCard {
    href: String,
    title: String,
    summary: String,
    icon: String,
    /// Who published it, and to which group.
    by: String,
    /// Why it can't be used here; empty if it can.
    why_not: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ChooseRecipeQuery {
    pub(super) cluster: String,
}

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<ChooseRecipeQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let targets = compose_target::list_choices(&context, &me, &query.cluster).await?;
    let target = compose_target::choose(&targets, &query.cluster).cloned();
    let (mut run, mut prepare, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    let (mut groups, mut own) = (Vec::new(), Vec::new());
    let mut example = String::new();
    if let Some(target) = &target {
        (groups, own) = load_saved_cards(&context, &me, target).await?;
        let catalog = context.app.recipe_files.catalog();
        example = example_href(&catalog, target).unwrap_or_default();
        for recipe in &catalog.recipes {
            let card = build_card(recipe, &recipe.name, target);
            match (card.why_not.is_empty(), recipe.shelf) {
                (false, _) => elsewhere.push(card),
                (true, RecipeCategory::Run) => run.push(card),
                (true, RecipeCategory::Prepare) => prepare.push(card),
            }
        }
    }
    let page = PageFrame::for_person(&context, &me.0, "New job", NavSection::Jobs);
    respond(&ChooseRecipePage { page, targets, target, example, groups, own, run, prepare, elsewhere })
}

/// Saved recipes: the person's own, and those of their groups.
async fn load_saved_cards(
    context: &RequestContext,
    me: &CurrentPerson,
    target: &ComposeTarget,
) -> Result<(Vec<RecipeCard>, Vec<RecipeCard>), AppError> {
    let (mut groups, mut own) = (Vec::new(), Vec::new());
    let catalog = context.app.recipe_files.catalog();
    for saved in context.app.saved_recipes.list(&me.0.viewer).await? {
        let is_mine = saved.owner() == Some(me.0.person.id);
        let belongs = saved.group().is_some_and(|group| me.0.viewer.role_in(group).is_some());
        if !is_mine && !belongs {
            continue;
        }
        let found = context.app.saved_recipes.get(&me.0.viewer, saved.id, None).await?;
        let Some((_, version)) = found else { continue };
        let mut card = match Recipe::parse(&version.text, &catalog.blocks) {
            Ok(recipe) => build_card(&recipe, &format!("r{}", saved.id), target),
            Err(error) => RecipeCard {
                href: format!("/recipes/{}", saved.id),
                title: saved.title.clone(),
                summary: String::new(),
                icon: "warning".to_owned(),
                by: String::new(),
                why_not: format!("This recipe can't be used. {}", error.problem),
            },
        };
        let owner = saved.owner_name.as_deref().filter(|_| !is_mine);
        card.by = match (saved.group_name.as_deref(), owner) {
            (Some(group), Some(owner)) => format!("{group}, published by {owner}"),
            (Some(group), None) if is_mine => format!("{group}, published by you"),
            (Some(group), None) => group.to_owned(),
            (None, _) => String::new(),
        };
        if belongs { groups.push(card) } else { own.push(card) }
    }
    Ok((groups, own))
}

fn build_card(recipe: &Recipe, address: &str, target: &ComposeTarget) -> RecipeCard {
    let icon = if recipe.icon.is_empty() { "jobs" } else { recipe.icon.as_str() };
    RecipeCard {
        href: format!("/compose/{}/{address}", target.cluster().slug),
        title: recipe.title.clone(),
        summary: recipe.summary.clone(),
        icon: icon.to_owned(),
        by: String::new(),
        why_not: unmet_requirement(recipe, &target.compose_context).unwrap_or_default(),
    }
}
