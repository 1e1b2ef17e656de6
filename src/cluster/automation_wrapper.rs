//! Putting our forced command for automation hosts into a person's home, over their ordinary connection.

use std::sync::Arc;

use crate::sites::automation::WRAPPER_SCRIPT;
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

/// Writes beside the file first: a half-written program must never be started.
const INSTALL_SCRIPT: &str = "umask 022 && cat > $HOME/portolan-commands.new && chmod 755 $HOME/portolan-commands.new && mv $HOME/portolan-commands.new $HOME/portolan-commands";

/// Puts `portolan-commands` into the person's home folder. False if the cluster did not let us.
pub async fn install(line: &Arc<ClusterConnection>) -> Result<bool, RunCommandError> {
    let command = RemoteCommand::new("sh")
        .args(["-c", INSTALL_SCRIPT])
        .input(WRAPPER_SCRIPT.as_bytes().to_vec());
    Ok(line.run(command, CallUrgency::Interactive).await?.code == 0)
}
