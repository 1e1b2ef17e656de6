//! Secrets that are revealed once: a new link travels to the next page in a sealed cookie, so that reloading the page
//! neither shows it again nor creates another.

use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::AppError;
use crate::vault::VaultPurpose;
use crate::web::HandlerResult;
use crate::web::http::cookies::{self, CookieKind};
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::flash::see_other;
use crate::web::http::qr_code::QrCodeImage;

/// How long the secret waits for its page.
const LIFETIME_SECS: i64 = 60;

/// A link and whom it is for.
#[derive(Debug, Default)]
pub struct SecretLinkShownOnce {
    pub link: String,
    /// The note that its creator gave it.
    pub label: String,
}

impl SecretLinkShownOnce {
    /// The link as a QR code. A link that is too long for one is shown as text only.
    pub fn qr(&self) -> Option<QrCodeImage> {
        QrCodeImage::new(&self.link).ok()
    }
}

/// Redirects to a page that shows the link to this person, once.
pub fn redirect(context: RequestContext, me: &CurrentPerson, to: &str, secret: &SecretLinkShownOnce) -> HandlerResult {
    let text = format!("{}\n{}", secret.link, secret.label);
    let sealed = context
        .app
        .vault
        .seal(VaultPurpose::ShownOnce, &seal_context(me, to), text.as_bytes())
        .map_err(|error| AppError::Internal(error.to_string()))?;
    let value = URL_SAFE_NO_PAD.encode(sealed);
    let jar = cookies::set(context.jar, &context.app, CookieKind::RevealOnce, &value, LIFETIME_SECS);
    Ok((jar, see_other(to)).into_response())
}

/// The link that waits for this page, if there is one.
pub fn take_pending(context: &RequestContext, me: &CurrentPerson, here: &str) -> Option<SecretLinkShownOnce> {
    let sealed = URL_SAFE_NO_PAD.decode(context.cookie(CookieKind::RevealOnce)?).ok()?;
    let text = context.app.vault.open(VaultPurpose::ShownOnce, &seal_context(me, here), &sealed).ok()?;
    let (link, label) = std::str::from_utf8(&text).ok()?.split_once('\n')?;
    Some(SecretLinkShownOnce { link: link.to_owned(), label: label.to_owned() })
}

/// Clears the cookie on the page that showed the secret.
pub fn clear_cookie(context: &RequestContext, page: Response) -> Response {
    (cookies::clear(context.jar.clone(), &context.app, CookieKind::RevealOnce), page).into_response()
}

/// Binds the sealed cookie to this person and this page.
fn seal_context(me: &CurrentPerson, page: &str) -> String {
    format!("person:{} {page}", me.0.person.id)
}
