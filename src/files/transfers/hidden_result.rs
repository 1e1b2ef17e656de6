//! What a transfer creates as a whole, a folder or a file: it has a hidden name until it is finished. If the work is
//! interrupted, what has the hidden name goes, and it begins anew; nothing is ever there twice.

use serde::{Deserialize, Serialize};

use super::TransferError;
use super::delete::remove_tree;
use super::free_name::find_free_path;
use super::partial_file::temporary_name;
use super::worker::TransferRun;
use crate::domain::{RemoteName, RemotePath};
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RenameMode, SftpError};

/// How often a name is chosen again because someone else took it meanwhile.
const MAX_TRIES: u32 = 5;

/// Saved before the result gets its name, so that a restart finds out whether it has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct HiddenResultCheckpoint {
    /// The hidden name's path, encoded.
    hidden: Option<String>,
    /// The path that it gets or has, encoded.
    target: Option<String>,
    /// What to know about the result.
    message: String,
    /// How often it was begun.
    attempt: u32,
}

/// What to do, given what an earlier try left.
pub(super) enum HiddenResultStart {
    /// It is there already; says what to know about it.
    Finished(String),
    /// Create it under this hidden name.
    Begin(RemotePath),
}

/// Removes what an earlier try left unfinished in this folder, and chooses a hidden name. `what` is part of it.
pub(super) async fn start(
    run: &TransferRun,
    session: &TransferSession,
    folder: &RemotePath,
    what: &str,
) -> Result<HiddenResultStart, TransferError> {
    let saved: HiddenResultCheckpoint = serde_json::from_str(&run.transfer.checkpoint).unwrap_or_default();
    let earlier = saved.hidden.as_deref().and_then(|path| RemotePath::from_encoded(path).ok());
    if let Some(earlier) = &earlier {
        if is_finished(session, earlier, saved.target.as_deref()).await? {
            return Ok(HiddenResultStart::Finished(saved.message));
        }
        remove_tree(&run.connection, earlier).await?;
    }
    // Another name each time: what was on its way when the work was stopped may still arrive.
    let attempt = saved.attempt + 1;
    let hidden = folder.join(&temporary_name(&run.transfer, &format!("{what}-{attempt}"))?);
    run.progress.set_done(0, 0);
    let checkpoint = HiddenResultCheckpoint { hidden: Some(hidden.to_encoded()), attempt, ..Default::default() };
    run.progress.set_checkpoint(&checkpoint);
    run.save().await?;
    Ok(HiddenResultStart::Begin(hidden))
}

/// Whether the result has its name: nothing has the hidden name, and something has this one.
async fn is_finished(
    session: &TransferSession,
    hidden: &RemotePath,
    target: Option<&str>,
) -> Result<bool, TransferError> {
    let Some(target) = target.and_then(|target| RemotePath::from_encoded(target).ok()) else { return Ok(false) };
    for (path, is_expected) in [(hidden, false), (&target, true)] {
        let is_there = match session.lstat(path).await {
            Ok(_) => true,
            Err(SftpError::NotFound) => false,
            Err(error) => return Err(error.into()),
        };
        if is_there != is_expected {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Gives the result its name, or that name with a number. `describe` gets the path and says what to know.
pub(super) async fn publish(
    run: &TransferRun,
    session: &TransferSession,
    hidden: &RemotePath,
    (folder, name): (&RemotePath, &RemoteName),
    describe: impl Fn(&RemotePath) -> String,
) -> Result<String, TransferError> {
    let saved: HiddenResultCheckpoint = serde_json::from_str(&run.progress.to_saved().1).unwrap_or_default();
    let attempt = saved.attempt;
    for number in 1..=MAX_TRIES {
        let target = find_free_path(session, folder, name).await?;
        let message = describe(&target);
        run.progress.set_checkpoint(&HiddenResultCheckpoint {
            hidden: Some(hidden.to_encoded()),
            target: Some(target.to_encoded()),
            message: message.clone(),
            attempt,
        });
        run.save().await?;
        match session.rename(hidden, &target, RenameMode::KeepExisting).await {
            Ok(()) => return Ok(message),
            Err(SftpError::AlreadyExists) if number < MAX_TRIES => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(TransferError::Failed(format!(
        "There are already too many items named like {name}. Rename some of them, then try again."
    )))
}

/// Removes the hidden result of work that can't be done; what was interrupted is tried again. Only for what this work
/// created: what had the name before isn't ours.
pub(super) async fn clean_up<T>(
    run: &TransferRun,
    hidden: &RemotePath,
    result: Result<T, TransferError>,
) -> Result<T, TransferError> {
    if let Err(TransferError::Failed(_)) = &result {
        let _ = remove_tree(&run.connection, hidden).await;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_can_be_read_with_and_without_all_fields() {
        let read: HiddenResultCheckpoint = serde_json::from_str(r#"{"hidden": "/a/.portolan-1-x.part"}"#).unwrap();
        assert_eq!((read.hidden.as_deref(), read.target, read.attempt), (Some("/a/.portolan-1-x.part"), None, 0));
        assert_eq!(serde_json::from_str::<HiddenResultCheckpoint>("{}").unwrap(), HiddenResultCheckpoint::default());
    }
}
