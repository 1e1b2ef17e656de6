//! New job: the recipes to choose from, and the cluster that the job is for.

use askama::Template;
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Me, Query};
use super::super::page::{Page, Section, show};
use super::place::{self, Spot};
use crate::auth::Permission;
use crate::error::AppError;
use crate::recipes::fits::why_not;
use crate::recipes::recipe::{Recipe, Shelf};

#[derive(Template)]
#[template(path = "compose/cards.html")]
struct Cards {
    page: Page,
    spots: Vec<Spot>,
    /// The one that is chosen.
    spot: Option<Spot>,
    /// Recipes that are published to the person's groups.
    groups: Vec<Card>,
    /// The person's own.
    own: Vec<Card>,
    run: Vec<Card>,
    prepare: Vec<Card>,
    /// Recipes that do not fit at this cluster.
    elsewhere: Vec<Card>,
}

struct Card {
    href: String,
    title: String,
    summary: String,
    icon: String,
    /// Who published it, and where.
    by: String,
    /// Why it cannot be used here; empty: it can.
    why_not: String,
}

/// Which cluster.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Ask {
    cluster: String,
}

/// The page.
pub async fn get(context: Context, me: Me, Query(ask): Query<Ask>) -> Answer {
    me.may(Permission::UseClusters)?;
    let spots = place::all(&context, &me).await?;
    let wanted = spots.iter().find(|spot| spot.cluster.slug == ask.cluster);
    let spot = wanted.or(spots.first()).cloned();
    let (mut run, mut prepare, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    let (mut groups, mut own) = (Vec::new(), Vec::new());
    if let Some(spot) = &spot {
        (groups, own) = kept(&context, &me, spot).await?;
        let book = context.app.recipe_files.catalog();
        for recipe in &book.recipes {
            let card = card(recipe, &recipe.name, spot);
            match (card.why_not.is_empty(), recipe.shelf) {
                (false, _) => elsewhere.push(card),
                (true, Shelf::Run) => run.push(card),
                (true, Shelf::Prepare) => prepare.push(card),
            }
        }
    }
    let page = Page::for_person(&context, &me.0, "New job", Section::Jobs);
    show(&Cards { page, spots, spot, groups, own, run, prepare, elsewhere })
}

/// Recipes that people keep: those of the person's groups, and their own.
async fn kept(context: &Context, me: &Me, spot: &Spot) -> Result<(Vec<Card>, Vec<Card>), AppError> {
    let (mut groups, mut own) = (Vec::new(), Vec::new());
    let book = context.app.recipe_files.catalog();
    for one in context.app.saved_recipes.list(&me.0.viewer).await? {
        let is_mine = one.owner() == Some(me.0.person.id);
        let belongs = one.group().is_some_and(|group| me.0.viewer.role_in(group).is_some());
        if !is_mine && !belongs {
            continue;
        }
        let found = context.app.saved_recipes.get(&me.0.viewer, one.id, None).await?;
        let Some((_, version)) = found else { continue };
        let mut card = match Recipe::read(&version.text, &book.blocks) {
            Ok(recipe) => card(&recipe, &format!("r{}", one.id), spot),
            Err(error) => Card {
                href: format!("/recipes/{}", one.id),
                title: one.title.clone(),
                summary: String::new(),
                icon: "warning".to_owned(),
                by: String::new(),
                why_not: format!("It can no longer be used. {}", error.problem),
            },
        };
        let owner = one.owner_name.as_deref().filter(|_| !is_mine);
        card.by = match (one.group_name.as_deref(), owner) {
            (Some(group), Some(owner)) => format!("{group}, published by {owner}"),
            (Some(group), None) if is_mine => format!("{group}, published by you"),
            (Some(group), None) => group.to_owned(),
            (None, _) => String::new(),
        };
        if belongs { groups.push(card) } else { own.push(card) }
    }
    Ok((groups, own))
}

fn card(recipe: &Recipe, address: &str, spot: &Spot) -> Card {
    let icon = if recipe.icon.is_empty() { "jobs" } else { recipe.icon.as_str() };
    Card {
        href: format!("/compose/{}/{address}", spot.cluster.slug),
        title: recipe.title.clone(),
        summary: recipe.summary.clone(),
        icon: icon.to_owned(),
        by: String::new(),
        why_not: why_not(recipe, &spot.place).unwrap_or_default(),
    }
}
