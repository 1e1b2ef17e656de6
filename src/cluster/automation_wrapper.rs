//! Installs our forced command for automation hosts in a person's home folder, over their ordinary connection.

use std::sync::Arc;

use crate::sites::automation::WRAPPER_SCRIPT;
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

/// Writes to a temporary file first: a half-written program must never be started.
const INSTALL_SCRIPT: &str = "umask 022 && cat > $HOME/portolan-commands.new && chmod 755 $HOME/portolan-commands.new && mv $HOME/portolan-commands.new $HOME/portolan-commands";

/// Installs `portolan-commands` in the person's home folder. False if the cluster refused.
pub async fn install(line: &Arc<ClusterConnection>) -> Result<bool, RunCommandError> {
    let command = RemoteCommand::new("sh").args(["-c", INSTALL_SCRIPT]).input(WRAPPER_SCRIPT.as_bytes().to_vec());
    Ok(line.run(command, CallUrgency::Interactive).await?.code == 0)
}
