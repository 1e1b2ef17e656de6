//! The Slurm job of a dashboard's run: what it asks for, and its script. Pure. What people chose goes into the script
//! as quoted words, or as JSON that only `server.py` reads: none of it can become a command.

mod request;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use self::request::{allowed_minutes, build_request};
use super::{DashboardKind, read_only};
use crate::recipes::quoting::quote_word;
use crate::recipes::request::JobRequest;
use crate::sites::Site;

/// The most folders per dashboard.
pub const MAX_JOB_FOLDERS: usize = 50;
/// The longest path.
const MAX_PATH_LEN: usize = 4000;
/// A lock that has not changed for this many seconds belongs to a dead job.
const STALE_AFTER_S: u32 = 60;
/// `MLflow` versions below this have known security holes, so they are only ever shown read-only.
const MLFLOW_WRITABLE_FROM: [u32; 3] = [3, 15, 0];

const SERVER_PY: &str = include_str!("server.py");
const RUN_SH: &str = include_str!("job/run.sh");

/// What is needed to launch one run of a dashboard.
#[derive(Debug, Clone)]
pub struct LaunchPlan<'a> {
    pub kind: DashboardKind,
    /// What it shows: log folders, or for `MLflow` one tracking folder or database file. Absolute paths.
    pub places: &'a [String],
    /// The run's own folder, `BASE/boards/<name>`; the submission creates it.
    pub folder: &'a str,
    /// Where the environment is kept: `<home>/.portolan` or `<scratch>/.portolan`.
    pub base: &'a str,
    pub site: &'a Site,
    /// What it asks Slurm for; [`build_request`] makes one. [`render_script`] sets its folder and output.
    pub request: JobRequest,
}

/// Why there is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchPlanError {
    #[error("Choose at least one folder.")]
    NoFolder,
    /// More folders than a dashboard can show.
    #[error("Choose at most {0} folders.")]
    TooMany(usize),
    /// Not a path that can be shown.
    #[error("“{0}” isn't a full path. A full path starts with a slash and has no line breaks.")]
    InvalidPath(String),
}

/// The file that `server.py` reads.
#[derive(Serialize)]
struct ServerPlanFile<'a> {
    kind: &'a str,
    folder: &'a str,
    places: &'a [String],
    rules: Vec<(&'a str, &'a str)>,
    whole_from: [u32; 3],
}

/// The packages of a kind: the exact versions that were tested, and the general requirements.
struct DashboardPackages {
    program: &'static str,
    exact: &'static str,
    fitting: &'static str,
    least_python: &'static str,
}

const fn packages_for(kind: DashboardKind) -> DashboardPackages {
    match kind {
        DashboardKind::TensorBoard => DashboardPackages {
            program: "tensorboard",
            exact: include_str!("job/tensorboard.exact"),
            fitting: include_str!("job/tensorboard.fitting"),
            least_python: "3, 9",
        },
        DashboardKind::Mlflow => DashboardPackages {
            program: "mlflow",
            exact: include_str!("job/mlflow.exact"),
            fitting: include_str!("job/mlflow.fitting"),
            least_python: "3, 10",
        },
    }
}

pub fn render_script(plan: &LaunchPlan) -> Result<String, LaunchPlanError> {
    check_plan(plan)?;
    let mut request = plan.request.clone();
    request.folder = Some(plan.folder.to_owned());
    request.output = Some(format!("{}/job-%j.out", plan.folder.replace('%', "%%")));
    let mut text = String::from("#!/bin/bash\n");
    for directive in request.directives(plan.site.jobs.gpu_option) {
        text.push_str(&directive.to_line());
        text.push('\n');
    }
    text.push_str("# A Portolan dashboard. Only the portal can reach it. It runs until it is stopped or its time limit is reached.\n");
    text.push_str(&render_variables(plan));
    text.push_str(&render_files(plan));
    text.push_str(RUN_SH);
    Ok(text)
}

fn check_plan(plan: &LaunchPlan) -> Result<(), LaunchPlanError> {
    let most = if plan.kind == DashboardKind::Mlflow { 1 } else { MAX_JOB_FOLDERS };
    if plan.places.is_empty() {
        return Err(LaunchPlanError::NoFolder);
    }
    if plan.places.len() > most {
        return Err(LaunchPlanError::TooMany(most));
    }
    let is_path = |path: &str| {
        path.starts_with('/')
            && path.len() <= MAX_PATH_LEN
            && !path.chars().any(char::is_control)
            && !path.split('/').any(|step| step == "..")
    };
    let paths = plan.places.iter().map(String::as_str).chain([plan.folder, plan.base]);
    for path in paths {
        if !is_path(path) {
            return Err(LaunchPlanError::InvalidPath(path.to_owned()));
        }
    }
    Ok(())
}

/// What differs from run to run, as bash variables.
fn render_variables(plan: &LaunchPlan) -> String {
    let (jobs, packages) = (&plan.site.jobs, packages_for(plan.kind));
    let pinned = packages
        .exact
        .lines()
        .find(|line| line.split_once("==").is_some_and(|(name, _)| name.eq_ignore_ascii_case(packages.program)));
    let modules = jobs.modules.get("python").map(String::as_str).unwrap_or_default();
    let source = plan.site.shell.prepare.as_ref().and_then(|prepare| prepare.source.as_deref());
    let yes = |is: bool| if is { "yes" } else { "no" };
    let area = if plan.base.starts_with("/scratch") { "scratch" } else { "your own folders" };
    let list = |words: Vec<String>| format!("({})", words.join(" "));
    [
        ("kind", quote_word(plan.kind.as_str())),
        ("title", quote_word(plan.kind.title())),
        ("folder", quote_word(plan.folder)),
        ("base", quote_word(plan.base)),
        ("name", quote_word(&environment_name(plan))),
        ("program", quote_word(packages.program)),
        ("pinned", quote_word(pinned.unwrap_or(packages.program))),
        ("least_python", quote_word(packages.least_python)),
        ("stale_after", STALE_AFTER_S.to_string()),
        ("wheelhouse", yes(jobs.wheelhouse).to_owned()),
        ("containers", yes(jobs.containers_only).to_owned()),
        ("proxy", quote_word(jobs.proxy.as_deref().unwrap_or_default())),
        ("area", quote_word(area)),
        ("module_source", quote_word(source.unwrap_or_default())),
        ("modules", list(modules.split_whitespace().map(quote_word).collect())),
        ("binds", list(container_binds(plan).iter().flat_map(|top| ["--bind".to_owned(), quote_word(top)]).collect())),
    ]
    .map(|(name, value)| format!("{name}={value}\n"))
    .concat()
}

/// The environment's name: other packages make another environment.
fn environment_name(plan: &LaunchPlan) -> String {
    let packages = packages_for(plan.kind);
    let how = if plan.site.jobs.containers_only {
        "container"
    } else if plan.site.jobs.wheelhouse {
        "wheelhouse"
    } else {
        "pip"
    };
    let digest = Sha256::new().chain_update(how).chain_update(packages.exact).chain_update(packages.fitting).finalize();
    let mut name = format!("{}-", plan.kind);
    for byte in digest.iter().take(5) {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// What a container can see: whole file systems, because commas and colons would break a container's list of folders.
fn container_binds(plan: &LaunchPlan) -> Vec<String> {
    let top = |path: &str| path.split('/').nth(1).map(|first| format!("/{first}"));
    let mut tops: Vec<String> = plan.places.iter().map(String::as_str).chain([plan.folder]).filter_map(top).collect();
    tops.retain(|top| !top.contains([',', ':']) && top.len() > 1);
    tops.sort();
    tops.dedup();
    tops
}

/// The files that the script writes. Each ends with a marker line that none of them contains.
fn render_files(plan: &LaunchPlan) -> String {
    let packages = packages_for(plan.kind);
    let given = ServerPlanFile {
        kind: plan.kind.as_str(),
        folder: plan.folder,
        places: plan.places,
        rules: read_only::rules(plan.kind).collect(),
        whole_from: MLFLOW_WRITABLE_FROM,
    };
    // Control characters were refused, and JSON has no line breaks of its own.
    let given = serde_json::to_string(&given).unwrap_or_default();
    let file =
        |name: &str, text: &str| format!("cat > {name} <<'END_OF_THE_FILE'\n{}\nEND_OF_THE_FILE\n", text.trim_end());
    format!(
        "write_files() {{\n{}{}{}{}}}\n",
        file("plan.json", &given),
        file("exact.txt", packages.exact),
        file("fitting.txt", packages.fitting),
        file("server.py", SERVER_PY),
    )
}
