//! The devices someone is signed in on, and signing them out.

use askama::Template;

use crate::auth::Permission;
use crate::domain::SessionId;
use crate::store;
use crate::store::sessions::SignedInBrowser;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::sign_in;

#[derive(Template)]
#[template(path = "account/devices.html")]
struct DevicesPage {
    page: PageFrame,
    browsers: Vec<SignedInBrowser>,
    /// The session of the browser that shows the page.
    current: SessionId,
}

pub async fn list(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let mut db = context.app.store.read().await?;
    let browsers = store::sessions::list_for_person(&mut db, me.0.person.id).await?;
    let page = PageFrame::for_person(&context, &me.0, "Devices", NavSection::Account);
    respond(&DevicesPage { page, browsers, current: me.0.session })
}

/// Signs out one device.
pub async fn sign_out(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(device): PathParams<SessionId>,
) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    context.app.auth.sign_out_device(&me.0, device, &context.visitor).await?;
    if device == me.0.session {
        return Ok(sign_in::redirect_signed_out(context, FlashMessage::SignedOut));
    }
    Ok(flash::redirect(context, "/account/devices", FlashMessage::DeviceEnded))
}

/// Signs out every device, including this one.
pub async fn sign_out_everywhere(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    context.app.auth.sign_out_everywhere(&me.0, &context.visitor).await?;
    Ok(sign_in::redirect_signed_out(context, FlashMessage::SignedOutEverywhere))
}

fn device_icon(user_agent: &str) -> &'static str {
    if ["Mobile", "iPhone", "Android"].iter().any(|word| user_agent.contains(word)) { "phone" } else { "devices" }
}

/// For example "Firefox on Linux", as far as the user agent says.
fn describe_browser(user_agent: &str) -> String {
    let first = |table: &[(&str, &'static str)]| {
        table.iter().find(|(token, _)| user_agent.contains(token)).map(|(_, name)| *name)
    };
    // Order matters: most browsers also claim to be Chrome and Safari.
    let browser = first(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chromium/", "Chromium"),
        ("HeadlessChrome/", "Chrome"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ]);
    let system = first(&[
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, Some(system)) => format!("A browser on {system}"),
        (None, None) => "Unknown browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::web::pages::account::devices::describe_browser;

    #[test]
    fn browsers_are_named_as_people_know_them() {
        for (agent, expected) in [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
            ),
            ("curl/8.0", "curl"),
            ("", "Unknown browser"),
        ] {
            assert_eq!(describe_browser(agent), expected);
        }
    }
}
