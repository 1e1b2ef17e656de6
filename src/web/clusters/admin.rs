//! Adding, changing and retiring clusters, for administrators.

use askama::Template;
use axum::http::header;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path, Query};
use super::super::flash::{self, Flash};
use super::super::form::Problems;
use super::super::page::{PROBLEMS, Page, Section, show, show_with};
use super::description::SettingsForm;
use super::{address, find, host_keys};
use crate::auth::Permission;
use crate::cluster::ClusterProfile;
use crate::cluster::administration::{ClusterChangeError, hosts_to_pin};
use crate::error::AppError;
use crate::sites::{self, RetiredSite, Site, SiteFamily, SiteLookup};

/// Which preset to begin with.
#[derive(Deserialize)]
pub struct Choice {
    preset: Option<String>,
}

/// A description in a file.
#[derive(Deserialize)]
pub struct FileForm {
    file: String,
}

#[derive(Template)]
#[template(path = "clusters/new.html")]
struct NewPage {
    page: Page,
    centres: Vec<Centre>,
    retired: Vec<Gone>,
    file: String,
    problems: Problems,
}

/// The presets of one centre.
struct Centre {
    title: &'static str,
    sites: Vec<Site>,
}

/// A cluster that is gone, with those to use instead.
struct Gone {
    cluster: &'static RetiredSite,
    instead: Vec<&'static Site>,
}

#[derive(Template)]
#[template(path = "clusters/settings.html")]
pub(super) struct SettingsPage {
    pub page: Page,
    /// The cluster, if it is there already.
    pub known: Option<ClusterProfile>,
    pub form: SettingsForm,
    /// What is not certain in the preset.
    pub uncertain: Vec<sites::UncertainField>,
    /// The description as a file.
    pub file: String,
    pub problems: Problems,
}

/// The list of presets, or the form of the chosen one.
pub async fn new(context: Context, me: Me, Query(choice): Query<Choice>) -> Answer {
    me.may(Permission::ManageClusters)?;
    let Some(name) = choice.preset else {
        return show(&new_page(&context, &me, String::new(), Problems::default()));
    };
    let own = context.app.site_presets.iter().find(|site| site.name.as_str() == name).cloned();
    let site = own.or_else(|| match sites::find_site(&name) {
        SiteLookup::Site(site) => Some(site.clone()),
        _ => None,
    });
    // A cluster that is gone has its sentence on the list.
    let Some(site) = site else { return Ok(flash::see_other("/clusters/new")) };
    show(&settings_page(&context, &me, None, SettingsForm::of(&site), Problems::default()))
}

/// Takes the filled-in form of a new cluster and asks its hosts for their keys.
pub async fn check(context: Context, me: Me, Form(form): Form<SettingsForm>) -> Answer {
    me.may(Permission::ManageClusters)?;
    match form.read() {
        Ok(site) => host_keys::ask_new(&context, &me, &site).await,
        Err(problems) => show_with(PROBLEMS, &settings_page(&context, &me, None, form, problems)),
    }
}

/// The form again, for someone who has seen that the hosts do not answer.
pub async fn edit(context: Context, me: Me, Form(form): Form<FileForm>) -> Answer {
    me.may(Permission::ManageClusters)?;
    match Site::from_toml(&form.file) {
        Ok(site) => {
            let form = SettingsForm::of(&site);
            show(&settings_page(&context, &me, None, form, Problems::default()))
        }
        Err(error) => {
            show_with(PROBLEMS, &new_page(&context, &me, form.file, Problems::one("file", error)))
        }
    }
}

/// Takes a description from a file and asks its hosts for their keys.
pub async fn import(context: Context, me: Me, Form(form): Form<FileForm>) -> Answer {
    me.may(Permission::ManageClusters)?;
    let read = Site::from_toml(&form.file).and_then(|site| site.host().map(|_| ()).map(|()| site));
    match read {
        Ok(site) => host_keys::ask_new(&context, &me, &site).await,
        Err(error) => {
            show_with(PROBLEMS, &new_page(&context, &me, form.file, Problems::one("file", error)))
        }
    }
}

/// The settings of a cluster.
pub async fn settings(context: Context, me: Me, Path(slug): Path<String>) -> Answer {
    me.may(Permission::ManageClusters)?;
    let known = find(&context.app, &slug).await?;
    let form = SettingsForm::of(&known.site);
    show(&settings_page(&context, &me, Some(known), form, Problems::default()))
}

/// Saves them. If a host is another one, its keys are asked for first.
pub async fn change(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(mut form): Form<SettingsForm>,
) -> Answer {
    me.may(Permission::ManageClusters)?;
    let known = find(&context.app, &slug).await?;
    // The short name is part of every address and stays.
    form.name.clone_from(&known.row.slug);
    form.base = known.site.to_toml().map_err(|error| AppError::Internal(error.to_string()))?;
    match form.read() {
        Ok(site) => save(context, &me, known, site).await,
        Err(problems) => {
            show_with(PROBLEMS, &settings_page(&context, &me, Some(known), form, problems))
        }
    }
}

/// Saves a cluster's description as it is written in a file.
pub async fn change_file(
    context: Context,
    me: Me,
    Path(slug): Path<String>,
    Form(file): Form<FileForm>,
) -> Answer {
    me.may(Permission::ManageClusters)?;
    let known = find(&context.app, &slug).await?;
    let read = Site::from_toml(&file.file).and_then(|site| site.host().map(|_| ()).map(|()| site));
    match read {
        Ok(mut site) => {
            site.name = known.site.name.clone();
            save(context, &me, known, site).await
        }
        Err(error) => {
            let form = SettingsForm::of(&known.site);
            let mut page =
                settings_page(&context, &me, Some(known), form, Problems::one("file", error));
            page.file = file.file;
            show_with(PROBLEMS, &page)
        }
    }
}

async fn save(context: Context, me: &Me, known: ClusterProfile, site: Site) -> Answer {
    let places = |site: &Site| {
        hosts_to_pin(site)
            .into_iter()
            .map(|(hop, host, port, _)| (hop, host, port))
            .collect::<Vec<_>>()
    };
    if places(&site) != places(&known.site) {
        return host_keys::ask_changed(&context, me, &known, &site).await;
    }
    match context.app.connections.update_cluster(&me.actor(&context), &known, &site, None).await {
        Ok(()) => Ok(flash::redirect(context, &address(&known.row.slug), Flash::ClusterChanged)),
        Err(error) => {
            let problems = problems(error)?;
            let form = SettingsForm::of(&site);
            show_with(PROBLEMS, &settings_page(&context, me, Some(known), form, problems))
        }
    }
}

/// Takes a cluster out of use.
pub async fn retire(context: Context, me: Me, Path(slug): Path<String>) -> Answer {
    me.may(Permission::ManageClusters)?;
    let known = find(&context.app, &slug).await?;
    context.app.connections.set_retired(&me.actor(&context), &known, true).await.map_err(fault)?;
    Ok(flash::redirect(context, &format!("{}/settings", address(&slug)), Flash::ClusterRetired))
}

/// Takes a cluster back into use.
pub async fn restore(context: Context, me: Me, Path(slug): Path<String>) -> Answer {
    me.may(Permission::ManageClusters)?;
    let known = find(&context.app, &slug).await?;
    context.app.connections.set_retired(&me.actor(&context), &known, false).await.map_err(fault)?;
    Ok(flash::redirect(context, &address(&slug), Flash::ClusterRestored))
}

/// Forgets a cluster that is out of use.
pub async fn remove(context: Context, me: Me, Path(slug): Path<String>) -> Answer {
    me.may(Permission::ManageClusters)?;
    let known = find(&context.app, &slug).await?;
    if known.row.retired_at().is_none() {
        return Err(AppError::NotFound);
    }
    context.app.connections.remove_cluster(&me.actor(&context), &known).await.map_err(fault)?;
    Ok(flash::redirect(context, "/clusters", Flash::ClusterRemoved))
}

/// The description as a file.
pub async fn export(context: Context, me: Me, Path(slug): Path<String>) -> Answer {
    me.may(Permission::ManageClusters)?;
    let known = find(&context.app, &slug).await?;
    let text = known.site.to_toml().map_err(|error| AppError::Internal(error.to_string()))?;
    let name = format!("attachment; filename=\"{}.toml\"", known.row.slug);
    Ok((
        [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
            (header::CONTENT_DISPOSITION, name),
        ],
        text,
    )
        .into_response())
}

/// What was wrong, next to its field; anything else is an error page.
pub(super) fn problems(error: ClusterChangeError) -> Result<Problems, AppError> {
    Ok(match error {
        ClusterChangeError::SlugTaken => Problems::one("name", error),
        ClusterChangeError::Title(_) => Problems::one("title", error),
        ClusterChangeError::Site(_) | ClusterChangeError::NoHostKey => Problems::one("host", error),
        other => return Err(fault(other)),
    })
}

pub(super) fn fault(error: ClusterChangeError) -> AppError {
    match error {
        ClusterChangeError::Auth(error) => error.into(),
        ClusterChangeError::Store(error) => error.into(),
        other => AppError::Internal(other.to_string()),
    }
}

fn new_page(context: &Context, me: &Me, file: String, problems: Problems) -> NewPage {
    let mut presets = context.app.site_presets.clone();
    // The demo comes after what a real portal needs.
    let place = |site: &Site| (site.family == SiteFamily::AllianceLike, site.family);
    presets.sort_by(|a, b| (place(a), &a.title).cmp(&(place(b), &b.title)));
    let mut centres: Vec<Centre> = Vec::new();
    for site in presets {
        let title = centre(site.family);
        match centres.last_mut() {
            Some(last) if last.title == title => last.sites.push(site),
            _ => centres.push(Centre { title, sites: vec![site] }),
        }
    }
    let known = |name: &sites::SiteName| match sites::find_site(name.as_str()) {
        SiteLookup::Site(site) => Some(site),
        _ => None,
    };
    NewPage {
        page: Page::for_person(context, &me.0, "Add a cluster", Section::Clusters),
        centres,
        retired: sites::retired_sites()
            .iter()
            .map(|cluster| Gone {
                instead: cluster.instead.iter().filter_map(known).collect(),
                cluster,
            })
            .collect(),
        file,
        problems,
    }
}

/// Whose clusters a family is, as a heading.
const fn centre(family: SiteFamily) -> &'static str {
    match family {
        SiteFamily::Alliance => "Digital Research Alliance of Canada",
        SiteFamily::Nris => "Sigma2, Norway",
        SiteFamily::Lumi => "LUMI, Finland",
        SiteFamily::AllianceLike | SiteFamily::Other => "Anywhere else",
    }
}

pub(super) fn settings_page(
    context: &Context,
    me: &Me,
    known: Option<ClusterProfile>,
    form: SettingsForm,
    problems: Problems,
) -> SettingsPage {
    let title = if known.is_some() { "Settings" } else { "Add a cluster" };
    let base = Site::from_toml(&form.base).ok();
    SettingsPage {
        page: Page::for_person(context, &me.0, title, Section::Clusters),
        uncertain: base.map(|site| site.uncertain).unwrap_or_default(),
        file: form.base.clone(),
        known,
        form,
        problems,
    }
}
