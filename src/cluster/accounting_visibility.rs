//! Whose jobs a person sees in the accounting of a cluster: one round trip.

use std::sync::Arc;
use std::time::Duration;

use super::queue::nonce;
use crate::slurm::accounting::visibility::{self, AccountingVisibility};
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

const SACCTMGR_TIMEOUT: Duration = Duration::from_secs(30);

/// Asks about a remote user. `hides_jobs` is what Slurm's own configuration says.
pub async fn load_accounting_visibility(
    connection: &Arc<ClusterConnection>,
    user: &str,
    hides_jobs: bool,
) -> Result<AccountingVisibility, RunCommandError> {
    let marks = nonce()?;
    let ask = |args: Vec<String>| RemoteCommand::new(visibility::PROGRAM).args(args).with_deadline(SACCTMGR_TIMEOUT);
    let config = ask(visibility::CONFIG_ARGS.iter().map(|word| (*word).to_owned()).collect());
    let mut commands = vec![config];
    commands.extend(visibility::user_args(user).map(ask));
    let batch = RemoteCommand::batch(&marks, &commands).map_err(RunCommandError::from)?;
    let output = connection.run(batch, CallUrgency::Background).await?;
    let answers: Vec<String> = output
        .split_batch(&marks)
        .into_iter()
        .map(|part| part.filter(|reply| reply.code == 0).map(|reply| reply.stdout_text()).unwrap_or_default())
        .collect();
    let answer = |place: usize| answers.get(place).map_or("", String::as_str);
    Ok(AccountingVisibility::parse(answer(0), answer(1), hides_jobs))
}
