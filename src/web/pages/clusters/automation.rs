//! Unattended work through a centre's automation host: what to request, the restricted key line, and a test.

use std::net::IpAddr;
use std::sync::Arc;

use askama::Template;
use axum::http::header;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use crate::auth::Permission;
use crate::cluster::automation_wrapper;
use crate::cluster::{ClusterProfile, ConnectionStatus, DiscoveredFacts};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::sites::automation;
use crate::ssh::login::LoginAttendance;
use crate::store;
use crate::store::keys::SshKey;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, QueryParams};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::clusters::{ClusterRequest, UncheckedClusterRequest, connect};

/// The wrapper's default path, relative to the home folder.
const WRAPPER_NAME: &str = "portolan-commands";

/// What the key line is built from.
#[derive(Deserialize)]
pub struct AutomationKeyQuery {
    address: Option<String>,
    command: Option<String>,
}

#[derive(Template)]
#[template(path = "clusters/automation.html")]
struct AutomationSetupPage {
    page: PageFrame,
    profile: Arc<ClusterProfile>,
    automation: crate::sites::SiteAutomationHosts,
    user: String,
    key: Option<SshKey>,
    address: String,
    command: String,
    /// The line for the centre's key page, or why there is none yet.
    key_line: Result<String, String>,
    request: String,
    has_host_key: bool,
    test: AutomationTestResult,
    is_admin: bool,
}

/// The result of the last test.
enum AutomationTestResult {
    None,
    Running,
    /// It works: what was discovered, and what does not work, one sentence each.
    Works(Arc<DiscoveredFacts>, Vec<String>),
    /// It failed, one sentence each.
    Fails(Vec<String>),
}

impl AutomationSetupPage {
    const fn works(&self) -> bool {
        matches!(self.test, AutomationTestResult::Works(..))
    }

    const fn is_untested(&self) -> bool {
        matches!(self.test, AutomationTestResult::None)
    }

    /// How a step is drawn: done, next or later. Only the centre knows whether the line is registered and access was
    /// granted, so those two steps count as done once a test has worked.
    const fn state_of(&self, step: u8) -> &'static str {
        let now = match () {
            () if self.works() => 6,
            () if self.user.is_empty() => 1,
            () if self.key.is_none() => 2,
            // Anyone who has run a test is past the preparations.
            () if !self.is_untested() => 5,
            () => 3,
        };
        match step {
            step if step < now => "done",
            step if step == now => "next",
            _ => "later",
        }
    }
}

pub async fn get(
    unchecked: UncheckedClusterRequest,
    QueryParams(query): QueryParams<AutomationKeyQuery>,
) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let ClusterRequest { context, me, cluster } = &request;
    let automation = cluster.site.automation.clone().ok_or(AppError::NotFound)?;
    let mut db = context.app.store.read().await?;
    let connection = store::connections::get(&mut db, request.automation_key()).await?;
    let login = context.app.cluster_accounts.get_with(&mut db, request.account_id()).await?;
    let keys = store::keys::list_for_person(&mut db, me.0.person.id).await?;
    drop(db);
    let key = keys.into_iter().find(|key| key.role() == ConnectionRole::Automation);
    let facts = login.map(|account| account.discovered.clone()).unwrap_or_default();
    let our_address = || facts.our_address.map(|address| address.to_string()).unwrap_or_default();
    let address = query.address.unwrap_or_else(our_address);
    let our_command = match &facts.home {
        Some(home) => format!("{home}/{WRAPPER_NAME}"),
        None => WRAPPER_NAME.to_owned(),
    };
    let command = query.command.unwrap_or(our_command);
    let addresses: Vec<IpAddr> = address.split([',', ' ']).filter_map(|part| part.trim().parse().ok()).collect();
    let key_line = match &key {
        Some(key) => {
            automation::authorized_keys_line(&addresses, &command, &key.public_line).map_err(|error| error.to_string())
        }
        None => Err("Create the automation key first.".to_owned()),
    };
    let user = connection.as_ref().map(|connection| connection.remote_user.clone()).unwrap_or_default();
    let letter = automation::AutomationRequestLetter {
        person: &me.0.person.display_name,
        user_name: &user,
        portal: &context.app.config.portal.public_url.to_string(),
        addresses: &addresses,
        command: &command,
    };
    let letter = automation::access_request_letter(&cluster.site, &letter).unwrap_or_default();
    let test = match (context.app.connections.status(request.automation_key()), &connection) {
        (ConnectionStatus::Connecting(_), _) => AutomationTestResult::Running,
        (ConnectionStatus::Up(_), Some(connection)) => {
            let facts = context.app.cluster_accounts.discovered(connection).unwrap_or_default();
            let missing = dedup_keep_last(&facts.missing);
            AutomationTestResult::Works(facts, missing)
        }
        (_, Some(connection)) if !connection.problem.is_none() => AutomationTestResult::Fails(
            [&connection.problem.words, &connection.problem.notices]
                .into_iter()
                .flat_map(|text| text.lines())
                .filter(|line| !line.is_empty())
                .map(str::to_owned)
                .collect(),
        ),
        _ => AutomationTestResult::None,
    };
    respond(&AutomationSetupPage {
        page: PageFrame::for_person(context, &me.0, "Automation", NavSection::Clusters),
        has_host_key: !cluster.host_keys(crate::cluster::cluster_profile::hops::AUTOMATION).is_empty(),
        test,
        is_admin: me.may(Permission::ManageClusters).is_ok(),
        key,
        key_line,
        request: letter,
        user,
        address,
        command,
        automation,
        profile: cluster.clone(),
    })
}

/// Several commands may give the same advice: show it once, after all of them.
fn dedup_keep_last(sentences: &[String]) -> Vec<String> {
    let is_last = |index: usize| !sentences[index + 1..].contains(&sentences[index]);
    (0..sentences.len()).filter(|&index| is_last(index)).map(|at| sentences[at].clone()).collect()
}

/// Installs the forced command in the person's home folder, over their own connection.
pub async fn install_wrapper(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let is_installed = match request.context.app.connections.connection(request.login_key()) {
        Ok(connection) => automation_wrapper::install(&connection).await.unwrap_or(false),
        Err(_) => false,
    };
    let message = if is_installed { FlashMessage::WrapperInstalled } else { FlashMessage::WrapperNotInstalled };
    Ok(request.redirect("/automation", message))
}

/// Starts a test. It never prompts: if the server asks a question, the test fails.
pub async fn start_test(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let connections = &request.context.app.connections;
    match connections.connect(request.automation_key(), request.actor(), LoginAttendance::Unattended).await {
        Ok(()) => Ok(flash::see_other(&request.path("/automation#test-title"))),
        Err(error) => connect::redirect_with_refusal(request, "/automation", error),
    }
}

/// Closes the connection to the automation host.
pub async fn disconnect(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let connections = &request.context.app.connections;
    connections.disconnect(request.automation_key(), &request.actor(), &request.cluster.row.title).await?;
    Ok(request.redirect("/automation", FlashMessage::Disconnected))
}

/// The forced command, for people who read or install it themselves.
pub async fn download_wrapper(me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"portolan-commands\""),
    ];
    Ok((headers, automation::WRAPPER_SCRIPT).into_response())
}
