//! `portolan doctor`: examines this installation and says in words what is wrong and how to mend it.
//! It only looks: it creates nothing and changes nothing.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::config::Config;

mod clusters;
mod connections;
mod local;
mod portal;

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, but should be looked at.
    Warning,
    /// Does not work, or is not safe.
    Bad,
}

/// One thing that was examined.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What was examined.
    pub what: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was found, and how to mend it.
    pub words: String,
}

impl Finding {
    fn good(what: &'static str, words: impl Into<String>) -> Self {
        Self { what, verdict: Verdict::Good, words: words.into() }
    }

    fn warning(what: &'static str, words: impl Into<String>) -> Self {
        Self { what, verdict: Verdict::Warning, words: words.into() }
    }

    fn bad(what: &'static str, words: impl Into<String>) -> Self {
        Self { what, verdict: Verdict::Bad, words: words.into() }
    }
}

pub(super) async fn run(file: Option<&Path>, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let findings = examine(file).await;
    let text =
        if args.json { serde_json::to_string_pretty(&findings)? } else { describe(&findings) };
    say!("{text}");
    let bad = findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn examine(file: Option<&Path>) -> Vec<Finding> {
    let config = match Config::load(file, std::env::vars()) {
        Ok(config) => config,
        Err(error) => return vec![Finding::bad("Settings", error.to_string())],
    };
    let mut findings = vec![Finding::good("Settings", "Every setting is known and makes sense.")];
    findings.push(local::data_dir(&config));
    let vault = local::master_key(&config, &mut findings);
    local::database(&config, vault.as_ref(), &mut findings).await;
    findings.push(local::disk(&config));
    findings.extend(connections::examine(&config).await);
    findings.extend(local::privileges());
    findings.extend(clusters::examine(&config).await);
    findings.extend(portal::examine(&config, vault.as_ref()).await);
    findings
}

fn describe(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let mark = match finding.verdict {
            Verdict::Good => "good   ",
            Verdict::Warning => "WARNING",
            Verdict::Bad => "BAD    ",
        };
        format!("{mark}  {:<15} {}\n", finding.what, finding.words)
    };
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let summary = match (count(Verdict::Bad), count(Verdict::Warning)) {
        (0, 0) => "All is well.".to_owned(),
        (0, warnings) => format!("It works. {warnings} point(s) to look at."),
        (bad, _) => format!("{bad} point(s) to mend."),
    };
    findings.iter().map(line).collect::<String>() + "\n" + &summary
}
