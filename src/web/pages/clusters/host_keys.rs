//! Host keys: what the hosts present, compared with what their centre publishes, pinned by an administrator.

use std::fmt::Write as _;
use std::sync::Arc;

use askama::Template;
use serde::Deserialize;

use crate::auth::Permission;
use crate::cluster::ClusterProfile;
use crate::cluster::administration::{ClusterChangeError, ScannedHost, scan_hosts};
use crate::cluster::cluster_profile::hops;
use crate::cluster::same_cluster::SameClusterEntry;
use crate::error::AppError;
use crate::sites::{Site, SiteLink};
use crate::ssh::host_keys::HostKey;
use crate::store::clusters::PinnedHostKey;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::pages::clusters::admin::{form_problems, render_settings};
use crate::web::pages::clusters::settings_form::ClusterSettingsForm;
use crate::web::pages::clusters::{ClusterRequest, UncheckedClusterRequest, cluster_path};

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

impl PinHostKeysForm {
    fn to_site(&self) -> Result<Site, FormErrors> {
        Site::from_toml(&self.site).map_err(|error| FormErrors::single("by_hand", error))
    }

    /// The keys to pin. Those on the page count only if the administrator confirms having compared them.
    fn to_pins(&self) -> Result<Vec<PinnedHostKey>, FormErrors> {
        if !self.compared {
            return Err(FormErrors::single("compared", "Compare the fingerprints, then tick this box."));
        }
        let mut pins = Vec::new();
        for line in self.keys.lines().chain(self.by_hand.lines()).map(str::trim).filter(|line| !line.is_empty()) {
            let pin = line.split_once(char::is_whitespace).and_then(|(hop, key)| {
                let hop = if hop == "automation" { "robot" } else { hop };
                let key = HostKey::parse(key).filter(|_| ["login", "jump", "robot"].contains(&hop))?;
                Some((hop.to_owned(), key.to_line()))
            });
            let Some(pin) = pin else {
                let problem = "Start each line with login, jump or automation, followed by the key, for example: login ssh-ed25519 AAAA…";
                return Err(FormErrors::single("by_hand", problem));
            };
            if !pins.contains(&pin) {
                pins.push(pin);
            }
        }
        Ok(pins)
    }
}

#[derive(Template)]
#[template(path = "clusters/host_keys.html")]
struct PinHostKeysPage {
    page: PageFrame,
    /// `None` for a new cluster.
    profile: Option<Arc<ClusterProfile>>,
    title: String,
    hosts: Vec<ScannedHost>,
    /// The site description to save with the keys, as a file.
    site: String,
    /// The keys that will be pinned.
    keys: String,
    by_hand: String,
    /// Entries that seem to be the same cluster as the new one.
    same: Vec<SameClusterEntry>,
    /// The centre's documentation.
    docs: Option<SiteLink>,
    problems: FormErrors,
}

impl PinHostKeysPage {
    fn is_alarmed(&self) -> bool {
        self.profile.as_ref().is_some_and(|cluster| cluster.row.alarm_at().is_some())
    }

    /// Whether a host presents other keys than its centre publishes.
    fn differs(&self) -> bool {
        self.hosts.iter().any(ScannedHost::is_mismatch)
    }

    /// The keys of a host that are pinned now.
    fn pinned_keys(&self, host: &ScannedHost) -> Vec<HostKey> {
        self.profile.as_ref().map(|cluster| cluster.host_keys(host.hop)).unwrap_or_default()
    }

    /// The form's action.
    fn action(&self) -> String {
        let path = |cluster: &Arc<ClusterProfile>| cluster_path(&cluster.row.slug, "/host-keys");
        self.profile.as_ref().map_or_else(|| "/clusters".to_owned(), path)
    }
}

fn has_unpublished_key(host: &ScannedHost) -> bool {
    host.shown.iter().flatten().any(|key| !host.is_published(key))
}

fn hop_title(hop: &str) -> &'static str {
    match hop {
        "jump" => "Jump host",
        "robot" => "Automation host",
        _ => "Login node",
    }
}

/// The page for an existing cluster.
pub async fn get(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::ManageClusters).await?;
    show_scanned(&request.context, &request.me, Some(&request.cluster), None).await
}

/// Adds a cluster with its pinned keys.
pub async fn add_cluster(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<PinHostKeysForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let problems = match form.to_site().and_then(|site| Ok((site, form.to_pins()?))) {
        Ok((site, pins)) => match context.app.connections.add_cluster(&me.actor(&context), &site, &pins).await {
            Ok(_) => {
                let path = cluster_path(site.name.as_str(), "");
                return Ok(flash::redirect(context, &path, FlashMessage::ClusterAdded));
            }
            Err(error @ ClusterChangeError::NoHostKey) => FormErrors::single("by_hand", error),
            Err(error) => {
                let settings = ClusterSettingsForm::from_site(&site);
                return render_settings(&context, &me, None, settings, form_problems(error)?);
            }
        },
        Err(problems) => problems,
    };
    show_with_problems(&context, &me, None, form, problems).await
}

/// Pins new keys, and saves the site description if it changed with them.
pub async fn pin_keys(unchecked: UncheckedClusterRequest, FormBody(form): FormBody<PinHostKeysForm>) -> HandlerResult {
    let request = unchecked.authorize(Permission::ManageClusters).await?;
    let ClusterRequest { context, me, cluster } = &request;
    let site = if form.site.is_empty() { Ok(None) } else { form.to_site().map(Some) };
    let problems = match site.and_then(|site| Ok((site, form.to_pins()?))) {
        Ok((site, pins)) => {
            let (connections, actor) = (&context.app.connections, request.actor());
            let saved = match &site {
                Some(site) => connections.update_cluster(&actor, cluster, site, Some(&pins)).await,
                None => connections.pin_host_keys(&actor, cluster, &pins).await,
            };
            match saved {
                Ok(()) => return Ok(request.redirect("", FlashMessage::HostKeysPinned)),
                Err(error @ ClusterChangeError::NoHostKey) => FormErrors::single("by_hand", error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(problems) => problems,
    };
    show_with_problems(context, me, Some(cluster), form, problems).await
}

/// Dismisses a false alarm; the pinned keys stay.
pub async fn end_alarm(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::ManageClusters).await?;
    request.context.app.connections.end_alarm(&request.actor(), &request.cluster).await?;
    Ok(request.redirect("", FlashMessage::AlarmEnded))
}

/// Scans the hosts of a new or existing cluster and shows their keys, with a site description to save along.
pub(super) async fn show_scanned(
    context: &RequestContext,
    me: &CurrentPerson,
    cluster: Option<&Arc<ClusterProfile>>,
    site: Option<&Site>,
) -> HandlerResult {
    respond(&build_page(context, me, cluster, site).await?)
}

async fn show_with_problems(
    context: &RequestContext,
    me: &CurrentPerson,
    cluster: Option<&Arc<ClusterProfile>>,
    form: PinHostKeysForm,
    problems: FormErrors,
) -> HandlerResult {
    let page = build_page(context, me, cluster, form.to_site().ok().as_ref()).await?;
    respond_with(FORM_ERROR_STATUS, &PinHostKeysPage { by_hand: form.by_hand, problems, ..page })
}

async fn build_page(
    context: &RequestContext,
    me: &CurrentPerson,
    cluster: Option<&Arc<ClusterProfile>>,
    site: Option<&Site>,
) -> Result<PinHostKeysPage, AppError> {
    let described = site.or_else(|| cluster.map(|cluster| &*cluster.site));
    let hosts = match described {
        Some(site) => scan_hosts(site).await,
        None => Vec::new(),
    };
    let mut keys = String::new();
    for host in &hosts {
        for key in host.shown.iter().flatten() {
            // Where keys are published, trust only those.
            if !host.has_published_key() || host.is_published(key) {
                let _ = writeln!(keys, "{} {}", host.hop, key.to_line());
            }
        }
    }
    let same = match site.filter(|_| cluster.is_none()) {
        Some(site) => {
            let login = hosts.iter().filter(|host| host.hop == hops::LOGIN);
            let shown: Vec<String> = login.flat_map(|host| host.shown.iter().flatten()).map(HostKey::to_line).collect();
            context.app.connections.find_same_hosts(site, &shown).await?
        }
        None => Vec::new(),
    };
    Ok(PinHostKeysPage {
        page: PageFrame::for_person(context, &me.0, "Host keys", NavSection::Clusters),
        profile: cluster.cloned(),
        title: described.map(|site| site.title.clone()).unwrap_or_default(),
        hosts,
        site: site.and_then(|site| site.to_toml().ok()).unwrap_or_default(),
        keys,
        by_hand: String::new(),
        same,
        docs: described.and_then(|site| site.docs.clone()),
        problems: FormErrors::default(),
    })
}
