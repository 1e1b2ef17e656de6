//! Adding and changing clusters, for administrators.

use std::sync::Arc;

use askama::Template;
use axum::http::header;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use crate::auth::Permission;
use crate::cluster::ClusterProfile;
use crate::cluster::administration::{ClusterChangeError, hosts_to_pin};
use crate::cluster::same_cluster::SameClusterEntry;
use crate::error::AppError;
use crate::sites::{self, RetiredSite, Site, SiteFamily, SiteLookupResult};
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::pages::clusters::settings_form::ClusterSettingsForm;
use crate::web::pages::clusters::{ClusterRequest, UncheckedClusterRequest, host_keys};

/// The preset to start from.
#[derive(Deserialize)]
pub struct NewClusterQuery {
    preset: Option<String>,
}

/// A site description as a file.
#[derive(Deserialize)]
pub struct ClusterFileForm {
    file: String,
}

impl ClusterFileForm {
    /// The site description, if it is complete.
    fn to_site(&self) -> Result<Site, FormErrors> {
        let site = Site::from_toml(&self.file).and_then(|site| site.host().map(|_| ()).map(|()| site));
        site.map_err(|error| FormErrors::single("file", error))
    }
}

#[derive(Template)]
#[template(path = "clusters/new.html")]
struct NewClusterPage {
    page: PageFrame,
    centres: Vec<PresetCentre>,
    retired: Vec<RetiredClusterPreset>,
    file: String,
    problems: FormErrors,
}

struct PresetCentre {
    title: &'static str,
    sites: Vec<Site>,
}

/// A preset for a retired cluster, with its replacements.
struct RetiredClusterPreset {
    cluster: &'static RetiredSite,
    instead: Vec<&'static Site>,
}

#[derive(Template)]
#[template(path = "clusters/settings.html")]
struct ClusterAdminPage {
    page: PageFrame,
    heading: String,
    /// `None` for a new cluster.
    profile: Option<Arc<ClusterProfile>>,
    form: ClusterSettingsForm,
    /// Other entries that lead to the same Slurm cluster.
    same: Vec<SameClusterEntry>,
    /// The preset's uncertain fields.
    uncertain: Vec<sites::UncertainSiteFact>,
    /// The site description as a file.
    file: String,
    problems: FormErrors,
}

/// The list of presets, or the form for the chosen one.
pub async fn new(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<NewClusterQuery>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let Some(name) = query.preset else {
        return render_new_page(&context, &me, String::new(), FormErrors::default());
    };
    let own = context.app.site_presets.iter().find(|site| site.name.as_str() == name);
    // The list says what became of a retired cluster.
    let Some(site) = own.or_else(|| find_shipped_site(&name)) else { return Ok(flash::see_other("/clusters/new")) };
    render_settings(&context, &me, None, ClusterSettingsForm::from_preset(site), FormErrors::default())
}

/// Takes the form of a new cluster and scans its hosts for their keys.
pub async fn check_new(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ClusterSettingsForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    match form.to_site() {
        Ok(site) => scan_new(&context, &me, &site, form).await,
        Err(problems) => render_settings(&context, &me, None, form, problems),
    }
}

/// Scans a new cluster's hosts for their keys. A short name that is taken is noticed before anyone compares keys.
async fn scan_new(
    context: &RequestContext,
    me: &CurrentPerson,
    site: &Site,
    form: ClusterSettingsForm,
) -> HandlerResult {
    let taken = store::clusters::find_by_slug(&mut *context.app.store.read().await?, site.name.as_str()).await?;
    if taken.is_some() {
        return render_settings(context, me, None, form, form_problems(ClusterChangeError::SlugTaken)?);
    }
    host_keys::show_scanned(context, me, None, Some(site)).await
}

/// The form again, for when the hosts did not answer.
pub async fn edit_new(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ClusterFileForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    match Site::from_toml(&form.file) {
        Ok(site) => render_settings(&context, &me, None, ClusterSettingsForm::from_site(&site), FormErrors::default()),
        Err(error) => render_new_page(&context, &me, form.file, FormErrors::single("file", error)),
    }
}

/// Takes a site description from a file and scans its hosts for their keys.
pub async fn import(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ClusterFileForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    match form.to_site() {
        Ok(site) => scan_new(&context, &me, &site, ClusterSettingsForm::from_site(&site)).await,
        Err(problems) => render_new_page(&context, &me, form.file, problems),
    }
}

pub async fn show_settings(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let ClusterRequest { context, me, cluster } = unchecked.authorize(Permission::ManageClusters).await?;
    let form = ClusterSettingsForm::from_site(&cluster.site);
    let same = context.app.connections.find_same_slurm(cluster.row.id).await?;
    let page = ClusterAdminPage::new(&context, &me, Some(cluster), form, FormErrors::default());
    respond(&ClusterAdminPage { same, ..page })
}

/// Saves the settings. If a host has changed, its keys are scanned first.
pub async fn update_settings(
    unchecked: UncheckedClusterRequest,
    FormBody(mut form): FormBody<ClusterSettingsForm>,
) -> HandlerResult {
    let request = unchecked.authorize(Permission::ManageClusters).await?;
    // The short name is part of every URL and cannot change.
    form.name.clone_from(&request.cluster.row.slug);
    form.base = request.cluster.site.to_toml().map_err(|error| AppError::Internal(error.to_string()))?;
    match form.to_site() {
        Ok(site) => save_settings(request, site).await,
        Err(problems) => render_settings(&request.context, &request.me, Some(request.cluster), form, problems),
    }
}

/// Saves a cluster's site description from a file.
pub async fn update_from_file(
    unchecked: UncheckedClusterRequest,
    FormBody(form): FormBody<ClusterFileForm>,
) -> HandlerResult {
    let request = unchecked.authorize(Permission::ManageClusters).await?;
    match form.to_site() {
        Ok(mut site) => {
            site.name = request.cluster.site.name.clone();
            save_settings(request, site).await
        }
        Err(problems) => {
            let ClusterRequest { context, me, cluster } = request;
            let saved = ClusterSettingsForm::from_site(&cluster.site);
            let mut page = ClusterAdminPage::new(&context, &me, Some(cluster), saved, problems);
            page.file = form.file;
            respond_with(FORM_ERROR_STATUS, &page)
        }
    }
}

async fn save_settings(request: ClusterRequest, site: Site) -> HandlerResult {
    let hosts =
        |site: &Site| hosts_to_pin(site).into_iter().map(|(hop, host, port, _)| (hop, host, port)).collect::<Vec<_>>();
    if hosts(&site) != hosts(&request.cluster.site) {
        return host_keys::show_scanned(&request.context, &request.me, Some(&request.cluster), Some(&site)).await;
    }
    let connections = &request.context.app.connections;
    match connections.update_cluster(&request.actor(), &request.cluster, &site, None).await {
        Ok(()) => Ok(request.redirect("", FlashMessage::ClusterChanged)),
        Err(error) => {
            let (form, problems) = (ClusterSettingsForm::from_site(&site), form_problems(error)?);
            render_settings(&request.context, &request.me, Some(request.cluster), form, problems)
        }
    }
}

/// The site description as a file.
pub async fn export(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let ClusterRequest { cluster, .. } = unchecked.authorize(Permission::ManageClusters).await?;
    let text = cluster.site.to_toml().map_err(|error| AppError::Internal(error.to_string()))?;
    let name = format!("attachment; filename=\"{}.toml\"", cluster.row.slug);
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, name)], text)
        .into_response())
}

/// Turns validation errors into field messages; any other error becomes an error page.
pub(super) fn form_problems(error: ClusterChangeError) -> Result<FormErrors, AppError> {
    Ok(match error {
        ClusterChangeError::SlugTaken => FormErrors::single("name", error),
        ClusterChangeError::Title(_) => FormErrors::single("title", error),
        ClusterChangeError::Site(_) | ClusterChangeError::NoHostKey => FormErrors::single("host", error),
        other => return Err(other.into()),
    })
}

impl From<ClusterChangeError> for AppError {
    fn from(error: ClusterChangeError) -> Self {
        match error {
            ClusterChangeError::Auth(error) => error.into(),
            ClusterChangeError::Store(error) => error.into(),
            other => Self::Internal(other.to_string()),
        }
    }
}

fn find_shipped_site(name: &str) -> Option<&'static Site> {
    match sites::find_site(name) {
        SiteLookupResult::Site(site) => Some(site),
        _ => None,
    }
}

fn render_new_page(context: &RequestContext, me: &CurrentPerson, file: String, problems: FormErrors) -> HandlerResult {
    let mut presets = context.app.site_presets.clone();
    // List the demo last, after what a real portal needs.
    let order = |site: &Site| (site.family == SiteFamily::AllianceLike, site.family);
    presets.sort_by(|a, b| (order(a), &a.title).cmp(&(order(b), &b.title)));
    let mut centres: Vec<PresetCentre> = Vec::new();
    for site in presets {
        let title = centre_title(site.family);
        match centres.last_mut() {
            Some(last) if last.title == title => last.sites.push(site),
            _ => centres.push(PresetCentre { title, sites: vec![site] }),
        }
    }
    let retired = |cluster: &'static RetiredSite| RetiredClusterPreset {
        cluster,
        instead: cluster.instead.iter().filter_map(|name| find_shipped_site(name.as_str())).collect(),
    };
    let page = NewClusterPage {
        page: PageFrame::for_person(context, &me.0, "Add a cluster", NavSection::Clusters),
        centres,
        retired: sites::retired_sites().iter().map(retired).collect(),
        file,
        problems,
    };
    respond_with(page.problems.status(), &page)
}

/// The heading for a family of sites.
const fn centre_title(family: SiteFamily) -> &'static str {
    match family {
        SiteFamily::Alliance => "Digital Research Alliance of Canada",
        SiteFamily::Nris => "Sigma2, Norway",
        SiteFamily::Lumi => "LUMI, Finland",
        SiteFamily::AllianceLike | SiteFamily::Other => "Other clusters",
    }
}

pub(super) fn render_settings(
    context: &RequestContext,
    me: &CurrentPerson,
    cluster: Option<Arc<ClusterProfile>>,
    form: ClusterSettingsForm,
    problems: FormErrors,
) -> HandlerResult {
    let page = ClusterAdminPage::new(context, me, cluster, form, problems);
    respond_with(page.problems.status(), &page)
}

impl ClusterAdminPage {
    /// Whether one of these fields was rejected, so that its section is open.
    fn has_error(&self, fields: &[&str]) -> bool {
        fields.iter().any(|field| !self.problems.of(field).is_empty())
    }

    fn new(
        context: &RequestContext,
        me: &CurrentPerson,
        cluster: Option<Arc<ClusterProfile>>,
        form: ClusterSettingsForm,
        problems: FormErrors,
    ) -> Self {
        let title = if cluster.is_some() { "Settings" } else { "Add a cluster" };
        let base = Site::from_toml(&form.base).ok();
        let preset_title = base.as_ref().map_or(title, |site| &site.title);
        Self {
            heading: if form.title.is_empty() { preset_title } else { &form.title }.to_owned(),
            page: PageFrame::for_person(context, &me.0, title, NavSection::Clusters),
            same: Vec::new(),
            uncertain: base.map(|site| site.uncertain).unwrap_or_default(),
            file: form.base.clone(),
            profile: cluster,
            form,
            problems,
        }
    }
}
