//! Discovery after connecting: a few commands that find out what the cluster offers.

use std::sync::Arc;
use std::time::Duration;

use super::discovered_facts::{DISCOVERY_SCRIPT, DiscoveredFacts, DiscoveryAnswers};
use crate::domain::ConnectionRole;
use crate::sites::automation::{AutomationTestOutcome, explain_outcome};
use crate::sites::{JobOptionRule, Site};
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
    let look_around = Some(discovered.as_str());
    let facts = DiscoveredFacts::from_answers(DiscoveryAnswers { look_around, ..DiscoveryAnswers::default() }, &[]);
    connection.set_dialect(dialect_for(&facts));
    let said = ask_slurm(connection, site, user).await;
    DiscoveryResult { facts: said.to_facts(look_around, site), unusable_reason: None }
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
    let said = ask_slurm(connection, site, user).await;
    let mut facts = said.to_facts(None, site);
    facts.missing.clear();
    for (program, result) in
        [("squeue", &queue), ("scontrol", &said.config), ("sinfo", &said.sinfo), ("sacctmgr", &said.assoc)]
    {
        match command_outcome(program, result) {
            AutomationTestOutcome::Works => facts.tools.push(program.to_owned()),
            other => facts.missing.extend(explain_outcome(&other)),
        }
    }
    facts.missing.dedup();
    let useless = facts.tools.is_empty().then(|| {
        let wrapper_missing = [&queue, &said.config].iter().all(|answer| is_wrapper_missing(answer));
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

/// What Slurm's commands said.
struct SlurmDiscoveryResults {
    config: DiscoveryCommandResult,
    sinfo: DiscoveryCommandResult,
    /// None where jobs name no partition.
    partition_access: Option<DiscoveryCommandResult>,
    assoc: DiscoveryCommandResult,
}

impl SlurmDiscoveryResults {
    fn to_facts(&self, look_around: Option<&str>, site: &Site) -> DiscoveredFacts {
        let [config, sinfo, assoc] = [&self.config, &self.sinfo, &self.assoc].map(answer_text);
        let partition_access = self.partition_access.as_ref().and_then(answer_text);
        let answers = DiscoveryAnswers {
            look_around,
            config: config.as_deref(),
            sinfo: sinfo.as_deref(),
            partition_access: partition_access.as_deref(),
            assoc: assoc.as_deref(),
        };
        DiscoveredFacts::from_answers(answers, &site.jobs.account_suffixes)
    }
}

async fn ask_slurm(connection: &Arc<ClusterConnection>, site: &Site, user: &str) -> SlurmDiscoveryResults {
    let ask = async |program, args: Vec<String>| {
        connection.run(RemoteCommand::new(program).args(args), CallUrgency::Interactive).await
    };
    let words = |args: &[&str]| args.iter().map(|word| (*word).to_owned()).collect();
    let access = async {
        let is_asked = site.jobs.partition != JobOptionRule::Never;
        let args = words(slurm::partition_access::ARGS);
        if is_asked { Some(ask(slurm::partition_access::PROGRAM, args).await) } else { None }
    };
    let (config, sinfo, partition_access, assoc) = tokio::join!(
        ask(slurm::config::PROGRAM, words(slurm::config::ARGS)),
        ask(slurm::partitions::PROGRAM, words(slurm::partitions::ARGS)),
        access,
        // User names were checked when they were entered, so there are always arguments.
        ask(slurm::associations::PROGRAM, slurm::associations::args(user).unwrap_or_default()),
    );
    SlurmDiscoveryResults { config, sinfo, partition_access, assoc }
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
