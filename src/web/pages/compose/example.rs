//! *Try an example*: leads to the form of a training that runs at every site, filled in and ready to submit.

use axum::response::{IntoResponse as _, Redirect};

use crate::auth::Permission;
use crate::error::AppError;
use crate::recipes::catalog::RecipeCatalog;
use crate::recipes::requirements::unmet_requirement;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, QueryParams, RequestContext};
use crate::web::pages::compose::choose_recipe::ChooseRecipeQuery;
use crate::web::pages::compose::compose_target::{self, ComposeTarget};

/// The recipe that people try first. Its defaults answer every question.
const EXAMPLE_RECIPE: &str = "training-example";

/// The form of the example on the cluster that is asked for, or else on the first that is connected.
pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<ChooseRecipeQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let mut targets = compose_target::list_choices(&context, &me, &query.cluster).await?;
    let catalog = context.app.recipe_files.catalog();
    targets.retain(|target| example_path(&catalog, target).is_some());
    let target = match query.cluster.as_str() {
        "" => compose_target::choose(&targets, ""),
        named => Some(targets.iter().find(|target| target.cluster().slug == named).ok_or(AppError::NotFound)?),
    };
    // Without a cluster, the page of recipes says how to get one.
    let to = target.and_then(|target| example_path(&catalog, target)).unwrap_or_else(|| "/compose".to_owned());
    Ok(Redirect::to(&to).into_response())
}

/// The URL of the example's form on a cluster; `None` if an administrator replaced it with a recipe that isn't one, or
/// that doesn't work there.
fn example_path(catalog: &RecipeCatalog, target: &ComposeTarget) -> Option<String> {
    let recipe = catalog.find(EXAMPLE_RECIPE)?;
    let is_usable = unmet_requirement(recipe, &target.compose_context).is_none();
    is_usable.then(|| format!("/compose/{}/{EXAMPLE_RECIPE}", target.cluster().slug))
}

/// The link to the example on a cluster, if it works there.
pub fn example_href(catalog: &RecipeCatalog, target: &ComposeTarget) -> Option<String> {
    example_path(catalog, target).map(|_| format!("/compose/example?cluster={}", target.cluster().slug))
}
