//! Someone's own guest links to files and drop-boxes: what each leads to, how often it was opened, and revoking it.

use askama::Template;
use serde::Deserialize;

use super::{files_url, view_url};
use crate::auth::guest_links::{GuestLink, GuestLinkTarget};
use crate::auth::{AuthError, Permission};
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::domain::{GuestLinkId, RemotePath};
use crate::error::AppError;
use crate::format;
use crate::store::shared_paths::{SharedPath, SharedPathKind};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::http::reveal_once::{self, SecretLinkShownOnce};
use crate::web::pages::dashboards::guest_links::GUEST_LINKS_PATH;

/// The page that lists them.
pub(super) const LINKS_PATH: &str = "/file-links";

#[derive(Template)]
#[template(path = "files/links.html")]
struct FileLinksPage {
    page: PageFrame,
    shown: SecretLinkShownOnce,
    /// Links that work, and those that no longer do.
    open: Vec<FileLinkRow>,
    ended: Vec<FileLinkRow>,
}

struct FileLinkRow {
    link: GuestLink,
    shared: SharedPath,
    /// The path for people, and its page.
    shown_path: String,
    href: String,
    /// Whether guests can reach it now.
    is_reachable: bool,
}

impl FileLinkRow {
    fn new((link, shared): (GuestLink, SharedPath), connections: &ConnectionPool) -> Self {
        let account = ClusterAccountId { person: shared.person_id, cluster: shared.cluster_id };
        let is_reachable = connections.connection(account.connection_key()).is_ok();
        let path = RemotePath::from_encoded(&shared.path).unwrap_or_else(|_| RemotePath::root());
        let href = match shared.kind {
            SharedPathKind::File => view_url(&shared.slug, &path),
            SharedPathKind::Folder | SharedPathKind::DropBox => files_url(&shared.slug, &path),
        };
        Self { link, shared, shown_path: path.to_string(), href, is_reachable }
    }

    /// How full a drop-box is; empty for others.
    fn usage(&self) -> String {
        if self.shared.kind != SharedPathKind::DropBox {
            return String::new();
        }
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let SharedPath { used_files, max_files, used_bytes, max_bytes, .. } = &self.shared;
        let (used, most) = (format::decimal_bytes(count(*used_bytes)), format::decimal_bytes(count(*max_bytes)));
        format!("{used_files} of {}, {used} of {most}", format::count(count(*max_files), "file"))
    }

    const fn kind_name(&self) -> &'static str {
        match self.shared.kind {
            SharedPathKind::File => "File",
            SharedPathKind::Folder => "Folder",
            SharedPathKind::DropBox => "Drop-box",
        }
    }
}

pub async fn list(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let now = context.app.clock.now();
    let links = context.app.auth.list_file_links(&me.0.viewer).await?;
    let rows = links.into_iter().map(|link| FileLinkRow::new(link, &context.app.connections));
    let (open, ended) = rows.partition(|row| row.link.is_open(now));
    let shown = reveal_once::take_pending(&context, &me, LINKS_PATH);
    let has_shown = shown.is_some();
    let page = PageFrame::for_person(&context, &me.0, "Guest links to files", NavSection::Files);
    let page = respond(&FileLinksPage { page, shown: shown.unwrap_or_default(), open, ended })?;
    Ok(if has_shown { reveal_once::clear_cookie(&context, page) } else { page })
}

/// The page that the person came from.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct RevokeFileLinkQuery {
    from: String,
}

/// Revokes a link. One that they may not revoke is treated as missing.
pub async fn revoke(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(link): PathParams<GuestLinkId>,
    QueryParams(query): QueryParams<RevokeFileLinkQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let revoked = context.app.auth.revoke_guest_link(&me.actor(&context), link, GuestLinkTarget::is_to_files).await;
    revoked.map_err(|error| match error {
        AuthError::Denied => AppError::NotFound,
        error => error.into(),
    })?;
    let to = if query.from == "links" { GUEST_LINKS_PATH } else { LINKS_PATH };
    Ok(flash::redirect(context, to, FlashMessage::FileLinkRevoked))
}
