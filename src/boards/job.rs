//! The Slurm job that a board's run is: what it asks for, and its script. Pure. What people chose goes into the script
//! as quoted words, or as JSON that only `server.py` reads: nothing of it can become a command.

mod request;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use self::request::{minutes, request};
use super::{Kind, allowed};
use crate::recipes::quoting::word;
use crate::recipes::request::Request;
use crate::sites::Site;

/// Most folders of one board.
pub const MOST_PLACES: usize = 50;
/// Longest path of one.
const LONGEST_PLACE: usize = 4000;
/// A lock that has not moved for so many seconds belongs to a job that has died.
const STALE_AFTER_S: u32 = 60;
/// Versions of `MLflow` below this have known holes, so that they are only ever shown read-only.
const MLFLOW_WHOLE_FROM: [u32; 3] = [3, 15, 0];

const SERVER: &str = include_str!("server.py");
const RUN: &str = include_str!("job/run.sh");

/// One run of a board.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// What it is.
    pub kind: Kind,
    /// What it shows: log folders, or for `MLflow` one tracking folder or database file. Whole paths.
    pub places: &'a [String],
    /// The run's own folder, `BASE/boards/<name>`; made by the submission.
    pub folder: &'a str,
    /// Where the environment is kept: `<home>/.portolan` or `<scratch>/.portolan`.
    pub base: &'a str,
    /// Where it runs.
    pub site: &'a Site,
    /// What it asks for; [`request`] makes one. Its folder and output are set by [`script`].
    pub request: Request,
}

/// Why there is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing to show.
    #[error("Choose at least one folder.")]
    NoPlace,
    /// More than a board can show.
    #[error("Choose at most {0} of them.")]
    TooMany(usize),
    /// Not a path that can be shown.
    #[error("“{0}” is not a whole path. It begins with a slash and has no line breaks.")]
    Place(String),
}

/// What `server.py` reads.
#[derive(Serialize)]
struct Given<'a> {
    kind: &'a str,
    folder: &'a str,
    places: &'a [String],
    rules: Vec<(&'a str, &'a str)>,
    whole_from: [u32; 3],
}

/// The packages of a kind: exactly those that were tested, and what they need in general.
struct Packages {
    program: &'static str,
    exact: &'static str,
    fitting: &'static str,
    least_python: &'static str,
}

const fn packages(kind: Kind) -> Packages {
    match kind {
        Kind::TensorBoard => Packages {
            program: "tensorboard",
            exact: include_str!("job/tensorboard.exact"),
            fitting: include_str!("job/tensorboard.fitting"),
            least_python: "3, 9",
        },
        Kind::Mlflow => Packages {
            program: "mlflow",
            exact: include_str!("job/mlflow.exact"),
            fitting: include_str!("job/mlflow.fitting"),
            least_python: "3, 10",
        },
    }
}

/// The whole script.
pub fn script(plan: &Plan) -> Result<String, PlanError> {
    check(plan)?;
    let mut request = plan.request.clone();
    request.folder = Some(plan.folder.to_owned());
    request.output = Some(format!("{}/job-%j.out", plan.folder.replace('%', "%%")));
    let mut text = String::from("#!/bin/bash\n");
    for directive in request.directives(plan.site.jobs.gpu_option) {
        text.push_str(&directive.line());
        text.push('\n');
    }
    text.push_str("# A board of the portal. It is served to the portal only, until it is stopped or its time is up.\n");
    text.push_str(&variables(plan));
    text.push_str(&files(plan));
    text.push_str(RUN);
    Ok(text)
}

fn check(plan: &Plan) -> Result<(), PlanError> {
    let most = if plan.kind == Kind::Mlflow { 1 } else { MOST_PLACES };
    if plan.places.is_empty() {
        return Err(PlanError::NoPlace);
    }
    if plan.places.len() > most {
        return Err(PlanError::TooMany(most));
    }
    let is_path = |path: &str| {
        path.starts_with('/')
            && path.len() <= LONGEST_PLACE
            && !path.chars().any(char::is_control)
            && !path.split('/').any(|step| step == "..")
    };
    let paths = plan.places.iter().map(String::as_str).chain([plan.folder, plan.base]);
    for path in paths {
        if !is_path(path) {
            return Err(PlanError::Place(path.to_owned()));
        }
    }
    Ok(())
}

/// What differs from run to run, as words of bash.
fn variables(plan: &Plan) -> String {
    let (jobs, packages) = (&plan.site.jobs, packages(plan.kind));
    let pinned = packages.exact.lines().find(|line| {
        line.split_once("==").is_some_and(|(name, _)| name.eq_ignore_ascii_case(packages.program))
    });
    let modules = jobs.modules.get("python").map(String::as_str).unwrap_or_default();
    let source = plan.site.shell.prepare.as_ref().and_then(|prepare| prepare.source.as_deref());
    let yes = |is: bool| if is { "yes" } else { "no" };
    let area = if plan.base.starts_with("/scratch") { "scratch" } else { "your own folders" };
    let list = |words: Vec<String>| format!("({})", words.join(" "));
    [
        ("kind", word(plan.kind.as_str())),
        ("title", word(plan.kind.title())),
        ("folder", word(plan.folder)),
        ("base", word(plan.base)),
        ("name", word(&environment(plan))),
        ("program", word(packages.program)),
        ("pinned", word(pinned.unwrap_or(packages.program))),
        ("least_python", word(packages.least_python)),
        ("stale_after", STALE_AFTER_S.to_string()),
        ("wheelhouse", yes(jobs.wheelhouse).to_owned()),
        ("containers", yes(jobs.containers_only).to_owned()),
        ("proxy", word(jobs.proxy.as_deref().unwrap_or_default())),
        ("area", word(area)),
        ("module_source", word(source.unwrap_or_default())),
        ("modules", list(modules.split_whitespace().map(word).collect())),
        (
            "binds",
            list(binds(plan).iter().flat_map(|top| ["--bind".to_owned(), word(top)]).collect()),
        ),
    ]
    .map(|(name, value)| format!("{name}={value}\n"))
    .concat()
}

/// The environment's name: other packages make another environment.
fn environment(plan: &Plan) -> String {
    let packages = packages(plan.kind);
    let how = if plan.site.jobs.containers_only {
        "container"
    } else if plan.site.jobs.wheelhouse {
        "wheelhouse"
    } else {
        "pip"
    };
    let digest = Sha256::new()
        .chain_update(how)
        .chain_update(packages.exact)
        .chain_update(packages.fitting)
        .finalize();
    let mut name = format!("{}-", plan.kind);
    for byte in digest.iter().take(5) {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// What a container sees: whole file systems, since a container's list of folders stumbles over commas and colons.
fn binds(plan: &Plan) -> Vec<String> {
    let top = |path: &str| path.split('/').nth(1).map(|first| format!("/{first}"));
    let mut tops: Vec<String> =
        plan.places.iter().map(String::as_str).chain([plan.folder]).filter_map(top).collect();
    tops.retain(|top| !top.contains([',', ':']) && top.len() > 1);
    tops.sort();
    tops.dedup();
    tops
}

/// The files that the script writes. Their ends are marked by lines that none of them has.
fn files(plan: &Plan) -> String {
    let packages = packages(plan.kind);
    let given = Given {
        kind: plan.kind.as_str(),
        folder: plan.folder,
        places: plan.places,
        rules: allowed::rules(plan.kind).collect(),
        whole_from: MLFLOW_WHOLE_FROM,
    };
    // Control characters were refused, and JSON has no line breaks of its own.
    let given = serde_json::to_string(&given).unwrap_or_default();
    let file = |name: &str, text: &str| {
        format!("cat > {name} <<'END_OF_THE_FILE'\n{}\nEND_OF_THE_FILE\n", text.trim_end())
    };
    format!(
        "write_files() {{\n{}{}{}{}}}\n",
        file("plan.json", &given),
        file("exact.txt", packages.exact),
        file("fitting.txt", packages.fitting),
        file("server.py", SERVER),
    )
}
