//! Choosing a file or a folder of a cluster, and making a folder: the inside of a dialog, or a plain page. What is shown
//! comes over the person's own connection, after the dialog has opened; no page waits for it.

mod view;

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use self::view::{Pick, Shown, View};
use super::Answer;
use super::clusters::{find, key};
use super::extract::{Context, Form, Me, Path, Query};
use super::flash;
use super::form::shown_again;
use super::page::{PROBLEMS, Page, Section, show_with};
use crate::auth::Permission;
use crate::cluster::folders::{self, FolderError, FolderListing, PathVariables};
use crate::cluster::{ClusterProfile, DiscoveredFacts};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::store;

/// What the dialog wants to see.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Wish {
    /// Which folder; it may begin with a variable such as `$SCRATCH`.
    path: String,
    /// What can be chosen: file, folder or any.
    pick: String,
    /// The field that the choice is for.
    field: String,
    /// Whether the path is what a field holds: a file there stands for its folder, nonsense for the usual start.
    near: bool,
}

/// A folder to be made.
#[derive(Deserialize)]
pub struct NewFolder {
    path: String,
    name: String,
    #[serde(default)]
    pick: String,
    #[serde(default)]
    field: String,
}

#[derive(Template)]
#[template(path = "folders/part.html")]
struct Part {
    view: View,
}

#[derive(Template)]
#[template(path = "folders/page.html")]
struct FoldersPage {
    page: Page,
    view: View,
}

/// Shows a folder.
pub async fn get(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Query(wish): Query<Wish>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let there = There::of(&context, &me, &slug).await?;
    let shown = there.look(&wish.path, wish.near).await;
    let view = there.view(&context, &wish.pick, &wish.field, shown);
    answer(&context, &me, StatusCode::OK, view)
}

/// Makes a folder and shows it.
pub async fn make(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(form): Form<NewFolder>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let there = There::of(&context, &me, &slug).await?;
    let made = match &there.line {
        Ok(line) => folders::create(line, &form.path, &form.name).await,
        Err(error) => Err(error.clone().into()),
    };
    let (path, problem) = match &made {
        Ok(path) => (path, None),
        Err(problem) => (&form.path, Some(problem.to_string())),
    };
    if problem.is_none() && !context.is_fragment {
        let href = view::href(&slug, path, Pick::of(&form.pick), &form.field);
        return Ok(flash::see_other(&href));
    }
    let shown = there.look(path, false).await;
    let mut view = there.view(&context, &form.pick, &form.field, shown);
    let status = if problem.is_some() { PROBLEMS } else { StatusCode::OK };
    view.new_name = problem.as_ref().map(|_| shown_again(&form.name)).unwrap_or_default();
    view.problem = problem.unwrap_or_default();
    answer(&context, &me, status, view)
}

fn answer(context: &Context, me: &Me, status: StatusCode, view: View) -> Answer {
    if context.is_fragment {
        return show_with(status, &Part { view });
    }
    let title = format!("Files on {}", view.title);
    let page = Page::for_person(context, &me.0, &title, Section::Clusters);
    show_with(status, &FoldersPage { page, view })
}

/// Someone on a cluster.
struct There {
    known: ClusterProfile,
    learnt: DiscoveredFacts,
    names: PathVariables,
    line: Result<Arc<ClusterConnection>, RunCommandError>,
}

impl There {
    async fn of(context: &Context, me: &Me, slug: &str) -> Result<Self, AppError> {
        let known = find(&context.app, slug).await?;
        let key = key(me.0.person.id, &known, ConnectionRole::Login);
        let mut db = context.app.store.read().await?;
        let line = store::connections::get(&mut db, key).await?;
        drop(db);
        let learnt: DiscoveredFacts =
            line.and_then(|line| serde_json::from_str(&line.learnt).ok()).unwrap_or_default();
        let names = PathVariables::from_facts(&learnt);
        Ok(Self { known, names, learnt, line: context.app.connections.connection(key) })
    }

    /// Where one begins who has not said where.
    fn start(&self) -> String {
        let first = self.learnt.folders.first().map(|folder| folder.path.clone());
        first.or_else(|| self.learnt.home.clone()).unwrap_or_else(|| "/".to_owned())
    }

    /// What is in a folder, and which one that is.
    async fn look(&self, typed: &str, near: bool) -> Shown {
        let is_vague = near || typed.trim().is_empty();
        let wanted = match self.names.expand(typed) {
            Some(full) => full,
            None if is_vague => self.start(),
            None => return Shown::not(typed, FolderError::NotAPath),
        };
        let first = self.list(&wanted).await;
        let is_elsewhere = |problem: &FolderError| {
            use FolderError::{NotAFolder, NotAPath, NotFound, PermissionDenied};
            matches!(problem, NotAFolder | NotAPath | PermissionDenied | NotFound)
        };
        match first {
            Err(problem) if near && is_elsewhere(&problem) => {
                if let Some(around) = folders::parent_path(&wanted)
                    && let Ok(listing) = self.list(&around).await
                {
                    return Shown::of(listing);
                }
                let start = self.start();
                self.list(&start)
                    .await
                    .map_or_else(|problem| Shown::not(&start, problem), Shown::of)
            }
            Err(problem) => Shown::not(&wanted, problem),
            Ok(listing) => Shown::of(listing),
        }
    }

    async fn list(&self, path: &str) -> Result<FolderListing, FolderError> {
        folders::list(self.line.as_ref().map_err(Clone::clone)?, path).await
    }

    fn view(&self, context: &Context, pick: &str, field: &str, shown: Shown) -> View {
        let pick = Pick::of(pick);
        View::new(
            &self.known.row,
            pick,
            field,
            context.is_fragment,
            &self.learnt,
            &self.names,
            shown,
        )
    }
}
