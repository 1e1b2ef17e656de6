//! The second factor: set it up, get recovery codes, turn it off.

use askama::Template;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use qrcode::QrCode;
use secrecy::SecretString;
use serde::Deserialize;

use super::Answer;
use super::account::confirmation_problems;
use super::extract::{Context, Form, Me};
use super::flash::{self, Flash};
use super::form::Problems;
use super::page::{PROBLEMS, Page, Section, show, show_with};
use super::sign_in;
use crate::auth::second_factor::TotpEnrolment;
use crate::auth::{AuthError, Permission};
use crate::error::AppError;
use crate::store;

/// The first code of the app, and the password.
#[derive(Deserialize)]
pub struct TurnOnForm {
    sealed: String,
    code: String,
    password: SecretString,
}

/// The password, before something weighty.
#[derive(Deserialize)]
pub struct ConfirmForm {
    password: SecretString,
}

#[derive(Template)]
#[template(path = "account/second_factor_off.html")]
struct OffPage {
    page: Page,
    qr: QrPicture,
    secret: String,
    address: String,
    sealed: String,
    problems: Problems,
}

#[derive(Template)]
#[template(path = "account/second_factor_on.html")]
struct OnPage {
    page: Page,
    codes_left: i64,
    off_problems: Problems,
    codes_problems: Problems,
}

#[derive(Template)]
#[template(path = "account/recovery_codes.html")]
struct CodesPage {
    page: Page,
    all: String,
    is_first: bool,
}

/// A QR code as one path of squares.
struct QrPicture {
    width: usize,
    path: String,
}

impl QrPicture {
    /// Modules of white that scanners need around the code.
    const QUIET: usize = 4;

    fn new(text: &str) -> Result<Self, AppError> {
        let code =
            QrCode::new(text).map_err(|error| AppError::Internal(format!("QR code: {error}")))?;
        let width = code.width();
        let path = code
            .to_colors()
            .chunks(width)
            .enumerate()
            .flat_map(|(y, row)| {
                row.iter()
                    .enumerate()
                    .filter(|(_, module)| **module == qrcode::Color::Dark)
                    .map(move |(x, _)| format!("M{} {}h1v1h-1z", x + Self::QUIET, y + Self::QUIET))
            })
            .collect();
        Ok(Self { width: width + 2 * Self::QUIET, path })
    }
}

/// The page: how to set it up, or what is set up.
pub async fn get(context: Context, me: Me) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    if me.0.person.has_totp {
        return on_page(&context, &me, Problems::default(), Problems::default()).await;
    }
    off_page(&context, &me, None, Problems::default())
}

fn off_page(context: &Context, me: &Me, sealed: Option<&[u8]>, problems: Problems) -> Answer {
    let issuer = format!("Portolan {}", context.app.config.portal.public_url.host());
    let TotpEnrolment { sealed, secret, address } =
        context.app.auth.begin_totp_enrolment(&me.0, &issuer, sealed)?;
    let status = if problems.is_empty() { StatusCode::OK } else { PROBLEMS };
    let page = OffPage {
        page: Page::for_person(context, &me.0, "Second factor", Section::Account),
        qr: QrPicture::new(&address)?,
        secret: secret.to_string(),
        address: address.to_string(),
        sealed: URL_SAFE_NO_PAD.encode(sealed),
        problems,
    };
    show_with(status, &page)
}

async fn on_page(
    context: &Context,
    me: &Me,
    off_problems: Problems,
    codes_problems: Problems,
) -> Answer {
    let wrong = !off_problems.is_empty() || !codes_problems.is_empty();
    let mut db = context.app.store.read().await?;
    let page = OnPage {
        page: Page::for_person(context, &me.0, "Second factor", Section::Account),
        codes_left: store::recovery_codes::count_left(&mut db, me.0.person.id).await?,
        off_problems,
        codes_problems,
    };
    show_with(if wrong { PROBLEMS } else { StatusCode::OK }, &page)
}

/// Turns it on and shows the recovery codes, once.
pub async fn turn_on(mut context: Context, me: Me, Form(form): Form<TurnOnForm>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    if me.0.person.has_totp {
        return Ok(flash::see_other("/account/second-factor"));
    }
    let sealed = URL_SAFE_NO_PAD
        .decode(&form.sealed)
        .map_err(|error| AppError::BadRequest(format!("the sealed secret: {error}")))?;
    match context
        .app
        .auth
        .enable_second_factor(&me.0, &sealed, &form.code, &form.password, &context.visitor)
        .await
    {
        Ok(codes) => {
            sign_in::stay_known(&mut context, &me.0).await?;
            Ok((context.jar.clone(), codes_page(&context, &me, &codes, true)?).into_response())
        }
        Err(AuthError::Vault(_)) => {
            Err(AppError::BadRequest("the sealed secret does not open".into()))
        }
        Err(AuthError::WrongCode) => {
            let problem = "This code is not right. Take the newest one from your app; if it is refused again, check that your phone's clock is right.";
            off_page(&context, &me, Some(&sealed), Problems::one("code", problem))
        }
        Err(error) => {
            off_page(&context, &me, Some(&sealed), confirmation_problems(error, "password")?)
        }
    }
}

/// Turns it off.
pub async fn turn_off(mut context: Context, me: Me, Form(form): Form<ConfirmForm>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    match context.app.auth.disable_second_factor(&me.0, &form.password, &context.visitor).await {
        Ok(()) => {
            sign_in::stay_known(&mut context, &me.0).await?;
            Ok(flash::redirect(context, "/account/second-factor", Flash::SecondFactorOff))
        }
        Err(error) => {
            let problems = confirmation_problems(error, "password")?;
            on_page(&context, &me, problems, Problems::default()).await
        }
    }
}

/// Makes new recovery codes and shows them, once.
pub async fn renew_codes(context: Context, me: Me, Form(form): Form<ConfirmForm>) -> Answer {
    me.may(Permission::UseOwnAccount)?;
    match context.app.auth.renew_recovery_codes(&me.0, &form.password, &context.visitor).await {
        Ok(codes) => codes_page(&context, &me, &codes, false),
        Err(error) => {
            let problems = confirmation_problems(error, "password")?;
            on_page(&context, &me, Problems::default(), problems).await
        }
    }
}

fn codes_page(context: &Context, me: &Me, codes: &[String], is_first: bool) -> Answer {
    let page = Page::for_person(context, &me.0, "Recovery codes", Section::Account);
    show(&CodesPage { page, all: codes.join("\n"), is_first })
}
