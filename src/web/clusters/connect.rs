//! Connecting: the user name, the try, its questions and answers, the end.

use axum::response::Response;
use secrecy::SecretString;
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path, Query};
use super::super::flash::{self, Flash};
use super::{address, find, key, way_in};
use crate::auth::Permission;
use crate::auth::activity::{ActivityDetails, ActivityEvent, record};
use crate::cluster::{ClusterProfile, ConnectPurpose, ConnectStartError, ConnectionStatus};
use crate::domain::{ConnectionRole, RemoteUser};
use crate::error::AppError;
use crate::ssh::login::LoginAttendance;
use crate::store;

/// The user name on the cluster.
#[derive(Deserialize)]
pub struct UserForm {
    user: String,
}

/// An answer to the server's question.
#[derive(Deserialize)]
pub struct AnswerForm {
    number: u32,
    answer: SecretString,
    #[serde(default)]
    purpose: String,
    seen: Option<String>,
}

/// Which try is meant.
#[derive(Deserialize)]
pub struct PurposeForm {
    #[serde(default)]
    purpose: String,
    seen: Option<String>,
}

/// What the page shows already.
#[derive(Deserialize)]
pub struct Seen {
    seen: Option<String>,
}

/// The panel alone, for a page that is open.
pub async fn panel(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Query(seen): Query<Seen>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    way_in::changes(&context, &me, &known, seen.seen.as_deref()).await
}

/// Notes the user name. Under another name it is another connection: the old one is closed.
pub async fn user(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(form): Form<UserForm>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let user: RemoteUser = match form.user.parse() {
        Ok(user) => user,
        Err(problem) => {
            return way_in::with_problem(&context, &me, &known, &form.user, problem.0).await;
        }
    };
    let app = &context.app;
    let mut tx = app.store.write().await?;
    let mut renamed = Vec::new();
    for role in [ConnectionRole::Login, ConnectionRole::Automation] {
        let key = key(me.0.person.id, &known, role);
        let before = store::connections::get(&mut tx, key).await?;
        store::connections::save_user(&mut tx, key, &user, app.clock.now()).await?;
        if before.is_some_and(|before| before.remote_user != user.as_str()) {
            renamed.push(key);
        }
    }
    let about = ActivityDetails {
        subject: &known.row.slug,
        detail: user.as_str(),
        ..ActivityDetails::default()
    };
    record(&mut tx, &me.actor(&context), ActivityEvent::UserNamed, about, app.clock.now()).await?;
    store::commit(tx).await?;
    // After the commit: a try that begins now reads the new name.
    for key in renamed {
        app.connections.close_connection(key).await;
    }
    Ok(flash::see_other(&address(&slug)))
}

/// Begins to connect.
pub async fn connect(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(seen): Form<Seen>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, ConnectionRole::Login);
    let begun =
        context.app.connections.connect(key, me.actor(&context), LoginAttendance::Attended).await;
    after(context, &me, &known, begun, seen.seen).await
}

/// Begins to test the new key.
pub async fn test_key(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(seen): Form<Seen>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, ConnectionRole::Login);
    let begun = context.app.connections.test_new_key(key, me.actor(&context)).await;
    after(context, &me, &known, begun, seen.seen).await
}

/// Passes an answer on to the server.
pub async fn answer(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(form): Form<AnswerForm>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, ConnectionRole::Login);
    let attempt = match purpose(&form.purpose) {
        ConnectPurpose::TestNewKey => context.app.connections.running_key_test(key),
        ConnectPurpose::Connect => match context.app.connections.status(key) {
            ConnectionStatus::Connecting(attempt) => Some(attempt),
            _ => None,
        },
    };
    if let Some(attempt) = attempt {
        // A question that is gone needs no answer; the panel shows what is asked now.
        attempt.answer(form.number, form.answer).await;
    }
    panel_or_page(&context, &me, &known, form.seen).await
}

/// Gives a try up.
pub async fn give_up(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(form): Form<PurposeForm>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, ConnectionRole::Login);
    let purpose = purpose(&form.purpose);
    context.app.connections.cancel_attempt(key, purpose).await;
    // A test that was given up has shown nothing about the key.
    let seen = form.seen.filter(|_| purpose == ConnectPurpose::Connect);
    panel_or_page(&context, &me, &known, seen).await
}

/// Closes the connection.
pub async fn disconnect(context: Context, me: Me, Path(slug): Path<String>) -> Answer {
    me.may(Permission::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, ConnectionRole::Login);
    context.app.connections.disconnect(key, &me.actor(&context), &slug).await?;
    Ok(flash::redirect(context, &address(&slug), Flash::Disconnected))
}

fn purpose(word: &str) -> ConnectPurpose {
    if word == "test" { ConnectPurpose::TestNewKey } else { ConnectPurpose::Connect }
}

/// What follows a try that was begun, or was not.
async fn after(
    context: Context,
    me: &Me,
    known: &ClusterProfile,
    begun: Result<(), ConnectStartError>,
    seen: Option<String>,
) -> Answer {
    match begun {
        Ok(()) => panel_or_page(&context, me, known, seen).await,
        Err(error) => refusal(context, &address(&known.row.slug), error),
    }
}

/// Why a try was not begun, on the page.
pub(super) fn refusal(
    context: Context,
    page: &str,
    error: ConnectStartError,
) -> Result<Response, AppError> {
    let flash = match error {
        ConnectStartError::NoRemoteUser => Flash::NoUserName,
        ConnectStartError::NoKey => Flash::NoKey,
        ConnectStartError::ClusterClosed => Flash::ClusterClosed,
        ConnectStartError::TooManyAttempts => Flash::TooManyConnects,
        ConnectStartError::Auth(error) => return Err(error.into()),
        ConnectStartError::Store(error) => return Err(error.into()),
    };
    Ok(flash::redirect(context, page, flash))
}

async fn panel_or_page(
    context: &Context,
    me: &Me,
    known: &ClusterProfile,
    seen: Option<String>,
) -> Answer {
    if context.is_fragment {
        return way_in::changes(context, me, known, seen.as_deref()).await;
    }
    Ok(flash::see_other(&address(&known.row.slug)))
}
