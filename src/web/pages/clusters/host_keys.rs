//! Host keys: what the hosts present, compared with what their centre publishes, pinned by an administrator.

use std::fmt::Write as _;
use std::sync::Arc;

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::cluster::ClusterProfile;
use crate::cluster::administration::{ScannedHost, scan_hosts};
use crate::sites::{Site, SiteLink};
use crate::ssh::host_keys::HostKey;
use crate::store::clusters::PinnedHostKey;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::pages::clusters::admin::{build_settings_page, form_problems, to_app_error};
use crate::web::pages::clusters::settings_form::ClusterSettingsForm;
use crate::web::pages::clusters::{cluster_path, find_cluster};

/// What the administrator confirms: the site description and the keys that the page showed.
#[derive(Deserialize)]
pub struct PinHostKeysForm {
    /// The site description as a file; empty if only the keys change.
    #[serde(default)]
    site: String,
    /// `hop key-type key` lines, as shown.
    #[serde(default)]
    keys: String,
    /// Keys that the administrator got elsewhere, in the same format.
    #[serde(default)]
    by_hand: String,
    #[serde(default)]
    compared: bool,
}

#[derive(Template)]
#[template(path = "clusters/host_keys.html")]
struct HostKeysPage {
    page: PageFrame,
    /// `None` for a new cluster.
    profile: Option<Arc<ClusterProfile>>,
    title: String,
    hosts: Vec<HostWithKeys>,
    /// The site description to save with the keys, as a file.
    site: String,
    /// The form's action.
    action: String,
    /// The keys that will be pinned.
    keys: String,
    by_hand: String,
    differs: bool,
    /// The centre's documentation.
    docs: Option<SiteLink>,
    problems: FormErrors,
}

impl HostKeysPage {
    fn is_alarmed(&self) -> bool {
        self.profile.as_ref().is_some_and(|known| known.row.alarm_at().is_some())
    }
}

struct HostWithKeys {
    what: &'static str,
    name: String,
    port: u16,
    keys: Vec<ShownHostKey>,
    /// Fingerprints of pinned keys that the host no longer presents.
    missed: Vec<String>,
    problem: String,
    /// Fingerprints that the centre publishes.
    published: Vec<String>,
    as_published: bool,
}

impl HostWithKeys {
    /// Whether it presents keys that are not published.
    fn has_others(&self) -> bool {
        self.keys.iter().any(|key| !key.is_published)
    }
}

struct ShownHostKey {
    kind: String,
    fingerprint: String,
    is_published: bool,
    is_pinned: bool,
}

/// The page for a new cluster: scans its hosts now.
pub(super) async fn show_for_new(context: &RequestContext, me: &CurrentPerson, site: &Site) -> HandlerResult {
    respond(&build_page(context, me, None, Some(site), "/clusters".into()).await)
}

/// The page for a cluster whose hosts have changed.
pub(super) async fn show_for_changed(
    context: &RequestContext,
    me: &CurrentPerson,
    known: &Arc<ClusterProfile>,
    site: &Site,
) -> HandlerResult {
    let action = format!("{}/host-keys", cluster_path(&known.row.slug));
    respond(&build_page(context, me, Some(known), Some(site), action).await)
}

/// The page for an existing cluster.
pub async fn get(context: RequestContext, me: CurrentPerson, PathParams(slug): PathParams<String>) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let action = format!("{}/host-keys", cluster_path(&slug));
    respond(&build_page(&context, &me, Some(&known), None, action).await)
}

/// Adds a cluster with its pinned keys.
pub async fn add_cluster(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<PinHostKeysForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let site = match Site::from_toml(&form.site) {
        Ok(site) => site,
        Err(error) => {
            return show_with_problems(&context, &me, None, None, form, FormErrors::single("by_hand", error)).await;
        }
    };
    let pins = match parse_pins(&form) {
        Ok(pins) => pins,
        Err(problems) => {
            return show_with_problems(&context, &me, None, Some(&site), form, problems).await;
        }
    };
    match context.app.connections.add_cluster(&me.actor(&context), &site, &pins).await {
        Ok(_) => Ok(flash::redirect(context, &cluster_path(site.name.as_str()), FlashMessage::ClusterAdded)),
        Err(crate::cluster::administration::ClusterChangeError::NoHostKey) => {
            let problems = FormErrors::single("by_hand", crate::cluster::administration::ClusterChangeError::NoHostKey);
            show_with_problems(&context, &me, None, Some(&site), form, problems).await
        }
        Err(error) => {
            let problems = form_problems(error)?;
            respond_with(
                FORM_ERROR_STATUS,
                &build_settings_page(&context, &me, None, ClusterSettingsForm::from_site(&site), problems),
            )
        }
    }
}

/// Pins new keys, and saves the site description if it changed with them.
pub async fn pin_keys(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    FormBody(form): FormBody<PinHostKeysForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let site = match Some(&form.site).filter(|text| !text.is_empty()).map(|text| Site::from_toml(text)) {
        Some(Err(error)) => {
            let problems = FormErrors::single("by_hand", error);
            return show_with_problems(&context, &me, Some(&known), None, form, problems).await;
        }
        Some(Ok(site)) => Some(site),
        None => None,
    };
    let pins = match parse_pins(&form) {
        Ok(pins) => pins,
        Err(problems) => {
            return show_with_problems(&context, &me, Some(&known), site.as_ref(), form, problems).await;
        }
    };
    let (lines, actor) = (&context.app.connections, me.actor(&context));
    let done = match &site {
        Some(site) => lines.update_cluster(&actor, &known, site, Some(&pins)).await,
        None => lines.pin_host_keys(&actor, &known, &pins).await,
    };
    match done {
        Ok(()) => Ok(flash::redirect(context, &cluster_path(&slug), FlashMessage::HostKeysPinned)),
        Err(error @ crate::cluster::administration::ClusterChangeError::NoHostKey) => {
            show_with_problems(&context, &me, Some(&known), site.as_ref(), form, FormErrors::single("by_hand", error))
                .await
        }
        Err(error) => Err(to_app_error(error)),
    }
}

/// Dismisses a false alarm; the pinned keys stay.
pub async fn end_alarm(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    context.app.connections.end_alarm(&me.actor(&context), &known).await.map_err(to_app_error)?;
    Ok(flash::redirect(context, &cluster_path(&slug), FlashMessage::AlarmEnded))
}

async fn show_with_problems(
    context: &RequestContext,
    me: &CurrentPerson,
    known: Option<&Arc<ClusterProfile>>,
    site: Option<&Site>,
    form: PinHostKeysForm,
    problems: FormErrors,
) -> HandlerResult {
    let action =
        known.map_or_else(|| "/clusters".into(), |known| format!("{}/host-keys", cluster_path(&known.row.slug)));
    let mut page = build_page(context, me, known, site, action).await;
    page.by_hand = form.by_hand;
    page.problems = problems;
    respond_with(FORM_ERROR_STATUS, &page)
}

/// The keys to pin. Those on the page count only if the administrator confirms having compared them.
fn parse_pins(form: &PinHostKeysForm) -> Result<Vec<PinnedHostKey>, FormErrors> {
    if !form.compared {
        return Err(FormErrors::single("compared", "Compare the fingerprints first and say that you did."));
    }
    let mut pins = Vec::new();
    for line in form.keys.lines().chain(form.by_hand.lines()).map(str::trim).filter(|line| !line.is_empty()) {
        let read = line.split_once(char::is_whitespace).and_then(|(hop, key)| {
            let known = ["login", "jump", "robot"].contains(&hop);
            HostKey::parse(key).filter(|_| known).map(|key| (hop.to_owned(), key.to_line()))
        });
        let Some(pin) = read else {
            return Err(FormErrors::single(
                "by_hand",
                "Write each key as: login ssh-ed25519 AAAA… (or jump, or robot, in front).",
            ));
        };
        if !pins.contains(&pin) {
            pins.push(pin);
        }
    }
    Ok(pins)
}

async fn build_page(
    context: &RequestContext,
    me: &CurrentPerson,
    known: Option<&Arc<ClusterProfile>>,
    site: Option<&Site>,
    action: String,
) -> HostKeysPage {
    let described = site.or_else(|| known.map(|known| &*known.site));
    let scanned = match described {
        Some(site) => scan_hosts(site).await,
        None => Vec::new(),
    };
    let mut keys = String::new();
    for host in &scanned {
        for key in host.shown.iter().flatten() {
            // Where keys are published, trust only those.
            if !host.has_published_key() || host.is_published(key) {
                let _ = writeln!(keys, "{} {}", host.hop, key.to_line());
            }
        }
    }
    HostKeysPage {
        page: PageFrame::for_person(context, &me.0, "Host keys", NavSection::Clusters),
        title: described.map(|site| site.title.clone()).unwrap_or_default(),
        hosts: scanned.iter().map(|host| host_with_keys(host, known)).collect(),
        differs: scanned.iter().any(ScannedHost::is_mismatch),
        docs: described.and_then(|site| site.docs.clone()),
        site: site.and_then(|site| site.to_toml().ok()).unwrap_or_default(),
        profile: known.cloned(),
        action,
        keys,
        by_hand: String::new(),
        problems: FormErrors::default(),
    }
}

fn host_with_keys(host: &ScannedHost, known: Option<&Arc<ClusterProfile>>) -> HostWithKeys {
    let pins = known.map(|known| known.host_keys(host.hop)).unwrap_or_default();
    let shown = host.shown.as_deref().unwrap_or_default();
    HostWithKeys {
        what: match host.hop {
            "jump" => "Host on the way",
            "robot" => "Automation host",
            _ => "Login host",
        },
        name: host.host.as_str().to_owned(),
        port: host.port,
        problem: host.shown.as_ref().err().map(ToString::to_string).unwrap_or_default(),
        published: host.published.clone(),
        as_published: host.has_published_key(),
        missed: pins.iter().filter(|pin| !shown.contains(pin)).map(HostKey::fingerprint).collect(),
        keys: shown
            .iter()
            .map(|key| ShownHostKey {
                kind: key.kind().to_owned(),
                fingerprint: key.fingerprint(),
                is_published: host.is_published(key),
                is_pinned: pins.contains(key),
            })
            .collect(),
    }
}
