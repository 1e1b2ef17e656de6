//! Unattended work through a centre's automation host: what to request, the restricted key line, and a test.

use std::net::IpAddr;
use std::sync::Arc;

use askama::Template;
use axum::http::header;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use crate::auth::Permission;
use crate::cluster::automation_wrapper;
use crate::cluster::{ClusterAccountId, ClusterProfile, ConnectionStatus, DiscoveredFacts};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::sites::automation;
use crate::ssh::login::LoginAttendance;
use crate::store;
use crate::store::keys::SshKey;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::clusters::{connect, connection_key, find_cluster};

/// The wrapper's default path, relative to the home folder.
const WRAPPER_NAME: &str = "portolan-commands";

/// What the key line is built from.
#[derive(Deserialize)]
pub struct AutomationQuery {
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
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    QueryParams(wishes): QueryParams<AutomationQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let robot = known.site.automation.clone().ok_or(AppError::NotFound)?;
    let mut db = context.app.store.read().await?;
    let robot_key = connection_key(me.0.person.id, &known, ConnectionRole::Automation);
    let line = store::connections::get(&mut db, robot_key).await?;
    let id = ClusterAccountId { person: me.0.person.id, cluster: known.row.id };
    let login = context.app.cluster_accounts.get_with(&mut db, id).await?;
    let keys = store::keys::list_for_person(&mut db, me.0.person.id).await?;
    drop(db);
    let own = keys.into_iter().find(|key| key.role() == ConnectionRole::Automation);
    let seen = login.map(|account| account.discovered.clone());
    let address = wishes.address.unwrap_or_else(|| {
        seen.as_ref().and_then(|learnt| learnt.our_address).map(|address| address.to_string()).unwrap_or_default()
    });
    let home = seen.as_ref().and_then(|learnt| learnt.home.clone());
    let our_command = home.map_or_else(|| WRAPPER_NAME.to_owned(), |home| format!("{home}/{WRAPPER_NAME}"));
    let command = wishes.command.unwrap_or(our_command);
    let addresses: Vec<IpAddr> = address.split([',', ' ']).filter_map(|part| part.trim().parse().ok()).collect();
    let key_line = match &own {
        Some(key) => {
            automation::authorized_keys_line(&addresses, &command, &key.public_line).map_err(|error| error.to_string())
        }
        None => Err("First make the key.".to_owned()),
    };
    let user = line.as_ref().map(|line| line.remote_user.clone()).unwrap_or_default();
    let request = automation::access_request_letter(
        &known.site,
        &automation::AutomationRequestLetter {
            person: &me.0.person.display_name,
            user_name: &user,
            portal: &context.app.config.portal.public_url.to_string(),
            addresses: &addresses,
            command: &command,
        },
    );
    let test = match (context.app.connections.status(robot_key), &line) {
        (ConnectionStatus::Connecting(_), _) => AutomationTestResult::Running,
        (ConnectionStatus::Up(_), Some(line)) => {
            let facts = context.app.cluster_accounts.discovered(line).unwrap_or_default();
            let missing = dedup_keep_last(&facts.missing);
            AutomationTestResult::Works(facts, missing)
        }
        (_, Some(line)) if !line.problem.is_none() => AutomationTestResult::Fails(
            [&line.problem.words, &line.problem.notices]
                .into_iter()
                .flat_map(|text| text.lines())
                .filter(|line| !line.is_empty())
                .map(str::to_owned)
                .collect(),
        ),
        _ => AutomationTestResult::None,
    };
    respond(&AutomationSetupPage {
        page: PageFrame::for_person(&context, &me.0, "Unattended work", NavSection::Clusters),
        has_host_key: !known.host_keys(crate::cluster::cluster_profile::hops::AUTOMATION).is_empty(),
        test,
        is_admin: me.may(Permission::ManageClusters).is_ok(),
        key: own,
        key_line,
        request: request.unwrap_or_default(),
        user,
        address,
        command,
        automation: robot,
        profile: known,
    })
}

/// Several commands may give the same advice: show it once, after all of them.
fn dedup_keep_last(sentences: &[String]) -> Vec<String> {
    let is_last = |index: usize| !sentences[index + 1..].contains(&sentences[index]);
    (0..sentences.len()).filter(|&index| is_last(index)).map(|at| sentences[at].clone()).collect()
}

/// Installs the forced command in the person's home folder, over their own connection.
pub async fn install_wrapper(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let line = context.app.connections.connection(connection_key(me.0.person.id, &known, ConnectionRole::Login));
    let done = match line {
        Ok(line) => automation_wrapper::install(&line).await.unwrap_or(false),
        Err(_) => false,
    };
    let flash = if done { FlashMessage::WrapperInstalled } else { FlashMessage::WrapperNotInstalled };
    Ok(flash::redirect(context, &format!("/clusters/{slug}/automation"), flash))
}

/// Starts a test. It never prompts: if the server asks a question, the test fails.
pub async fn start_test(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let page = format!("/clusters/{slug}/automation");
    let key = connection_key(me.0.person.id, &known, ConnectionRole::Automation);
    match context.app.connections.connect(key, me.actor(&context), LoginAttendance::Unattended).await {
        Ok(()) => Ok(flash::see_other(&format!("{page}#test-title"))),
        Err(error) => connect::redirect_with_refusal(context, &page, error),
    }
}

/// Closes the connection to the automation host.
pub async fn disconnect(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let key = connection_key(me.0.person.id, &known, ConnectionRole::Automation);
    context.app.connections.disconnect(key, &me.actor(&context), &slug).await?;
    Ok(flash::redirect(context, &format!("/clusters/{slug}/automation"), FlashMessage::Disconnected))
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
