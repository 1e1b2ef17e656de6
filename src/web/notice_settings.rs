//! What one is told, and where: on the pages, in this browser, and at an address of one's own.

use askama::Template;
use axum::http::StatusCode;

use super::Answer;
use super::extract::{Context, Form, Me};
use super::flash::{self, Flash};
use super::form::Problems;
use super::notices::{TOASTS, wanted};
use super::once::{self, Shown};
use super::page::{PROBLEMS, Page, Section, show_with};
use crate::auth::Permission;
use crate::error::AppError;
use crate::jobs::tidings::Kind;
use crate::jobs::webhook::{SetError, Standing};
use crate::store;

const HERE: &str = "/account/notices";

#[derive(Template)]
#[template(path = "account/notices.html")]
struct SettingsPage {
    page: Page,
    toasts: Vec<(&'static str, &'static str, bool)>,
    sends: Vec<(&'static str, &'static str, bool)>,
    webhook: Option<Standing>,
    address_hint: String,
    /// Shown once.
    secret: String,
    tested: Option<Tested>,
    problems: Problems,
}

/// What came of a test message.
struct Tested {
    kind: &'static str,
    title: &'static str,
    text: String,
}

impl SettingsPage {
    /// Two forms on the page have the same choices.
    fn send_scope(word: &str) -> String {
        format!("send-{word}-")
    }
}

/// What a form or a test left behind.
#[derive(Default)]
struct State {
    secret: String,
    tested: Option<Tested>,
    problems: Problems,
    /// What was chosen in a form that has problems.
    sends: Option<Vec<Kind>>,
}

/// The page.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let Some(shown) = once::waiting(&context, &me, HERE) else {
        return settings(&context, &me, State::default()).await;
    };
    let state = State { secret: shown.link, ..State::default() };
    let page = settings(&context, &me, state).await?;
    Ok(once::spend(&context, page))
}

async fn settings(context: &Context, me: &Me, state: State) -> Answer {
    let person = me.0.person.id;
    let webhook = context.app.webhooks.standing(person).await.map_err(our_fault)?;
    let mut db = context.app.store.read().await?;
    let toasts = wanted(&mut db, person).await?;
    drop(db);
    let choices = |chosen: &[Kind]| {
        Kind::CHOICES
            .iter()
            .map(|(kind, label)| (kind.word(), *label, chosen.contains(kind)))
            .collect()
    };
    let usual = [Kind::Ended, Kind::Never];
    let sends = state.sends.or_else(|| webhook.as_ref().map(|hook| hook.kinds.clone()));
    let status = if state.problems.is_empty() { StatusCode::OK } else { PROBLEMS };
    let address_hint = match &webhook {
        None => "Begins with https://".to_owned(),
        Some(hook) => format!(
            "Leave it empty to keep the one at {}. A new one gets a new signing secret.",
            hook.host
        ),
    };
    let page = SettingsPage {
        page: Page::for_person(context, &me.0, "Notices", Section::Account),
        toasts: choices(&toasts),
        sends: choices(sends.as_deref().unwrap_or(&usual)),
        webhook,
        address_hint,
        secret: state.secret,
        tested: state.tested,
        problems: state.problems,
    };
    show_with(status, &page)
}

fn kinds(fields: &[(String, String)]) -> Vec<Kind> {
    let words = fields.iter().filter(|(name, _)| name == "kind").map(|(_, value)| value.as_str());
    Kind::list(&words.collect::<Vec<_>>().join(","))
}

/// Remembers what is to be shown as toasts.
pub async fn choose(context: Context, me: Me, Form(fields): Form<Vec<(String, String)>>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let chosen = Kind::words(kinds(&fields).into_iter());
    let mut tx = context.app.store.write().await?;
    store::queues::set_preference(&mut tx, me.0.person.id, TOASTS, &chosen).await?;
    store::commit(tx).await?;
    Ok(flash::redirect(context, HERE, Flash::NoticesChosen))
}

/// Sets the address, or changes what is sent there.
pub async fn set_webhook(
    context: Context,
    me: Me,
    Form(fields): Form<Vec<(String, String)>>,
) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let address = fields.iter().find(|(name, _)| name == "address").map_or("", |(_, value)| value);
    let chosen = kinds(&fields);
    let done =
        context.app.webhooks.set(&me.actor(&context), me.0.person.id, address, &chosen).await;
    match done {
        Ok(Some(secret)) => {
            let shown = Shown { link: secret.to_string(), label: String::new() };
            once::redirect(context, &me, HERE, &shown)
        }
        Ok(None) => Ok(flash::redirect(context, HERE, Flash::WebhookSet)),
        Err(SetError::Auth(error)) => Err(error.into()),
        Err(error) => {
            let state = State {
                problems: Problems::one("address", error),
                sends: Some(chosen),
                ..State::default()
            };
            settings(&context, &me, state).await
        }
    }
}

/// Sends a test message and says what came of it.
pub async fn test_webhook(context: Context, me: Me) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let tested = match context.app.webhooks.test(me.0.person.id).await {
        Ok(Ok(())) => Tested {
            kind: "ok",
            title: "The test message was accepted",
            text: "Look for it where it was sent to.".into(),
        },
        Ok(Err(failure)) => Tested {
            kind: "warning",
            title: "The test message did not arrive",
            text: failure.to_string(),
        },
        Err(error) => return Err(our_fault(error)),
    };
    settings(&context, &me, State { tested: Some(tested), ..State::default() }).await
}

/// Makes a new secret and shows it once.
pub async fn renew_secret(context: Context, me: Me) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let renewed = context.app.webhooks.renew_secret(&me.actor(&context), me.0.person.id).await;
    let shown = Shown { link: renewed.map_err(our_fault)?.to_string(), label: String::new() };
    once::redirect(context, &me, HERE, &shown)
}

/// Removes the address.
pub async fn remove_webhook(context: Context, me: Me) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    let removed = context.app.webhooks.remove(&me.actor(&context), me.0.person.id).await;
    removed.map_err(our_fault)?;
    Ok(flash::redirect(context, HERE, Flash::WebhookRemoved))
}

/// One that is not there is not found; the rest is a fault of ours.
fn our_fault(error: SetError) -> AppError {
    match error {
        SetError::Missing => AppError::NotFound,
        SetError::Auth(error) => error.into(),
        SetError::Address(error) => AppError::Internal(error.to_string()),
    }
}
