//! Adding and changing clusters, for administrators.

use std::sync::Arc;

use askama::Template;
use axum::http::header;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use crate::auth::Permission;
use crate::cluster::ClusterProfile;
use crate::cluster::administration::{ClusterChangeError, hosts_to_pin};
use crate::error::AppError;
use crate::sites::{self, RetiredSite, Site, SiteFamily, SiteLookup};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond, respond_with};
use crate::web::pages::clusters::settings_form::ClusterSettingsForm;
use crate::web::pages::clusters::{cluster_path, find_cluster, host_keys};

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
pub(super) struct ClusterSettingsPage {
    pub page: PageFrame,
    /// `None` for a new cluster.
    pub profile: Option<Arc<ClusterProfile>>,
    pub form: ClusterSettingsForm,
    /// The preset's uncertain fields.
    pub uncertain: Vec<sites::UncertainField>,
    /// The site description as a file.
    pub file: String,
    pub problems: FormErrors,
}

/// The list of presets, or the form for the chosen one.
pub async fn new(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(choice): QueryParams<NewClusterQuery>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let Some(name) = choice.preset else {
        return respond(&build_new_page(&context, &me, String::new(), FormErrors::default()));
    };
    let own = context.app.site_presets.iter().find(|site| site.name.as_str() == name).cloned();
    let site = own.or_else(|| match sites::find_site(&name) {
        SiteLookup::Site(site) => Some(site.clone()),
        _ => None,
    });
    // The list says what became of a retired cluster.
    let Some(site) = site else { return Ok(flash::see_other("/clusters/new")) };
    respond(&build_settings_page(&context, &me, None, ClusterSettingsForm::from_site(&site), FormErrors::default()))
}

/// Takes the form of a new cluster and scans its hosts for their keys.
pub async fn check_new(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ClusterSettingsForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    match form.to_site() {
        Ok(site) => host_keys::show_for_new(&context, &me, &site).await,
        Err(problems) => respond_with(FORM_ERROR_STATUS, &build_settings_page(&context, &me, None, form, problems)),
    }
}

/// The form again, for when the hosts did not answer.
pub async fn edit_new(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ClusterFileForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    match Site::from_toml(&form.file) {
        Ok(site) => {
            let form = ClusterSettingsForm::from_site(&site);
            respond(&build_settings_page(&context, &me, None, form, FormErrors::default()))
        }
        Err(error) => respond_with(
            FORM_ERROR_STATUS,
            &build_new_page(&context, &me, form.file, FormErrors::single("file", error)),
        ),
    }
}

/// Takes a site description from a file and scans its hosts for their keys.
pub async fn import(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(form): FormBody<ClusterFileForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let read = Site::from_toml(&form.file).and_then(|site| site.host().map(|_| ()).map(|()| site));
    match read {
        Ok(site) => host_keys::show_for_new(&context, &me, &site).await,
        Err(error) => respond_with(
            FORM_ERROR_STATUS,
            &build_new_page(&context, &me, form.file, FormErrors::single("file", error)),
        ),
    }
}

pub async fn show_settings(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let form = ClusterSettingsForm::from_site(&known.site);
    respond(&build_settings_page(&context, &me, Some(known), form, FormErrors::default()))
}

/// Saves the settings. If a host has changed, its keys are scanned first.
pub async fn update_settings(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    FormBody(mut form): FormBody<ClusterSettingsForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    // The short name is part of every URL and cannot change.
    form.name.clone_from(&known.row.slug);
    form.base = known.site.to_toml().map_err(|error| AppError::Internal(error.to_string()))?;
    match form.to_site() {
        Ok(site) => save_settings(context, &me, known, site).await,
        Err(problems) => {
            respond_with(FORM_ERROR_STATUS, &build_settings_page(&context, &me, Some(known), form, problems))
        }
    }
}

/// Saves a cluster's site description from a file.
pub async fn update_from_file(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(slug): PathParams<String>,
    FormBody(file): FormBody<ClusterFileForm>,
) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let read = Site::from_toml(&file.file).and_then(|site| site.host().map(|_| ()).map(|()| site));
    match read {
        Ok(mut site) => {
            site.name = known.site.name.clone();
            save_settings(context, &me, known, site).await
        }
        Err(error) => {
            let form = ClusterSettingsForm::from_site(&known.site);
            let mut page = build_settings_page(&context, &me, Some(known), form, FormErrors::single("file", error));
            page.file = file.file;
            respond_with(FORM_ERROR_STATUS, &page)
        }
    }
}

async fn save_settings(
    context: RequestContext,
    me: &CurrentPerson,
    known: Arc<ClusterProfile>,
    site: Site,
) -> HandlerResult {
    let places =
        |site: &Site| hosts_to_pin(site).into_iter().map(|(hop, host, port, _)| (hop, host, port)).collect::<Vec<_>>();
    if places(&site) != places(&known.site) {
        return host_keys::show_for_changed(&context, me, &known, &site).await;
    }
    match context.app.connections.update_cluster(&me.actor(&context), &known, &site, None).await {
        Ok(()) => Ok(flash::redirect(context, &cluster_path(&known.row.slug), FlashMessage::ClusterChanged)),
        Err(error) => {
            let problems = form_problems(error)?;
            let form = ClusterSettingsForm::from_site(&site);
            respond_with(FORM_ERROR_STATUS, &build_settings_page(&context, me, Some(known), form, problems))
        }
    }
}

/// The site description as a file.
pub async fn export(context: RequestContext, me: CurrentPerson, PathParams(slug): PathParams<String>) -> HandlerResult {
    me.may(Permission::ManageClusters)?;
    let known = find_cluster(&context.app, &slug).await?;
    let text = known.site.to_toml().map_err(|error| AppError::Internal(error.to_string()))?;
    let name = format!("attachment; filename=\"{}.toml\"", known.row.slug);
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, name)], text)
        .into_response())
}

/// Turns validation errors into field messages; any other error becomes an error page.
pub(super) fn form_problems(error: ClusterChangeError) -> Result<FormErrors, AppError> {
    Ok(match error {
        ClusterChangeError::SlugTaken => FormErrors::single("name", error),
        ClusterChangeError::Title(_) => FormErrors::single("title", error),
        ClusterChangeError::Site(_) | ClusterChangeError::NoHostKey => FormErrors::single("host", error),
        other => return Err(to_app_error(other)),
    })
}

pub(super) fn to_app_error(error: ClusterChangeError) -> AppError {
    match error {
        ClusterChangeError::Auth(error) => error.into(),
        ClusterChangeError::Store(error) => error.into(),
        other => AppError::Internal(other.to_string()),
    }
}

fn build_new_page(context: &RequestContext, me: &CurrentPerson, file: String, problems: FormErrors) -> NewClusterPage {
    let mut presets = context.app.site_presets.clone();
    // List the demo last, after what a real portal needs.
    let place = |site: &Site| (site.family == SiteFamily::AllianceLike, site.family);
    presets.sort_by(|a, b| (place(a), &a.title).cmp(&(place(b), &b.title)));
    let mut centres: Vec<PresetCentre> = Vec::new();
    for site in presets {
        let title = centre_title(site.family);
        match centres.last_mut() {
            Some(last) if last.title == title => last.sites.push(site),
            _ => centres.push(PresetCentre { title, sites: vec![site] }),
        }
    }
    let known = |name: &sites::SiteName| match sites::find_site(name.as_str()) {
        SiteLookup::Site(site) => Some(site),
        _ => None,
    };
    NewClusterPage {
        page: PageFrame::for_person(context, &me.0, "Add a cluster", NavSection::Clusters),
        centres,
        retired: sites::retired_sites()
            .iter()
            .map(|cluster| RetiredClusterPreset {
                instead: cluster.instead.iter().filter_map(known).collect(),
                cluster,
            })
            .collect(),
        file,
        problems,
    }
}

/// The heading for a family of sites.
const fn centre_title(family: SiteFamily) -> &'static str {
    match family {
        SiteFamily::Alliance => "Digital Research Alliance of Canada",
        SiteFamily::Nris => "Sigma2, Norway",
        SiteFamily::Lumi => "LUMI, Finland",
        SiteFamily::AllianceLike | SiteFamily::Other => "Anywhere else",
    }
}

pub(super) fn build_settings_page(
    context: &RequestContext,
    me: &CurrentPerson,
    known: Option<Arc<ClusterProfile>>,
    form: ClusterSettingsForm,
    problems: FormErrors,
) -> ClusterSettingsPage {
    let title = if known.is_some() { "Settings" } else { "Add a cluster" };
    let base = Site::from_toml(&form.base).ok();
    ClusterSettingsPage {
        page: PageFrame::for_person(context, &me.0, title, NavSection::Clusters),
        uncertain: base.map(|site| site.uncertain).unwrap_or_default(),
        file: form.base.clone(),
        profile: known,
        form,
        problems,
    }
}
