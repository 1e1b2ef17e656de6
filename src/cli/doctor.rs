//! `portolan doctor`: checks this installation and explains what is wrong and how to fix it. Read-only: it creates
//! nothing and changes nothing.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::config::Config;
use crate::format;
use crate::probe::data_dir_name;

mod clusters;
mod connections;
mod installation;
mod portal;

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DoctorVerdict {
    Good,
    /// Works, but needs attention.
    Warning,
    /// Broken or unsafe.
    Bad,
}

/// The result of one check.
#[derive(Debug, Serialize)]
pub struct DoctorFinding {
    /// What was checked.
    pub what: &'static str,
    pub verdict: DoctorVerdict,
    /// What was found, and how to fix it.
    pub words: String,
}

impl DoctorFinding {
    fn good(what: &'static str, words: impl Into<String>) -> Self {
        Self { what, verdict: DoctorVerdict::Good, words: words.into() }
    }

    fn warning(what: &'static str, words: impl Into<String>) -> Self {
        Self { what, verdict: DoctorVerdict::Warning, words: words.into() }
    }

    fn bad(what: &'static str, words: impl Into<String>) -> Self {
        Self { what, verdict: DoctorVerdict::Bad, words: words.into() }
    }
}

pub(super) async fn run(file: Option<&Path>, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let findings = run_checks(file).await;
    let text = if args.json { serde_json::to_string_pretty(&findings)? } else { format_findings(&findings) };
    say!("{text}");
    let bad = findings.iter().any(|finding| finding.verdict == DoctorVerdict::Bad);
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn run_checks(file: Option<&Path>) -> Vec<DoctorFinding> {
    let config = match Config::load(file, std::env::vars()) {
        Ok(config) => config,
        Err(error) => return vec![DoctorFinding::bad("Settings", error.to_string())],
    };
    let mut findings = vec![describe_instance(file, &config)];
    findings.push(DoctorFinding::good("Settings", "All settings are valid."));
    findings.push(installation::check_data_dir(&config));
    let vault = installation::check_master_key(&config, &mut findings);
    installation::check_database(&config, vault.as_ref(), &mut findings).await;
    findings.push(installation::check_disk(&config));
    findings.extend(connections::check_connections(&config).await);
    findings.extend(installation::check_privileges());
    findings.extend(clusters::check_clusters(&config).await);
    findings.extend(portal::check_portal(&config, vault.as_ref()).await);
    findings
}

/// Which installation is checked, so that nobody takes another one for theirs.
fn describe_instance(file: Option<&Path>, config: &Config) -> DoctorFinding {
    let settings = file.map_or_else(
        || "without a settings file".to_owned(),
        |file| format!("with the settings in {}", data_dir_name(file)),
    );
    let words = format!(
        "Portolan {} for {}, {settings}, on the data folder {}.",
        env!("CARGO_PKG_VERSION"),
        config.portal.public_url,
        data_dir_name(&config.data_dir)
    );
    DoctorFinding::good("Instance", words)
}

fn format_findings(findings: &[DoctorFinding]) -> String {
    let line = |finding: &DoctorFinding| {
        let mark = match finding.verdict {
            DoctorVerdict::Good => "good   ",
            DoctorVerdict::Warning => "WARNING",
            DoctorVerdict::Bad => "BAD    ",
        };
        format!("{mark}  {:<15} {}\n", finding.what, finding.words)
    };
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).map(|_| 1_u64).sum::<u64>();
    let summary = match (count(DoctorVerdict::Bad), count(DoctorVerdict::Warning)) {
        (0, 0) => "Everything works.".to_owned(),
        (0, warnings) => format!("Everything works, with {}.", format::count(warnings, "warning")),
        (bad, _) => format!("{} to fix.", format::count(bad, "problem")),
    };
    findings.iter().map(line).collect::<String>() + "\n" + &summary
}
