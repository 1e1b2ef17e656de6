//! *Files* in the navigation: leads to the cluster that someone used last, or says how to begin.

use askama::Template;

use crate::auth::Permission;
use crate::cluster::{ClusterAccount, ConnectionStatus};
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::flash;
use crate::web::http::page_frame::{NavSection, PageFrame, respond};

#[derive(Template)]
#[template(path = "files/start.html")]
struct FilesStartPage {
    page: PageFrame,
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let app = &context.app;
    let person = me.0.person.id;
    let last = store::file_folders::find_last_cluster(&mut *app.store.read().await?, person).await?;
    let accounts = app.cluster_accounts.list(person).await?;
    let usable = || accounts.iter().filter(|account| account.cluster().retired_at().is_none());
    let is_last = |account: &&std::sync::Arc<ClusterAccount>| Some(account.id.cluster) == last;
    let is_up =
        |account: &&std::sync::Arc<ClusterAccount>| matches!(account.status(&app.connections), ConnectionStatus::Up(_));
    let found = usable().find(is_last).or_else(|| usable().find(is_up));
    match found.or_else(|| usable().find(|account| !account.is_hidden)) {
        Some(account) => Ok(flash::see_other(&format!("/files/{}", account.cluster().slug))),
        None => respond(&FilesStartPage { page: PageFrame::for_person(&context, &me.0, "Files", NavSection::Files) }),
    }
}
