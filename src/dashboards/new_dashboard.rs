//! A request for a new dashboard, and its validation.

use super::DashboardKind;
use super::actions::{DashboardError, MAX_RUN_MINUTES, MIN_RUN_MINUTES};
use crate::domain::{ClusterId, DisplayName, PersonId};

/// The most folders that one can show.
pub const MAX_FOLDERS: usize = 12;

#[derive(Debug, Clone)]
pub struct NewDashboard {
    pub person: PersonId,
    pub cluster: ClusterId,
    pub kind: DashboardKind,
    /// The title; made from the folders if empty.
    pub title: String,
    /// The folders it shows: absolute paths.
    pub places: Vec<String>,
    pub minutes: u32,
    /// Account to charge; empty for the default.
    pub account: String,
    /// The token of the form it came from.
    pub form: String,
}

impl NewDashboard {
    pub(super) fn check(&self) -> Result<DisplayName, DashboardError> {
        if self.form.trim().is_empty() || self.form.len() > 100 {
            return Err(DashboardError::InvalidForm);
        }
        if !(MIN_RUN_MINUTES..=MAX_RUN_MINUTES).contains(&self.minutes) {
            return Err(DashboardError::InvalidMinutes);
        }
        check_folders(self.kind, &self.places).map_err(DashboardError::InvalidFolder)?;
        let title = if self.title.trim().is_empty() { title_from_folders(&self.places) } else { self.title.clone() };
        title.parse().map_err(DashboardError::InvalidTitle)
    }
}

/// Checks whether these folders can be shown.
pub fn check_folders(kind: DashboardKind, places: &[String]) -> Result<(), &'static str> {
    let is_path = |folder: &String| {
        folder.starts_with('/')
            && folder.len() <= 1000
            && !folder.chars().any(char::is_control)
            && !folder.split('/').any(|part| part == "..")
    };
    match (kind, places.len()) {
        (_, 0) => Err("Choose at least one folder."),
        (DashboardKind::Mlflow, 2..) => Err("MLflow shows one tracking folder or database at a time. Choose only one."),
        (_, n) if n > MAX_FOLDERS => Err("Choose at most 12 folders, or a folder that contains them."),
        _ if !places.iter().all(is_path) => {
            Err("Enter the full path of a folder. It starts with a slash (/) and has no .. in it.")
        }
        _ => Ok(()),
    }
}

/// A title made from the last two parts of the first path.
fn title_from_folders(places: &[String]) -> String {
    let parts: Vec<&str> =
        places.first().map_or("", String::as_str).split('/').filter(|part| !part.is_empty()).collect();
    let name = parts[parts.len().saturating_sub(2)..].join("/");
    let more = if places.len() > 1 { " and more" } else { "" };
    let name: String = name.chars().take(60).collect();
    if name.is_empty() { "Dashboard".to_owned() } else { format!("{name}{more}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_full_paths() {
        let check = |kind, places: &[&str]| {
            let places: Vec<String> = places.iter().map(|folder| (*folder).to_owned()).collect();
            check_folders(kind, &places).is_ok()
        };
        assert!(check(DashboardKind::TensorBoard, &["/home/alice/runs", "/scratch/it's; a \"name\""]));
        assert!(check(DashboardKind::Mlflow, &["/home/alice/mlruns"]));
        for bad in ["", "runs", "~/runs", "/a/../b", "/a\nb", "/a\0"] {
            assert!(!check(DashboardKind::TensorBoard, &[bad]), "{bad:?}");
        }
        assert!(!check(DashboardKind::TensorBoard, &[]));
        assert!(!check(DashboardKind::TensorBoard, &["/a"; 13]));
        assert!(!check(DashboardKind::Mlflow, &["/a", "/b"]));
        assert!(!check(DashboardKind::TensorBoard, &[&format!("/{}", "x".repeat(1000))]));
    }

    #[test]
    fn a_name_is_made_of_what_is_shown() {
        let title =
            |places: &[&str]| title_from_folders(&places.iter().map(|folder| (*folder).to_owned()).collect::<Vec<_>>());
        assert_eq!(title(&["/home/alice/runs/one/"]), "runs/one");
        assert_eq!(title(&["/runs"]), "runs");
        assert_eq!(title(&["/"]), "Dashboard");
        assert_eq!(title(&["/a/b", "/c"]), "a/b and more");
    }
}
