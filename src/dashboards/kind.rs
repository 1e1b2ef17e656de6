//! The kinds of dashboards.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DashboardKind {
    /// Curves from folders of event files.
    TensorBoard,
    /// Runs, their parameters and their files, from a tracking folder or a database file.
    Mlflow,
}

/// There is no kind with this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Choose TensorBoard or MLflow.")]
pub struct DashboardKindParseError;

impl DashboardKind {
    /// All kinds, in the order in which pages offer them.
    pub const ALL: [Self; 2] = [Self::TensorBoard, Self::Mlflow];

    /// The code in URLs, in the database and in file names.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TensorBoard => "tensorboard",
            Self::Mlflow => "mlflow",
        }
    }

    /// The name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::TensorBoard => "TensorBoard",
            Self::Mlflow => "MLflow",
        }
    }

    /// The name of its jobs.
    pub const fn job_name(self) -> &'static str {
        match self {
            Self::TensorBoard => "dashboard-tensorboard",
            Self::Mlflow => "dashboard-mlflow",
        }
    }
}

impl FromStr for DashboardKind {
    type Err = DashboardKindParseError;

    fn from_str(text: &str) -> Result<Self, DashboardKindParseError> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(DashboardKindParseError)
    }
}

impl fmt::Display for DashboardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for kind in DashboardKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(kind.job_name(), format!("dashboard-{kind}"));
        }
        assert_eq!("TensorBoard".parse::<DashboardKind>(), Err(DashboardKindParseError));
    }
}
