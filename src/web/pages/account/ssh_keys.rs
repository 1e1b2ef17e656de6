//! A person's SSH keys: create, import, replace, delete, and allow unattended use.
//! No page ever shows a private key.

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::auth::ssh_keys::{KeyOrigin, KeyToSave};
use crate::auth::{AuthError, Permission};
use crate::domain::{ConnectionRole, SshKeyId};
use crate::error::AppError;
use crate::ssh::key_import::{self, KeyImportError};
use crate::ssh::keys::{PrivateKey, SshKeyError};
use crate::store;
use crate::store::connections::SshKeyUse;
use crate::store::keys::SshKey;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage, safe_local_path};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};

/// Which key is meant, and which page to return to.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct SshKeyRoleForm {
    role: String,
    back: String,
}

#[derive(Deserialize)]
pub struct ImportKeyForm {
    key: SecretString,
    #[serde(default)]
    passphrase: SecretString,
    #[serde(default)]
    back: String,
}

#[derive(Deserialize)]
pub struct UnattendedUseForm {
    allow: bool,
    #[serde(default)]
    password: SecretString,
}

struct SshKeyCard {
    key: SshKey,
    uses: Vec<SshKeyUse>,
    is_proven: bool,
}

#[derive(Template)]
#[template(path = "account/key.html")]
struct SshKeysPage {
    page: PageFrame,
    current: Option<SshKeyCard>,
    next: Option<SshKeyCard>,
    automation: Option<SshKeyCard>,
    automation_next: Option<SshKeyCard>,
    /// Where to go after an import; empty for this page.
    back: String,
    problems: FormErrors,
    /// Which key's form has the problem: `login` or `robot`; empty if it is another form.
    scope: &'static str,
}

impl SshKeysPage {
    /// The password problem, if it belongs to this key's form.
    fn password_problem(&self, card: &SshKeyCard) -> &str {
        if card.key.role().as_str() == self.scope { self.problems.of("password") } else { "" }
    }
}

pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<SshKeyRoleForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    respond(&SshKeysPage { back: query.back, ..load_page(&context, &me, FormErrors::default()).await? })
}

pub async fn create(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<SshKeyRoleForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let role = parse_role(&form.role);
    // The date tells an old key from a new one on a centre's key page.
    let purpose = if role == ConnectionRole::Automation { "-robot" } else { "" };
    let day = context.app.clock.now().utc_date();
    let comment = format!("{}@portolan{purpose}-{day}", me.0.person.name);
    let key = PrivateKey::generate(&comment).map_err(internal_error)?;
    save_key(context, &me, &key, role, KeyOrigin::Generated, &form.back).await
}

pub async fn import(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ImportKeyForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    // Decrypting a key with a passphrase is slow on purpose.
    let ImportKeyForm { key, passphrase, back } = form;
    let import = move || {
        let passphrase = Some(&passphrase).filter(|passphrase| !passphrase.expose_secret().is_empty());
        key_import::import(key.expose_secret(), passphrase)
    };
    let imported = context.app.auth.run_key_import(me.0.person.id, import).await?;
    let problems = match imported {
        Ok(key) => return save_key(context, &me, &key, ConnectionRole::Login, KeyOrigin::Imported, &back).await,
        Err(error @ (KeyImportError::WrongPassphrase | KeyImportError::PassphraseNeeded)) => {
            FormErrors::single("passphrase", error)
        }
        Err(error) => FormErrors::single("key", error),
    };
    let page = SshKeysPage { back, ..load_page(&context, &me, problems).await? };
    respond_with(FORM_ERROR_STATUS, &page)
}

/// Saves a key and returns to the page where it was asked for.
async fn save_key(
    context: RequestContext,
    me: &CurrentPerson,
    key: &PrivateKey,
    role: ConnectionRole,
    origin: KeyOrigin,
    back: &str,
) -> HandlerResult {
    let public = key.public();
    let new_key = KeyToSave {
        role,
        origin,
        kind: public.kind(),
        public_line: public.to_line(),
        fingerprint: public.fingerprint(),
        private: key.to_bytes().map_err(internal_error)?,
    };
    let message = match context.app.auth.save_key(&me.0, &new_key, &context.visitor).await {
        Ok(id) if is_pending_key(&context, me, id).await? => FlashMessage::NewKeyMade,
        Ok(_) => match (origin, role) {
            (KeyOrigin::Imported, _) => FlashMessage::KeyImported,
            (KeyOrigin::Generated, ConnectionRole::Automation) => FlashMessage::AutomationKeyMade,
            (KeyOrigin::Generated, ConnectionRole::Login) => FlashMessage::KeyMade,
        },
        Err(AuthError::NewKeyPending) => FlashMessage::NewKeyPending,
        Err(error) => return Err(error.into()),
    };
    let to = if back.is_empty() { "/account/key" } else { safe_local_path(back) };
    Ok(flash::redirect(context, to, message))
}

/// Replaces the old key with the new one.
pub async fn replace(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<SshKeyRoleForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let message = match context.app.auth.promote_new_key(&me.0, parse_role(&form.role), &context.visitor).await {
        Ok(()) => FlashMessage::KeyReplaced,
        Err(AuthError::KeyUnproven) => FlashMessage::KeyUnproven,
        Err(error) => return Err(error.into()),
    };
    Ok(flash::redirect(context, "/account/key", message))
}

/// Deletes a key. Open connections stay open, but it can't open new ones.
pub async fn delete(context: RequestContext, me: CurrentPerson, PathParams(id): PathParams<SshKeyId>) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    context.app.auth.delete_key(&me.0, id, &context.visitor).await?;
    Ok(flash::redirect(context, "/account/key", FlashMessage::KeyDeleted))
}

pub async fn set_unattended(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<SshKeyId>,
    FormBody(form): FormBody<UnattendedUseForm>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let auth = &context.app.auth;
    if !form.allow {
        auth.forbid_unattended(&me.0, id, &context.visitor).await?;
        return Ok(flash::redirect(context, "/account/key", FlashMessage::UnattendedOff));
    }
    match auth.allow_unattended(&me.0, id, &form.password, &context.visitor).await {
        Ok(()) => Ok(flash::redirect(context, "/account/key", FlashMessage::UnattendedOn)),
        Err(AuthError::WrongPassword) => {
            let problems = FormErrors::single("password", "Wrong password.");
            let mut page = load_page(&context, &me, problems).await?;
            let is_automation = page.automation.as_ref().is_some_and(|card| card.key.id == id);
            page.scope = if is_automation { ConnectionRole::Automation } else { ConnectionRole::Login }.as_str();
            respond_with(FORM_ERROR_STATUS, &page)
        }
        Err(error) => Err(error.into()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn internal_error(error: SshKeyError) -> AppError {
    AppError::Internal(error.to_string())
}

fn parse_role(word: &str) -> ConnectionRole {
    if word == "robot" { ConnectionRole::Automation } else { ConnectionRole::Login }
}

async fn is_pending_key(context: &RequestContext, me: &CurrentPerson, id: SshKeyId) -> Result<bool, AppError> {
    let mut db = context.app.store.read().await?;
    Ok(store::keys::get(&mut db, me.0.person.id, id).await?.is_some_and(|key| key.is_next()))
}

async fn load_page(
    context: &RequestContext,
    me: &CurrentPerson,
    problems: FormErrors,
) -> Result<SshKeysPage, AppError> {
    let mut db = context.app.store.read().await?;
    let mut keys = Vec::new();
    for key in store::keys::list_for_person(&mut db, me.0.person.id).await? {
        let uses = store::connections::list_key_uses(&mut db, key.id).await?;
        keys.push(SshKeyCard { is_proven: !uses.is_empty(), uses, key });
    }
    let mut take = |role: ConnectionRole, next: bool| {
        let index = keys.iter().position(|card| card.key.role() == role && card.key.is_next() == next)?;
        Some(keys.swap_remove(index))
    };
    Ok(SshKeysPage {
        page: PageFrame::for_person(context, &me.0, "SSH key", NavSection::Account),
        current: take(ConnectionRole::Login, false),
        next: take(ConnectionRole::Login, true),
        automation: take(ConnectionRole::Automation, false),
        automation_next: take(ConnectionRole::Automation, true),
        back: String::new(),
        scope: "",
        problems,
    })
}
