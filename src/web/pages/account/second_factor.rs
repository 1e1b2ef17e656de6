//! The second factor: setting it up, renewing recovery codes, turning it off.

use askama::Template;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use serde::Deserialize;

use crate::auth::second_factor::TotpEnrolment;
use crate::auth::{AuthError, Permission};
use crate::error::AppError;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::http::qr_code::QrCodeImage;
use crate::web::pages::account::password_confirmation_errors;
use crate::web::pages::sign_in;

/// The app's first code, and the password.
#[derive(Deserialize)]
pub struct EnableSecondFactorForm {
    sealed: String,
    code: String,
    password: SecretString,
}

/// The password, to confirm a sensitive change.
#[derive(Deserialize)]
pub struct ConfirmPasswordForm {
    password: SecretString,
}

#[derive(Template)]
#[template(path = "account/second_factor_off.html")]
struct SecondFactorSetupPage {
    page: PageFrame,
    qr: QrCodeImage,
    secret: String,
    address: String,
    sealed: String,
    problems: FormErrors,
}

#[derive(Template)]
#[template(path = "account/second_factor_on.html")]
struct SecondFactorManagePage {
    page: PageFrame,
    codes_left: i64,
    off_problems: FormErrors,
    codes_problems: FormErrors,
}

#[derive(Template)]
#[template(path = "account/recovery_codes.html")]
struct RecoveryCodesPage {
    page: PageFrame,
    all: String,
    is_first: bool,
}

/// How to set it up, or what is set up.
pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    if me.0.person.has_totp {
        return respond(&load_manage_page(&context, &me).await?);
    }
    render_setup_page(&context, &me, None, FormErrors::default())
}

fn render_setup_page(
    context: &RequestContext,
    me: &CurrentPerson,
    sealed: Option<&[u8]>,
    problems: FormErrors,
) -> HandlerResult {
    let issuer = format!("Portolan {}", context.app.config.portal.public_url.host());
    let TotpEnrolment { sealed, secret, address } = context.app.auth.begin_totp_enrolment(&me.0, &issuer, sealed)?;
    let page = SecondFactorSetupPage {
        page: PageFrame::for_person(context, &me.0, "Second factor", NavSection::Account),
        qr: QrCodeImage::new(&address)?,
        secret: secret.to_string(),
        address: address.to_string(),
        sealed: URL_SAFE_NO_PAD.encode(sealed),
        problems,
    };
    respond_with(page.problems.status(), &page)
}

async fn load_manage_page(context: &RequestContext, me: &CurrentPerson) -> Result<SecondFactorManagePage, AppError> {
    let mut db = context.app.store.read().await?;
    Ok(SecondFactorManagePage {
        page: PageFrame::for_person(context, &me.0, "Second factor", NavSection::Account),
        codes_left: store::recovery_codes::count_left(&mut db, me.0.person.id).await?,
        off_problems: FormErrors::default(),
        codes_problems: FormErrors::default(),
    })
}

/// Turns the second factor on and shows the recovery codes once.
pub async fn enable(
    mut context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<EnableSecondFactorForm>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    if me.0.person.has_totp {
        return Ok(flash::see_other("/account/second-factor"));
    }
    let sealed = URL_SAFE_NO_PAD
        .decode(&form.sealed)
        .map_err(|error| AppError::BadRequest(format!("the sealed secret: {error}")))?;
    match context.app.auth.enable_second_factor(&me.0, &sealed, &form.code, &form.password, &context.visitor).await {
        Ok(codes) => {
            sign_in::renew_known_browser(&mut context, &me.0).await?;
            Ok((context.jar.clone(), render_codes_page(&context, &me, &codes, true)?).into_response())
        }
        Err(AuthError::Vault(_)) => Err(AppError::BadRequest("the sealed secret does not open".into())),
        Err(AuthError::WrongCode) => {
            let problem = "Wrong code. Enter the code your app shows now. If it's rejected again, check that your phone's clock is correct.";
            render_setup_page(&context, &me, Some(&sealed), FormErrors::single("code", problem))
        }
        Err(error) => render_setup_page(&context, &me, Some(&sealed), password_confirmation_errors(error, "password")?),
    }
}

pub async fn disable(
    mut context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ConfirmPasswordForm>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    match context.app.auth.disable_second_factor(&me.0, &form.password, &context.visitor).await {
        Ok(()) => {
            sign_in::renew_known_browser(&mut context, &me.0).await?;
            Ok(flash::redirect(context, "/account/second-factor", FlashMessage::SecondFactorOff))
        }
        Err(error) => {
            let off_problems = password_confirmation_errors(error, "password")?;
            let page = SecondFactorManagePage { off_problems, ..load_manage_page(&context, &me).await? };
            respond_with(FORM_ERROR_STATUS, &page)
        }
    }
}

/// Creates new recovery codes and shows them once.
pub async fn renew_codes(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ConfirmPasswordForm>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    match context.app.auth.renew_recovery_codes(&me.0, &form.password, &context.visitor).await {
        Ok(codes) => render_codes_page(&context, &me, &codes, false),
        Err(error) => {
            let codes_problems = password_confirmation_errors(error, "password")?;
            let page = SecondFactorManagePage { codes_problems, ..load_manage_page(&context, &me).await? };
            respond_with(FORM_ERROR_STATUS, &page)
        }
    }
}

fn render_codes_page(context: &RequestContext, me: &CurrentPerson, codes: &[String], is_first: bool) -> HandlerResult {
    let page = PageFrame::for_person(context, &me.0, "Recovery codes", NavSection::Account);
    respond(&RecoveryCodesPage { page, all: codes.join("\n"), is_first })
}
