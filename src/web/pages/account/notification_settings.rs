//! Notification settings: which notifications someone gets on the pages, in this browser and through a webhook.

use askama::Template;
use axum::http::StatusCode;

use crate::auth::Permission;
use crate::error::AppError;
use crate::jobs::notification_digest::NotificationKind;
use crate::jobs::webhook::{WebhookError, WebhookStatus};
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::http::reveal_once::{self, SecretShownOnce};
use crate::web::pages::notifications::{TOASTS_PREFERENCE, load_toast_kinds};

const PAGE_PATH: &str = "/account/notifications";

#[derive(Template)]
#[template(path = "account/notifications.html")]
struct NotificationSettingsPage {
    page: PageFrame,
    toasts: Vec<(&'static str, &'static str, bool)>,
    sends: Vec<(&'static str, &'static str, bool)>,
    webhook: Option<WebhookStatus>,
    address_hint: String,
    secret: String,
    tested: Option<WebhookTestResult>,
    problems: FormErrors,
}

struct WebhookTestResult {
    kind: &'static str,
    title: &'static str,
    text: String,
}

impl NotificationSettingsPage {
    /// Keeps element IDs unique: two forms on the page have the same options.
    fn send_scope(word: &str) -> String {
        format!("send-{word}-")
    }
}

/// What a submitted form or a test leaves to show.
#[derive(Default)]
struct NotificationFormState {
    secret: String,
    tested: Option<WebhookTestResult>,
    problems: FormErrors,
    /// What was ticked in a form that has problems.
    sends: Option<Vec<NotificationKind>>,
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let Some(shown) = reveal_once::take_pending(&context, &me, PAGE_PATH) else {
        return render_settings(&context, &me, NotificationFormState::default()).await;
    };
    let state = NotificationFormState { secret: shown.link, ..NotificationFormState::default() };
    let page = render_settings(&context, &me, state).await?;
    Ok(reveal_once::clear_cookie(&context, page))
}

async fn render_settings(context: &RequestContext, me: &CurrentPerson, state: NotificationFormState) -> HandlerResult {
    let person = me.0.person.id;
    let webhook = context.app.webhooks.status(person).await.map_err(to_app_error)?;
    let mut db = context.app.store.read().await?;
    let toasts = load_toast_kinds(&mut db, person).await?;
    drop(db);
    let choices = |chosen: &[NotificationKind]| {
        NotificationKind::CHOICES.iter().map(|(kind, label)| (kind.as_str(), *label, chosen.contains(kind))).collect()
    };
    let usual = [NotificationKind::Ended, NotificationKind::NeverStarts];
    let sends = state.sends.or_else(|| webhook.as_ref().map(|hook| hook.kinds.clone()));
    let status = if state.problems.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let address_hint = match &webhook {
        None => "Begins with https://".to_owned(),
        Some(hook) => format!("Leave it empty to keep the one at {}. A new one gets a new signing secret.", hook.host),
    };
    let page = NotificationSettingsPage {
        page: PageFrame::for_person(context, &me.0, "Notices", NavSection::Account),
        toasts: choices(&toasts),
        sends: choices(sends.as_deref().unwrap_or(&usual)),
        webhook,
        address_hint,
        secret: state.secret,
        tested: state.tested,
        problems: state.problems,
    };
    respond_with(status, &page)
}

fn parse_kinds(fields: &[(String, String)]) -> Vec<NotificationKind> {
    let words = fields.iter().filter(|(name, _)| name == "kind").map(|(_, value)| value.as_str());
    NotificationKind::parse_list(&words.collect::<Vec<_>>().join(","))
}

/// Saves which notifications appear as toasts.
pub async fn save_toast_kinds(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(fields): FormBody<Vec<(String, String)>>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let chosen = NotificationKind::format_list(parse_kinds(&fields).into_iter());
    let mut tx = context.app.store.write().await?;
    store::queues::set_preference(&mut tx, me.0.person.id, TOASTS_PREFERENCE, &chosen).await?;
    store::commit(tx).await?;
    Ok(flash::redirect(context, PAGE_PATH, FlashMessage::NotificationsSaved))
}

/// Sets the webhook's address, or changes what is sent to it.
pub async fn set_webhook(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(fields): FormBody<Vec<(String, String)>>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let address = fields.iter().find(|(name, _)| name == "address").map_or("", |(_, value)| value);
    let chosen = parse_kinds(&fields);
    let done = context.app.webhooks.set(&me.actor(&context), me.0.person.id, address, &chosen).await;
    match done {
        Ok(Some(secret)) => {
            let shown = SecretShownOnce { link: secret.to_string(), label: String::new() };
            reveal_once::redirect(context, &me, PAGE_PATH, &shown)
        }
        Ok(None) => Ok(flash::redirect(context, PAGE_PATH, FlashMessage::WebhookSet)),
        Err(WebhookError::Auth(error)) => Err(error.into()),
        Err(error) => {
            let state = NotificationFormState {
                problems: FormErrors::single("address", error),
                sends: Some(chosen),
                ..NotificationFormState::default()
            };
            render_settings(&context, &me, state).await
        }
    }
}

/// Sends a test message and shows the result.
pub async fn test_webhook(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let tested = match context.app.webhooks.test(me.0.person.id).await {
        Ok(Ok(())) => WebhookTestResult {
            kind: "ok",
            title: "The test message was accepted",
            text: "Look for it where it was sent to.".into(),
        },
        Ok(Err(failure)) => {
            WebhookTestResult { kind: "warning", title: "The test message did not arrive", text: failure.to_string() }
        }
        Err(error) => return Err(to_app_error(error)),
    };
    render_settings(&context, &me, NotificationFormState { tested: Some(tested), ..NotificationFormState::default() })
        .await
}

/// Creates a new secret and shows it once.
pub async fn renew_secret(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let renewed = context.app.webhooks.renew_secret(&me.actor(&context), me.0.person.id).await;
    let shown = SecretShownOnce { link: renewed.map_err(to_app_error)?.to_string(), label: String::new() };
    reveal_once::redirect(context, &me, PAGE_PATH, &shown)
}

pub async fn remove_webhook(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let removed = context.app.webhooks.remove(&me.actor(&context), me.0.person.id).await;
    removed.map_err(to_app_error)?;
    Ok(flash::redirect(context, PAGE_PATH, FlashMessage::WebhookRemoved))
}

/// A missing webhook is a 404; everything else is an internal error.
fn to_app_error(error: WebhookError) -> AppError {
    match error {
        WebhookError::Missing => AppError::NotFound,
        WebhookError::Auth(error) => error.into(),
        WebhookError::Address(error) => AppError::Internal(error.to_string()),
    }
}
