//! What handlers extract from a request: the signed-in person, the form, the path, and the page's context.

use std::sync::Arc;

use axum::extract::rejection::{FormRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum_extra::extract::CookieJar;

use crate::app::AppState;
use crate::auth::activity::Actor;
use crate::auth::sessions::SignedInPerson;
use crate::auth::{Permission, RequestClient};
use crate::error::AppError;
use crate::web::http::cookies::{CookieKind, RawRequestCookies};
use crate::web::http::flash::PendingFlash;
use crate::web::http::visitor::visitor_from_request;
use crate::web::pages::account::theme::Theme;
use crate::web::portal_state::{CrossRequestState, PortalState};

/// Requires a signed-in person; otherwise the request is redirected to the sign-in page.
pub struct CurrentPerson(pub Arc<SignedInPerson>);

/// The signed-in person, if there is one.
pub struct MaybeCurrentPerson(pub Option<Arc<SignedInPerson>>);

/// A form's fields, with our own error text if it can't be parsed.
#[derive(FromRequest)]
#[from_request(via(axum::extract::Form), rejection(AppError))]
pub struct FormBody<T>(pub T);

/// The path's parameters. If they can't be parsed, the page doesn't exist.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(AppError))]
pub struct PathParams<T>(pub T);

/// The query string's parameters.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(AppError))]
pub struct QueryParams<T>(pub T);

/// What every page needs to know about its request.
pub struct RequestContext {
    pub app: AppState,
    pub pages: Arc<CrossRequestState>,
    /// The cookies that the browser sent.
    pub cookies: RawRequestCookies,
    /// The cookies that the response will set.
    pub jar: CookieJar,
    pub visitor: RequestClient,
    pub theme: Theme,
    /// A message left by the previous page.
    pub flash: Option<PendingFlash>,
    /// Whether htmx asks for a fragment of an open page.
    pub is_fragment: bool,
}

impl CurrentPerson {
    /// Checks a permission. Every handler calls this first.
    pub fn may(&self, permission: Permission) -> Result<(), AppError> {
        Ok(self.0.viewer.may(permission)?)
    }

    /// This person as the actor of a change, for the activity log.
    pub fn actor(&self, context: &RequestContext) -> Actor {
        Actor::from_person(&self.0.person, &context.visitor)
    }
}

/// Whether someone did something. Fragments refresh on their own: an open page alone doesn't keep a session alive.
fn is_by_person(parts: &Parts) -> bool {
    parts.method != Method::GET || !parts.headers.contains_key("hx-request")
}

impl FromRequestParts<PortalState> for MaybeCurrentPerson {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, state: &PortalState) -> Result<Self, AppError> {
        let app = &state.app;
        let is_person = is_by_person(parts);
        let me = match RawRequestCookies::from_headers(&parts.headers).get(app, CookieKind::Session) {
            Some(cookie) if is_person => app.auth.find_session(cookie).await?,
            Some(cookie) => app.auth.peek_session(cookie).await?,
            None => None,
        };
        if let Some(me) = &me {
            // Every page shows the unread count from memory. Failing to read it must not fail the page.
            let _ = app.notifications.unread(&app.store, me.person.id).await;
        }
        Ok(Self(me))
    }
}

impl FromRequestParts<PortalState> for CurrentPerson {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, state: &PortalState) -> Result<Self, AppError> {
        let MaybeCurrentPerson(me) = MaybeCurrentPerson::from_request_parts(parts, state).await?;
        if let Some(me) = &me
            && is_by_person(parts)
        {
            let (app, visits) = (&state.app, &state.pages.visits);
            // Only the home page says when the last visit was. Failing to read it must not fail other pages.
            let _ = visits.record_page(&app.store, me.person.id, me.last_seen_at, app.clock.now()).await;
        }
        me.map(Self).ok_or_else(|| {
            // After signing in, people continue to the page they wanted; only GET requests can be resumed.
            let wanted = parts.uri.path_and_query().filter(|_| parts.method == Method::GET);
            AppError::NotSignedIn(wanted.map_or_else(|| "/".into(), ToString::to_string))
        })
    }
}

impl FromRequestParts<PortalState> for RequestContext {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, state: &PortalState) -> Result<Self, AppError> {
        let PortalState { app, pages } = state;
        let cookies = RawRequestCookies::from_headers(&parts.headers);
        Ok(Self {
            visitor: visitor_from_request(parts, &app.config.proxy.trusted),
            theme: cookies.get(app, CookieKind::Theme).map(Theme::parse).unwrap_or_default(),
            flash: PendingFlash::read(app, &cookies),
            is_fragment: parts.headers.contains_key("hx-request"),
            app: app.clone(),
            pages: pages.clone(),
            cookies,
            jar: CookieJar::new(),
        })
    }
}

impl RequestContext {
    /// The value of a cookie, if the browser sent it.
    pub fn cookie(&self, kind: CookieKind) -> Option<&str> {
        self.cookies.get(&self.app, kind)
    }
}

impl From<FormRejection> for AppError {
    fn from(rejection: FormRejection) -> Self {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return Self::TooLarge;
        }
        Self::BadRequest(rejection.body_text())
    }
}

impl From<PathRejection> for AppError {
    fn from(_: PathRejection) -> Self {
        Self::NotFound
    }
}

impl From<QueryRejection> for AppError {
    fn from(rejection: QueryRejection) -> Self {
        Self::BadRequest(rejection.body_text())
    }
}
