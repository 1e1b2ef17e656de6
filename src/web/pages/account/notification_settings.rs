//! Notification settings: which notifications someone gets on the pages, in this browser and through a webhook.

use askama::Template;

use crate::auth::Permission;
use crate::error::AppError;
use crate::jobs::notification_digest::NotificationKind;
use crate::jobs::webhook::{SaveWebhookError, WebhookStatus};
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::http::reveal_once::{self, SecretLinkShownOnce};
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

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let mut page = load_page(&context, &me).await?;
    let Some(pending) = reveal_once::take_pending(&context, &me, PAGE_PATH) else { return respond(&page) };
    page.secret = pending.link;
    Ok(reveal_once::clear_cookie(&context, respond(&page)?))
}

async fn load_page(context: &RequestContext, me: &CurrentPerson) -> Result<NotificationSettingsPage, AppError> {
    let person = me.0.person.id;
    let webhook = context.app.webhooks.status(person).await?;
    let mut db = context.app.store.read().await?;
    let toasts = load_toast_kinds(&mut db, person).await?;
    drop(db);
    let default_sends = [NotificationKind::Ended, NotificationKind::NeverStarts];
    let address_hint = match &webhook {
        None => "Starts with https://".to_owned(),
        Some(hook) => format!(
            "Leave empty to keep the current address at {}. A new address gets a new signing secret.",
            hook.host
        ),
    };
    Ok(NotificationSettingsPage {
        page: PageFrame::for_person(context, &me.0, "Notification settings", NavSection::Account),
        toasts: kind_choices(NotificationKind::CHOICES, &toasts),
        sends: kind_choices(
            NotificationKind::WEBHOOK_CHOICES,
            webhook.as_ref().map_or(&default_sends[..], |hook| &hook.kinds),
        ),
        webhook,
        address_hint,
        secret: String::new(),
        tested: None,
        problems: FormErrors::default(),
    })
}

/// Every kind with its label, and whether it is chosen.
fn kind_choices(
    choices: &[(NotificationKind, &'static str)],
    chosen: &[NotificationKind],
) -> Vec<(&'static str, &'static str, bool)> {
    choices.iter().map(|(kind, label)| (kind.as_str(), *label, chosen.contains(kind))).collect()
}

fn parse_kinds(fields: &[(String, String)]) -> Vec<NotificationKind> {
    let kinds = fields.iter().filter(|(name, _)| name == "kind").map(|(_, value)| value.as_str());
    NotificationKind::parse_list(&kinds.collect::<Vec<_>>().join(","))
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
    match context.app.webhooks.set(&me.actor(&context), me.0.person.id, address, &chosen).await {
        Ok(Some(secret)) => reveal_secret(context, &me, secret.to_string()),
        Ok(None) => Ok(flash::redirect(context, PAGE_PATH, FlashMessage::WebhookSet)),
        Err(SaveWebhookError::Auth(error)) => Err(error.into()),
        Err(error) => {
            let mut page = load_page(&context, &me).await?;
            page.problems = FormErrors::single("address", error);
            page.sends = kind_choices(NotificationKind::WEBHOOK_CHOICES, &chosen);
            respond_with(FORM_ERROR_STATUS, &page)
        }
    }
}

/// Sends a test message and shows the result.
pub async fn test_webhook(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let tested = match context.app.webhooks.test(me.0.person.id).await {
        Ok(Ok(())) => WebhookTestResult {
            kind: "ok",
            title: "Test message sent",
            text: "Check that it arrived in your chat or program.".into(),
        },
        Ok(Err(failure)) => {
            WebhookTestResult { kind: "warning", title: "The test message couldn't be sent", text: failure.to_string() }
        }
        Err(error) => return Err(error.into()),
    };
    respond(&NotificationSettingsPage { tested: Some(tested), ..load_page(&context, &me).await? })
}

/// Creates a new secret and shows it once.
pub async fn renew_secret(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let secret = context.app.webhooks.renew_secret(&me.actor(&context), me.0.person.id).await?;
    reveal_secret(context, &me, secret.to_string())
}

fn reveal_secret(context: RequestContext, me: &CurrentPerson, secret: String) -> HandlerResult {
    reveal_once::redirect(context, me, PAGE_PATH, &SecretLinkShownOnce { link: secret, label: String::new() })
}

pub async fn remove_webhook(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    context.app.webhooks.remove(&me.actor(&context), me.0.person.id).await?;
    Ok(flash::redirect(context, PAGE_PATH, FlashMessage::WebhookRemoved))
}

/// A missing webhook is a 404; everything else is an internal error.
impl From<SaveWebhookError> for AppError {
    fn from(error: SaveWebhookError) -> Self {
        match error {
            SaveWebhookError::Missing => Self::NotFound,
            SaveWebhookError::Auth(error) => error.into(),
            SaveWebhookError::Address(error) => Self::Internal(error.to_string()),
        }
    }
}
