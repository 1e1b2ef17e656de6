//! Discovery after connecting: a few commands that find out what the cluster offers.

use std::sync::Arc;
use std::time::Duration;

use super::discovered_facts::{DISCOVERY_SCRIPT, DiscoveredFacts};
use crate::domain::ConnectionRole;
use crate::sites::Site;
use crate::sites::automation::{AutomationTestOutcome, explain_outcome};
use crate::slurm;
use crate::ssh::{CallUrgency, ClusterConnection, CommandOutput, RemoteCommand, RemoteCommandMode, RunCommandError};

/// A login with all its start-up files can be slow.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(40);

/// What discovery found over a connection.
pub struct DiscoveryResult {
    pub facts: DiscoveredFacts,
    /// Set if no command can run, so the connection is useless. The reason, as a sentence.
    pub unusable_reason: Option<String>,
}

pub async fn discover(
    connection: &Arc<ClusterConnection>,
    site: &Site,
    role: ConnectionRole,
    user: &str,
) -> DiscoveryResult {
    match role {
        ConnectionRole::Login => discover_login_host(connection, site, user).await,
        ConnectionRole::Automation => discover_automation_host(connection, site, user).await,
    }
}

async fn discover_login_host(connection: &Arc<ClusterConnection>, site: &Site, user: &str) -> DiscoveryResult {
    let command =
        RemoteCommand::new("bash").args(["-l", "-c"]).arg(login_script(site)).with_deadline(DISCOVERY_TIMEOUT);
    let discovered = match connection.run(command, CallUrgency::Interactive).await {
        Ok(output) => output.stdout_text(),
        Err(error) => {
            return DiscoveryResult { facts: DiscoveredFacts::default(), unusable_reason: Some(error.to_string()) };
        }
    };
    let facts = DiscoveredFacts::from_answers(Some(&discovered), None, None, None, &[]);
    connection.set_dialect(dialect_for(&facts));
    let (config, sinfo, assoc) = ask_slurm(connection, user).await;
    let parts = [&config, &sinfo, &assoc].map(answer_text);
    let [config, sinfo, assoc] = parts.each_ref().map(Option::as_deref);
    let suffixes = &site.jobs.account_suffixes;
    DiscoveryResult {
        facts: DiscoveredFacts::from_answers(Some(&discovered), config, sinfo, assoc, suffixes),
        unusable_reason: None,
    }
}

/// An automation host allows only a few commands; trying them shows which.
async fn discover_automation_host(connection: &Arc<ClusterConnection>, site: &Site, user: &str) -> DiscoveryResult {
    connection.set_dialect(RemoteCommandMode::Automation);
    let queue = RemoteCommand::new("squeue").args(["--me", "-h", "-o", "%i"]);
    let queue = connection.run(queue, CallUrgency::Interactive).await;
    if let Err(error @ (RunCommandError::NotConnected | RunCommandError::ConnectionLost | RunCommandError::TimedOut)) =
        &queue
    {
        return DiscoveryResult { facts: DiscoveredFacts::default(), unusable_reason: Some(error.to_string()) };
    }
    let (config, sinfo, assoc) = ask_slurm(connection, user).await;
    let parts = [&config, &sinfo, &assoc].map(answer_text);
    let [config_text, sinfo_text, assoc_text] = parts.each_ref().map(Option::as_deref);
    let suffixes = &site.jobs.account_suffixes;
    let mut facts = DiscoveredFacts::from_answers(None, config_text, sinfo_text, assoc_text, suffixes);
    facts.missing.clear();
    for (program, result) in [("squeue", &queue), ("scontrol", &config), ("sinfo", &sinfo), ("sacctmgr", &assoc)] {
        match command_outcome(program, result) {
            AutomationTestOutcome::Works => facts.tools.push(program.to_owned()),
            other => facts.missing.extend(explain_outcome(&other)),
        }
    }
    facts.missing.dedup();
    let useless = facts.tools.is_empty().then(|| {
        let wrapper_missing = [&queue, &config].iter().all(|answer| is_wrapper_missing(answer));
        if wrapper_missing { WRAPPER_MISSING_HELP.to_owned() } else { facts.missing.join(" ") }
    });
    DiscoveryResult { facts, unusable_reason: useless }
}

/// What to do if the key is bound to a program that does not exist.
const WRAPPER_MISSING_HELP: &str = "The program that your key is restricted to wasn't found on the cluster. Copy it there, make it executable, and check that its path matches the one on the centre's key page.";

/// A shell that cannot find the key's program names that program, not the requested command.
fn is_wrapper_missing(answer: &DiscoveryCommandResult) -> bool {
    answer.as_ref().is_ok_and(|output| {
        let said = output.stderr_text();
        output.code >= 126 && !said.contains("squeue") && !said.contains("scontrol")
    })
}

fn command_outcome(program: &str, result: &Result<CommandOutput, RunCommandError>) -> AutomationTestOutcome {
    match result {
        Ok(output) if output.code == 127 || output.stderr_text().contains("not found") => {
            AutomationTestOutcome::NoSlurm
        }
        Ok(_) => AutomationTestOutcome::Works,
        Err(_) => AutomationTestOutcome::CommandRefused(program.to_owned()),
    }
}

type DiscoveryCommandResult = Result<CommandOutput, RunCommandError>;

async fn ask_slurm(
    connection: &Arc<ClusterConnection>,
    user: &str,
) -> (DiscoveryCommandResult, DiscoveryCommandResult, DiscoveryCommandResult) {
    let ask = async |program, args: Vec<String>| {
        connection.run(RemoteCommand::new(program).args(args), CallUrgency::Interactive).await
    };
    let words = |args: &[&str]| args.iter().map(|word| (*word).to_owned()).collect();
    tokio::join!(
        ask(slurm::config::PROGRAM, words(slurm::config::ARGS)),
        ask(slurm::partitions::PROGRAM, words(slurm::partitions::ARGS)),
        // User names were checked when they were entered, so there are always arguments.
        ask(slurm::associations::PROGRAM, slurm::associations::args(user).unwrap_or_default()),
    )
}

/// How to write commands for a cluster that was discovered before.
pub fn dialect_for(facts: &DiscoveredFacts) -> RemoteCommandMode {
    if facts.env.is_empty() {
        return RemoteCommandMode::Bare;
    }
    RemoteCommandMode::Shell(facts.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The discovery script, after the site's own setup.
fn login_script(site: &Site) -> String {
    match &site.shell.prepare {
        Some(prepare) => {
            let source = prepare.source.as_ref().map(|file| format!(". {file}; ")).unwrap_or_default();
            format!("{source}module load {}; {DISCOVERY_SCRIPT}", prepare.module)
        }
        None => DISCOVERY_SCRIPT.to_owned(),
    }
}

/// Standard output, or standard error: both are informative.
fn answer_text(result: &DiscoveryCommandResult) -> Option<String> {
    let output = result.as_ref().ok()?;
    Some(if output.code == 0 { output.stdout_text() } else { output.stderr_text() })
}
