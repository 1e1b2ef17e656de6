//! Connecting: the user name, the try, its questions and answers, the end.

use axum::response::Response;
use secrecy::SecretString;
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path, Query};
use super::super::flash::{self, Flash};
use super::{address, find, key, way_in};
use crate::auth::Action;
use crate::auth::activity::{About, Event, record};
use crate::cluster::{Known, NotBegun, Purpose, Status};
use crate::domain::{LineRole, RemoteUser};
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
    me.may(Action::UseClusters)?;
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
    me.may(Action::UseClusters)?;
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
    for role in [LineRole::Login, LineRole::Robot] {
        let key = key(me.0.person.id, &known, role);
        let before = store::lines::get(&mut tx, key).await?;
        store::lines::put(&mut tx, key, &user, app.clock.now()).await?;
        if before.is_some_and(|before| before.remote_user != user.as_str()) {
            renamed.push(key);
        }
    }
    let about = About { subject: &known.row.slug, detail: user.as_str(), ..About::default() };
    record(&mut tx, &me.actor(&context), Event::UserNamed, about, app.clock.now()).await?;
    store::commit(tx).await?;
    // After the commit: a try that begins now reads the new name.
    for key in renamed {
        app.lines.close_line(key).await;
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
    me.may(Action::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, LineRole::Login);
    let begun = context.app.lines.connect(key, me.actor(&context), LoginAttendance::Attended).await;
    after(context, &me, &known, begun, seen.seen).await
}

/// Begins to test the new key.
pub async fn test_key(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(seen): Form<Seen>,
) -> Answer {
    me.may(Action::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, LineRole::Login);
    let begun = context.app.lines.test_new_key(key, me.actor(&context)).await;
    after(context, &me, &known, begun, seen.seen).await
}

/// Passes an answer on to the server.
pub async fn answer(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(form): Form<AnswerForm>,
) -> Answer {
    me.may(Action::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, LineRole::Login);
    let attempt = match purpose(&form.purpose) {
        Purpose::TestNewKey => context.app.lines.test_of(key),
        Purpose::Connect => match context.app.lines.status(key) {
            Status::Opening(attempt) => Some(attempt),
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
    me.may(Action::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, LineRole::Login);
    let purpose = purpose(&form.purpose);
    context.app.lines.give_up(key, purpose).await;
    // A test that was given up has shown nothing about the key.
    let seen = form.seen.filter(|_| purpose == Purpose::Connect);
    panel_or_page(&context, &me, &known, seen).await
}

/// Closes the connection.
pub async fn disconnect(context: Context, me: Me, Path(slug): Path<String>) -> Answer {
    me.may(Action::UseClusters)?;
    let known = find(&context.app, &slug).await?;
    let key = key(me.0.person.id, &known, LineRole::Login);
    context.app.lines.disconnect(key, &me.actor(&context), &slug).await?;
    Ok(flash::redirect(context, &address(&slug), Flash::Disconnected))
}

fn purpose(word: &str) -> Purpose {
    if word == "test" { Purpose::TestNewKey } else { Purpose::Connect }
}

/// What follows a try that was begun, or was not.
async fn after(
    context: Context,
    me: &Me,
    known: &Known,
    begun: Result<(), NotBegun>,
    seen: Option<String>,
) -> Answer {
    match begun {
        Ok(()) => panel_or_page(&context, me, known, seen).await,
        Err(error) => refusal(context, &address(&known.row.slug), error),
    }
}

/// Why a try was not begun, on the page.
pub(super) fn refusal(context: Context, page: &str, error: NotBegun) -> Result<Response, AppError> {
    let flash = match error {
        NotBegun::NoUser => Flash::NoUserName,
        NotBegun::NoKey => Flash::NoKey,
        NotBegun::Closed => Flash::ClusterClosed,
        NotBegun::TooOften => Flash::TooManyConnects,
        NotBegun::Auth(error) => return Err(error.into()),
        NotBegun::Store(error) => return Err(error.into()),
    };
    Ok(flash::redirect(context, page, flash))
}

async fn panel_or_page(context: &Context, me: &Me, known: &Known, seen: Option<String>) -> Answer {
    if context.is_fragment {
        return way_in::changes(context, me, known, seen.as_deref()).await;
    }
    Ok(flash::see_other(&address(&known.row.slug)))
}
