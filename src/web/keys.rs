//! One's SSH keys: made here or imported, replaced, deleted, and whether the portal may use them unattended.
//! The private half is never shown, by no page.

use askama::Template;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::Answer;
use super::extract::{Context, Form, Me, Path, Query};
use super::flash::{self, Flash, local_path};
use super::form::Problems;
use super::page::{PROBLEMS, Page, Section, show, show_with};
use crate::auth::ssh_keys::{KeyOrigin, KeyToSave};
use crate::auth::{AuthError, Permission};
use crate::domain::{ConnectionRole, SshKeyId};
use crate::error::AppError;
use crate::ssh::key_import::{self, KeyImportError};
use crate::ssh::keys::{PrivateKey, SshKeyError};
use crate::store;
use crate::store::connections::SshKeyUse;
use crate::store::keys::SshKey;

/// What to make, and where to go afterwards.
#[derive(Deserialize)]
pub struct MakeForm {
    #[serde(default)]
    role: String,
    #[serde(default)]
    back: String,
}

/// A key to import.
#[derive(Deserialize)]
pub struct ImportForm {
    key: SecretString,
    #[serde(default)]
    passphrase: SecretString,
    #[serde(default)]
    back: String,
}

/// Where someone came from.
#[derive(Deserialize)]
pub struct Back {
    #[serde(default)]
    back: String,
}

/// Which key's purpose.
#[derive(Deserialize)]
pub struct RoleForm {
    #[serde(default)]
    role: String,
}

/// Whether a key may be used unattended.
#[derive(Deserialize)]
pub struct UnattendedForm {
    allow: bool,
    #[serde(default)]
    password: SecretString,
}

/// A key as the page shows it.
struct Shown {
    key: SshKey,
    uses: Vec<SshKeyUse>,
    is_proven: bool,
}

#[derive(Template)]
#[template(path = "account/key.html")]
struct KeyPage {
    page: Page,
    current: Option<Shown>,
    next: Option<Shown>,
    robot: Option<Shown>,
    robot_next: Option<Shown>,
    /// Where to go after an import; empty for here.
    back: String,
    problems: Problems,
    /// Which key's form has the problem: `login`, `robot`, or nothing if it is another form's.
    scope: &'static str,
}

impl KeyPage {
    /// What is wrong in the form of this key.
    fn password_problem(&self, shown: &Shown) -> &str {
        if shown.key.role().as_str() == self.scope { self.problems.of("password") } else { "" }
    }
}

/// The page.
pub async fn get(context: Context, me: Me, Query(back): Query<Back>) -> Answer {
    me.may(Permission::UseClusters)?;
    let mut page = page(&context, &me, Problems::default()).await?;
    page.back = back.back;
    show(&page)
}

/// Makes a key.
pub async fn make(context: Context, me: Me, Form(form): Form<MakeForm>) -> Answer {
    me.may(Permission::UseClusters)?;
    let role = role(&form.role);
    // The day tells an old key from a new one on a centre's key page.
    let purpose = if role == ConnectionRole::Automation { "-robot" } else { "" };
    let day = context.app.clock.now().utc_date();
    let comment = format!("{}@portolan{purpose}-{day}", me.0.person.name);
    let keep = PrivateKey::generate(&comment)
        .and_then(|key| to_keep(&key, role, KeyOrigin::Generated))
        .map_err(fault)?;
    let flash = match context.app.auth.save_key(&me.0, &keep, &context.visitor).await {
        Ok(id) if is_next(&context, &me, id).await? => Flash::NewKeyMade,
        Ok(_) if role == ConnectionRole::Automation => Flash::RobotKeyMade,
        Ok(_) => Flash::KeyMade,
        Err(AuthError::NewKeyPending) => Flash::KeyWaiting,
        Err(error) => return Err(error.into()),
    };
    Ok(flash::redirect(context, or_here(&form.back), flash))
}

/// Imports a key.
pub async fn import(context: Context, me: Me, Form(form): Form<ImportForm>) -> Answer {
    me.may(Permission::UseClusters)?;
    // Opening a key with a passphrase is slow on purpose.
    let ImportForm { key, passphrase, back } = form;
    let open = move || {
        let passphrase = Some(&passphrase).filter(|words| !words.expose_secret().is_empty());
        key_import::import(key.expose_secret(), passphrase)
    };
    let imported = context.app.auth.run_key_import(me.0.person.id, open).await?;
    let problem = match imported {
        Ok(key) => {
            let keep = to_keep(&key, ConnectionRole::Login, KeyOrigin::Imported).map_err(fault)?;
            let flash = match context.app.auth.save_key(&me.0, &keep, &context.visitor).await {
                Ok(id) if is_next(&context, &me, id).await? => Flash::NewKeyMade,
                Ok(_) => Flash::KeyImported,
                Err(AuthError::NewKeyPending) => Flash::KeyWaiting,
                Err(error) => return Err(error.into()),
            };
            return Ok(flash::redirect(context, or_here(&back), flash));
        }
        Err(error @ (KeyImportError::WrongPassphrase | KeyImportError::PassphraseNeeded)) => {
            Problems::one("passphrase", error)
        }
        Err(error) => Problems::one("key", error),
    };
    let mut page = page(&context, &me, problem).await?;
    page.back = back;
    show_with(PROBLEMS, &page)
}

/// Puts the new key into the old one's place.
pub async fn replace(context: Context, me: Me, Form(form): Form<RoleForm>) -> Answer {
    me.may(Permission::UseClusters)?;
    let flash =
        match context.app.auth.promote_new_key(&me.0, role(&form.role), &context.visitor).await {
            Ok(()) => Flash::KeyReplaced,
            Err(AuthError::KeyUnproven) => Flash::KeyUnproven,
            Err(error) => return Err(error.into()),
        };
    Ok(flash::redirect(context, "/account/key", flash))
}

/// Deletes a key. Connections that stand go on; no new one can be opened with it.
pub async fn delete(context: Context, me: Me, Path(id): Path<SshKeyId>) -> Answer {
    me.may(Permission::UseClusters)?;
    context.app.auth.delete_key(&me.0, id, &context.visitor).await?;
    Ok(flash::redirect(context, "/account/key", Flash::KeyDeleted))
}

/// Allows or forbids unattended use.
pub async fn unattended(
    context: Context,
    me: Me,
    Path(id): Path<SshKeyId>,
    Form(form): Form<UnattendedForm>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let auth = &context.app.auth;
    if !form.allow {
        auth.forbid_unattended(&me.0, id, &context.visitor).await?;
        return Ok(flash::redirect(context, "/account/key", Flash::UnattendedOff));
    }
    match auth.allow_unattended(&me.0, id, &form.password, &context.visitor).await {
        Ok(()) => Ok(flash::redirect(context, "/account/key", Flash::UnattendedOn)),
        Err(AuthError::WrongPassword) => {
            let problems = Problems::one("password", "This is not your password.");
            let mut page = page(&context, &me, problems).await?;
            let robot = page.robot.as_ref().is_some_and(|shown| shown.key.id == id);
            page.scope =
                if robot { ConnectionRole::Automation } else { ConnectionRole::Login }.as_str();
            show_with(PROBLEMS, &page)
        }
        Err(error) => Err(error.into()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn fault(error: SshKeyError) -> AppError {
    AppError::Internal(error.to_string())
}

/// Where someone came from, if they said; this page otherwise.
fn or_here(back: &str) -> &str {
    if back.is_empty() { "/account/key" } else { local_path(back) }
}

fn role(word: &str) -> ConnectionRole {
    if word == "robot" { ConnectionRole::Automation } else { ConnectionRole::Login }
}

fn to_keep(
    key: &PrivateKey,
    role: ConnectionRole,
    origin: KeyOrigin,
) -> Result<KeyToSave, SshKeyError> {
    let public = key.public();
    Ok(KeyToSave {
        role,
        origin,
        kind: public.kind(),
        public_line: public.to_line(),
        fingerprint: public.fingerprint(),
        private: key.to_bytes()?,
    })
}

async fn is_next(context: &Context, me: &Me, id: SshKeyId) -> Result<bool, AppError> {
    let mut db = context.app.store.read().await?;
    Ok(store::keys::get(&mut db, me.0.person.id, id).await?.is_some_and(|key| key.is_next()))
}

async fn page(context: &Context, me: &Me, problems: Problems) -> Result<KeyPage, AppError> {
    let mut db = context.app.store.read().await?;
    let mut keys = Vec::new();
    for key in store::keys::list_for_person(&mut db, me.0.person.id).await? {
        let uses = store::connections::list_key_uses(&mut db, key.id).await?;
        keys.push(Shown { is_proven: !uses.is_empty(), uses, key });
    }
    let mut take = |role: ConnectionRole, next: bool| {
        let at = keys
            .iter()
            .position(|shown| shown.key.role() == role && shown.key.is_next() == next)?;
        Some(keys.swap_remove(at))
    };
    Ok(KeyPage {
        page: Page::for_person(context, &me.0, "SSH key", Section::Account),
        current: take(ConnectionRole::Login, false),
        next: take(ConnectionRole::Login, true),
        robot: take(ConnectionRole::Automation, false),
        robot_next: take(ConnectionRole::Automation, true),
        back: String::new(),
        scope: "",
        problems,
    })
}
