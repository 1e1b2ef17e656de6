//! All clusters, with one's own connections to them.

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Me};
use super::super::page::{Page, Section, show};
use super::panel::idle_words;
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::ConnectionStatus;
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::store;
use crate::store::clusters::Cluster;
use crate::store::connections::{ConnectionKey, ConnectionRow};

#[derive(Template)]
#[template(path = "clusters/list.html")]
struct ListPage {
    page: Page,
    rows: Vec<Row>,
    retired: Vec<Cluster>,
    is_admin: bool,
}

/// The list alone, for a page that is open.
#[derive(Template)]
#[template(path = "clusters/rows.html")]
struct Rows {
    rows: Vec<Row>,
}

/// A cluster and one's connection to it.
struct Row {
    cluster: Cluster,
    kind: &'static str,
    label: &'static str,
    /// As whom.
    user: String,
    since: Option<UnixTime>,
    figures: Option<crate::ssh::ConnectionStats>,
    idle: String,
    /// Why it is not connected, or what went wrong last.
    problem: String,
    offer: Offer,
    /// The connection to the automation host, in a word.
    robot: Option<&'static str>,
}

/// What the list offers to do with a connection.
enum Offer {
    /// Close it.
    Disconnect,
    /// Open it again.
    Reconnect,
    /// Go to its page; the button's words, and whether it is the thing to do.
    Go(&'static str, bool),
}

/// The page.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Permission::UseClusters)?;
    let (rows, retired) = rows(&context, &me).await?;
    if context.is_fragment {
        return show(&Rows { rows });
    }
    let page = Page::for_person(&context, &me.0, "Clusters", Section::Clusters);
    show(&ListPage { page, rows, retired, is_admin: me.may(Permission::ManageClusters).is_ok() })
}

/// Every cluster in use with one's connection, and those out of use.
async fn rows(context: &Context, me: &Me) -> Result<(Vec<Row>, Vec<Cluster>), AppError> {
    let person = me.0.person.id;
    let mut db = context.app.store.read().await?;
    let lines = store::connections::list_for_person(&mut db, person).await?;
    let (retired, used): (Vec<_>, Vec<_>) = store::clusters::list(&mut db)
        .await?
        .into_iter()
        .partition(|cluster| cluster.retired_at().is_some());
    let rows = used
        .into_iter()
        .map(|cluster| {
            let key = |role| ConnectionKey { person, cluster: cluster.id, role };
            let line = |role| lines.iter().find(|line| line.key() == key(role));
            let robot = match context.app.connections.status(key(ConnectionRole::Automation)) {
                ConnectionStatus::Up(_) => Some("Automation host connected"),
                _ => None,
            };
            let status = context.app.connections.status(key(ConnectionRole::Login));
            Row { robot, ..row(status, line(ConnectionRole::Login), cluster) }
        })
        .collect();
    Ok((rows, retired))
}

fn row(status: ConnectionStatus, line: Option<&ConnectionRow>, cluster: Cluster) -> Row {
    let problem = line
        .map(|line| line.problem.lines().next().unwrap_or_default().to_owned())
        .unwrap_or_default();
    let empty = Row {
        user: line.map(|line| line.remote_user.clone()).unwrap_or_default(),
        kind: "neutral",
        label: "Not set up",
        since: None,
        figures: None,
        idle: String::new(),
        problem,
        offer: Offer::Go("Set up", false),
        robot: None,
        cluster,
    };
    if empty.cluster.alarm_at().is_some() {
        let problem = "Its identity has changed. Nothing is sent there until an administrator has looked at it.".into();
        let offer = Offer::Go("Read more", false);
        return Row { kind: "failed", label: "Stopped", problem, offer, ..empty };
    }
    match (status, line) {
        (ConnectionStatus::Up(up), _) => Row {
            kind: "ok",
            label: "Connected",
            since: Some(up.since),
            idle: idle_words(up.figures.idle.as_secs()),
            problem: up.figures.problem.clone().unwrap_or_default(),
            figures: Some(up.figures),
            offer: Offer::Disconnect,
            ..empty
        },
        (ConnectionStatus::Connecting(_), _) => Row {
            kind: "waiting",
            label: "Connecting",
            problem: String::new(),
            offer: Offer::Go("Go on", true),
            ..empty
        },
        (ConnectionStatus::Down, None) => empty,
        (ConnectionStatus::Down, Some(line)) if line.connected_at().is_some() => {
            Row { label: "Not connected", offer: Offer::Reconnect, ..empty }
        }
        (ConnectionStatus::Down, Some(_)) => {
            Row { label: "Not connected", offer: Offer::Go("Go on", true), ..empty }
        }
    }
}
