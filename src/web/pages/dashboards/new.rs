//! A new dashboard: its kind, cluster, folders and run time. Doesn't contact any cluster.

use askama::Template;

use crate::auth::Permission;
use crate::cluster::folders::FolderVariables;
use crate::dashboards::new_dashboard::MAX_FOLDERS;
use crate::dashboards::{DashboardError, DashboardKind, DashboardWithRuns, NewDashboard};
use crate::domain::ClusterId;
use crate::error::AppError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, QueryParams, RequestContext};
use crate::web::http::flash::see_other;
use crate::web::http::form_errors::FormErrors;
use crate::web::http::page_frame::{NavSection, PageFrame, respond_with};
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::form::new_nonce;
use crate::web::pages::compose::form_values::FormFields;
use crate::web::pages::dashboards::choose_cluster::{self, UnavailableClusters};
use crate::web::pages::dashboards::job_folders::DashboardJob;
use crate::web::pages::dashboards::{cost, dashboard_path, minute_choices, to_app_error};

/// Longer input is cut when it is shown again.
const MAX_SHOWN_LEN: usize = 1000;

#[derive(Template)]
#[template(path = "dashboards/new.html")]
struct NewDashboardPage {
    page: PageFrame,
    problems: FormErrors,
    form: NewDashboardForm,
    targets: Vec<ComposeTarget>,
    /// Clusters that aren't available.
    others: Vec<UnavailableClusters>,
    /// `None` if there is no cluster to choose.
    fields: Option<NewDashboardChoices>,
}

/// The fields that depend on the chosen cluster.
struct NewDashboardChoices {
    target: ComposeTarget,
    /// Folders of earlier dashboards, and whether they are selected.
    recent: Vec<(String, bool)>,
    /// The URL of the folder suggestions.
    suggestions_url: String,
    /// The values of the folder fields.
    inputs: Vec<String>,
    can_add: bool,
    minutes: Vec<(String, String, bool)>,
    /// Accounts to choose from: value, label, whether it is selected.
    accounts: Vec<(String, String, bool)>,
    cost: String,
    /// A running dashboard of the person that already shows one of the folders: its name and URL.
    running: Option<(String, String)>,
}

/// What a form or a link asks for.
#[derive(Debug, Clone)]
struct NewDashboardForm {
    kind: DashboardKind,
    cluster: String,
    places: Vec<String>,
    minutes: String,
    account: Option<String>,
    title: String,
    nonce: String,
    /// The job whose folders are to be selected, until they are.
    job: String,
    /// Whether the form is only shown again, not submitted.
    is_preview: bool,
    /// Whether to add one more field.
    is_add: bool,
}

impl NewDashboardForm {
    fn parse(fields: FormFields) -> Self {
        let mut form = Self {
            kind: DashboardKind::TensorBoard,
            cluster: String::new(),
            places: Vec::new(),
            minutes: String::new(),
            account: None,
            title: String::new(),
            nonce: String::new(),
            job: String::new(),
            is_preview: false,
            is_add: false,
        };
        for (name, value) in fields {
            match name.as_str() {
                "kind" => form.kind = value.parse().unwrap_or(DashboardKind::TensorBoard),
                "cluster" => form.cluster = value,
                "place" => {
                    let value = value.trim();
                    let is_new = !form.places.iter().any(|place| place == value);
                    if !value.is_empty() && is_new && form.places.len() <= MAX_FOLDERS {
                        form.places.push(value.to_owned());
                    }
                }
                "minutes" => form.minutes = value,
                "account" => form.account = Some(value),
                "title" => form.title = value,
                "form" => form.nonce = value,
                "job" => form.job = value,
                "look" => form.is_preview = true,
                "add" => (form.is_preview, form.is_add) = (true, true),
                _ => {}
            }
        }
        form
    }
}

/// The form. Links may bring initial values along; nothing is submitted.
pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(fields): QueryParams<FormFields>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let mut form = NewDashboardForm { nonce: new_nonce()?, is_add: false, ..NewDashboardForm::parse(fields) };
    if form.places.is_empty() {
        form.places = job_places(&context, &me, &form).await?;
    }
    render_form(&context, &me, form, FormErrors::default()).await
}

/// What is known about a job's folders while its cluster can't be searched: folders of earlier dashboards inside the job's,
/// or the job's own folder. Many jobs can share that one, so where it can be searched, what was written decides.
async fn job_places(
    context: &RequestContext,
    me: &CurrentPerson,
    form: &NewDashboardForm,
) -> Result<Vec<String>, AppError> {
    let Some(job) = DashboardJob::find(context, me, &form.cluster, &form.job).await? else { return Ok(Vec::new()) };
    let (targets, _) = choose_cluster::list_clusters(context, me, &form.cluster).await?;
    let target = targets.iter().find(|target| target.cluster().slug == form.cluster);
    let target = target.filter(|target| !target.is_connected && job.has_own_folder(&target.account.discovered));
    let Some(target) = target else { return Ok(Vec::new()) };
    let recent = choose_cluster::recent_folders(context, target, form.kind).await?;
    let mut places: Vec<String> = recent.into_iter().filter(|path| job.contains(path)).collect();
    if places.is_empty() {
        places.push(job.folder);
    }
    Ok(places)
}

/// Creates the dashboard and redirects to its page, or shows the form again.
pub async fn post(context: RequestContext, me: CurrentPerson, FormBody(fields): FormBody<FormFields>) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let form = NewDashboardForm::parse(fields);
    if form.is_preview {
        return render_form(&context, &me, form, FormErrors::default()).await;
    }
    let (targets, _) = choose_cluster::list_clusters(&context, &me, &form.cluster).await?;
    let Some(target) = targets.iter().find(|target| target.cluster().slug == form.cluster) else {
        let problems = FormErrors::single("cluster", "Choose one of your clusters.");
        return render_form(&context, &me, form, problems).await;
    };
    let names = FolderVariables::from_facts(&target.account.discovered);
    let mut problems = FormErrors::default();
    let minutes = parse_minutes(&form, target, &mut problems);
    let account = parse_account(&form, target, &mut problems);
    let new_dashboard = NewDashboard {
        person: me.0.person.id,
        cluster: target.cluster().id,
        kind: form.kind,
        title: form.title.clone(),
        places: resolve_paths(&form.places, &names),
        minutes,
        account,
        form: form.nonce.clone(),
    };
    if problems.is_empty() {
        match context.app.dashboards.create(&me.actor(&context), &new_dashboard).await {
            Ok(id) => return Ok(see_other(&dashboard_path(id))),
            Err(error) => add_problem(error, &mut problems)?,
        }
    }
    render_form(&context, &me, form, problems).await
}

/// Adds the error to the field that it is about.
fn add_problem(error: DashboardError, problems: &mut FormErrors) -> Result<(), AppError> {
    let field = match &error {
        DashboardError::InvalidFolder(_) => "place",
        DashboardError::InvalidMinutes => "minutes",
        DashboardError::InvalidTitle(_) => "title",
        DashboardError::NotConnected | DashboardError::TooMany => "cluster",
        _ => return Err(to_app_error(error)),
    };
    problems.add(field, error);
    Ok(())
}

/// The full paths, each once. A path that begins with an unknown variable stays as it is, and is refused later.
fn resolve_paths(places: &[String], names: &FolderVariables) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for place in places {
        let path = names.expand(place).unwrap_or_else(|| place.clone());
        let path = match path.trim_end_matches('/') {
            "" => path,
            trimmed => trimmed.to_owned(),
        };
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn parse_minutes(form: &NewDashboardForm, target: &ComposeTarget, problems: &mut FormErrors) -> u32 {
    let (least, most, _) = choose_cluster::time_limits(target);
    let minutes = form.minutes.trim().parse().ok().filter(|minutes| (least..=most).contains(minutes));
    if minutes.is_none() {
        problems.add("minutes", "Choose one of the listed times.");
    }
    minutes.unwrap_or(least)
}

fn parse_account(form: &NewDashboardForm, target: &ComposeTarget, problems: &mut FormErrors) -> String {
    let account = form.account.clone().unwrap_or_default();
    if !account.is_empty() && !target.compose_context.accounts.iter().any(|known| known.name == account) {
        problems.add("account", "Choose one of your accounts.");
        return String::new();
    }
    account
}

async fn render_form(
    context: &RequestContext,
    me: &CurrentPerson,
    form: NewDashboardForm,
    problems: FormErrors,
) -> HandlerResult {
    let (targets, others) = choose_cluster::list_clusters(context, me, &form.cluster).await?;
    let fields = match compose_target::choose(&targets, &form.cluster) {
        Some(target) => Some(NewDashboardChoices::load(context, me, &form, target.clone()).await?),
        None => None,
    };
    let page = PageFrame::for_person(context, &me.0, "New dashboard", NavSection::Dashboards);
    respond_with(problems.status(), &NewDashboardPage { page, problems, form, targets, others, fields })
}

impl NewDashboardChoices {
    async fn load(
        context: &RequestContext,
        me: &CurrentPerson,
        form: &NewDashboardForm,
        target: ComposeTarget,
    ) -> Result<Self, AppError> {
        let (least, most, default) = choose_cluster::time_limits(&target);
        let minutes = form.minutes.trim().parse().unwrap_or(default);
        let account = match &form.account {
            Some(account) => account.clone(),
            None => choose_cluster::last_used_account(context, &target).await?,
        };
        let recent = choose_cluster::recent_folders(context, &target, form.kind).await?;
        let names = FolderVariables::from_facts(&target.account.discovered);
        // Selected recent folders need no field of their own; folders from a link are written the way forms write them.
        let typed = form.places.iter().filter(|place| !recent.contains(place));
        let mut inputs: Vec<String> =
            typed.map(|place| names.abbreviate(&place.chars().take(MAX_SHOWN_LEN).collect::<String>())).collect();
        if inputs.is_empty() || form.is_add {
            inputs.push(String::new());
        }
        Ok(Self {
            recent: recent.into_iter().map(|path| (path.clone(), form.places.contains(&path))).collect(),
            suggestions_url: suggestions_path(&target, form),
            can_add: form.kind == DashboardKind::TensorBoard && inputs.len() < MAX_FOLDERS,
            inputs,
            minutes: minute_choices(most, least, minutes),
            accounts: account_choices(&target, &account),
            cost: cost::cost_text(form.kind, minutes.clamp(least, most), &account, &target.compose_context),
            running: find_running(context, me, form, target.cluster().id).await?,
            target,
        })
    }
}

/// A dashboard of the person that runs, or is on its way, and shows one of the form's folders: its name and URL.
async fn find_running(
    context: &RequestContext,
    me: &CurrentPerson,
    form: &NewDashboardForm,
    cluster: ClusterId,
) -> Result<Option<(String, String)>, AppError> {
    if form.places.is_empty() {
        return Ok(None);
    }
    let all = context.app.dashboards.list(&me.0.viewer).await?;
    let running = all.into_iter().filter(DashboardWithRuns::is_open).map(|status| status.dashboard).find(|one| {
        one.person_id == me.0.person.id
            && one.cluster_id == cluster
            && one.kind == form.kind.as_str()
            && one.places().iter().any(|place| form.places.contains(place))
    });
    Ok(running.map(|one| (one.title.clone(), dashboard_path(one.id))))
}

/// The URL of the folder suggestions. Folders that are already selected aren't offered again.
fn suggestions_path(target: &ComposeTarget, form: &NewDashboardForm) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("cluster", &target.cluster().slug).append_pair("kind", form.kind.as_str());
    for place in &form.places {
        query.append_pair("place", place);
    }
    if !form.job.is_empty() {
        query.append_pair("job", &form.job);
    }
    format!("/dashboards/found?{}", query.finish())
}

/// The accounts to choose from, if there is a choice.
fn account_choices(target: &ComposeTarget, chosen: &str) -> Vec<(String, String, bool)> {
    let all = &target.compose_context.accounts;
    let is_required = target.compose_context.site.jobs.account_required;
    if all.is_empty() || (all.len() == 1 && !is_required) {
        return Vec::new();
    }
    let mut options: Vec<(String, String, bool)> =
        all.iter().map(|account| (account.name.clone(), account.name.clone(), account.name == chosen)).collect();
    if !is_required {
        let label = "No account: let Slurm use your default".to_owned();
        options.insert(0, (String::new(), label, chosen.is_empty()));
    }
    options
}

impl NewDashboardPage {
    /// The label of the first field.
    fn place_label(&self) -> &'static str {
        match self.form.kind {
            DashboardKind::TensorBoard => "Folder with event files",
            DashboardKind::Mlflow => "Tracking folder (mlruns) or database file (mlflow.db)",
        }
    }

    /// What the browse button beside it can pick.
    fn pick(&self) -> &'static str {
        match self.form.kind {
            DashboardKind::TensorBoard => "folder",
            DashboardKind::Mlflow => "any",
        }
    }

    fn is_kind(&self, kind: DashboardKind) -> bool {
        self.form.kind == kind
    }
}
