//! Items that are being deleted have hidden names: each is renamed before anything in it goes. So a deletion that is
//! interrupted never touches what gets the old name meanwhile, and what is left can get its name back.

use std::collections::{BTreeSet, HashMap};

use futures_util::StreamExt as _;
use futures_util::stream;
use serde::{Deserialize, Serialize};

use super::REQUESTS_AT_ONCE;
use crate::domain::RemotePath;
use crate::files::transfers::TransferError;
use crate::files::transfers::partial_file::temporary_name;
use crate::files::transfers::worker::TransferRun;
use crate::format;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RenameMode, SftpError};
use crate::store::transfers::Transfer;

/// A deletion that has waited longer than this for its turn or a connection asks its owner first.
const MAX_WAIT_SECS: i64 = 3600;

/// What an earlier run did with the items.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct DeletionCheckpoint {
    stage: DeletionStage,
    /// Items that are gone, by their place in the selection.
    gone: BTreeSet<usize>,
    /// Items that can't be renamed, so that they are deleted under their own name.
    unhidden: BTreeSet<usize>,
    /// Whether the owner resumed it, and so wants what has these names now to be deleted.
    is_confirmed: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DeletionStage {
    /// Nothing has happened.
    #[default]
    New,
    /// Items are being renamed, or got their names back; nothing is deleted in this stage.
    Hiding,
    /// All that can be renamed are, and are being deleted.
    Hidden,
}

/// What to do with an item, given what an earlier run left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemStep {
    Hide,
    /// It has its hidden name.
    Delete,
    Gone,
    /// What has its name may be something else by now.
    Ask,
}

impl DeletionCheckpoint {
    fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Whether so much time went by before it began that its items may be others by now.
    fn has_waited_too_long(&self, waited_secs: i64) -> bool {
        self.stage == DeletionStage::New && !self.is_confirmed && waited_secs > MAX_WAIT_SECS
    }

    fn next_step(&self, index: usize, has_hidden: bool, has_original: bool) -> ItemStep {
        match self.stage {
            _ if self.gone.contains(&index) => ItemStep::Gone,
            _ if has_hidden => ItemStep::Delete,
            DeletionStage::New => ItemStep::Hide,
            DeletionStage::Hidden if !self.unhidden.contains(&index) => ItemStep::Gone,
            _ if !has_original => ItemStep::Gone,
            _ if self.is_confirmed => ItemStep::Hide,
            _ => ItemStep::Ask,
        }
    }
}

/// The checkpoint once the owner has resumed the deletion.
pub(in crate::files::transfers) fn confirm(checkpoint: &str) -> String {
    let confirmed = DeletionCheckpoint { is_confirmed: true, ..DeletionCheckpoint::parse(checkpoint) };
    serde_json::to_string(&confirmed).unwrap_or_default()
}

/// The items of a deletion.
pub(super) struct HiddenItems {
    items: Vec<HiddenItem>,
    checkpoint: DeletionCheckpoint,
}

#[derive(Clone)]
struct HiddenItem {
    index: usize,
    /// As its owner chose it.
    chosen: RemotePath,
    /// The same without links on the way.
    original: RemotePath,
    hidden: RemotePath,
}

/// What became of items that got their names back.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::files::transfers) struct RestoredItems {
    restored: u64,
    /// Those whose name is taken, and what they are called instead.
    stuck: Vec<(RemotePath, RemotePath)>,
}

impl HiddenItems {
    pub(super) async fn locate(
        session: &TransferSession,
        transfer: &Transfer,
        checkpoint: &str,
    ) -> Result<Self, TransferError> {
        let folder = transfer.folder();
        let checkpoint = DeletionCheckpoint::parse(checkpoint);
        if checkpoint.stage != DeletionStage::New && !is_there(session, &folder).await? {
            // Items with hidden names may be wherever it is now.
            return Err(TransferError::Failed(format!("{folder} isn't there any more. Move it back if you moved it.")));
        }
        let real = session.real_path(&folder).await?;
        let item = |(index, name)| -> Result<HiddenItem, TransferError> {
            let hidden = real.join(&temporary_name(transfer, &format!("delete-{index}"))?);
            Ok(HiddenItem { index, chosen: folder.join(&name), original: real.join(&name), hidden })
        };
        let items = transfer.names().into_iter().enumerate().map(item).collect::<Result<_, _>>()?;
        Ok(Self { items, checkpoint })
    }

    /// Renames what is to be deleted. Returns the paths to delete. Asks the owner where an earlier run was interrupted
    /// before an item was renamed: what has its name now may be something else.
    pub(super) async fn hide(
        &mut self,
        run: &TransferRun,
        session: &TransferSession,
    ) -> Result<Vec<RemotePath>, TransferError> {
        let is_new = self.checkpoint.stage == DeletionStage::New;
        if self.checkpoint.has_waited_too_long(run.core.clock.now().0 - run.transfer.created_at.0) {
            return Err(TransferError::NeedsOwner(WAITED.to_owned()));
        }
        let looks = self.items.clone().into_iter().map(|item: HiddenItem| async move {
            let has_hidden = !is_new && is_there(session, &item.hidden).await?;
            let has_original = is_new || is_there(session, &item.original).await?;
            Ok::<_, TransferError>((item, has_hidden, has_original))
        });
        let (mut to_hide, mut to_ask, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        let mut looks = stream::iter(looks).buffered(REQUESTS_AT_ONCE);
        while let Some(looked) = looks.next().await {
            let (item, has_hidden, has_original) = looked?;
            match self.checkpoint.next_step(item.index, has_hidden, has_original) {
                ItemStep::Hide => to_hide.push(item),
                ItemStep::Delete => paths.push(item.hidden),
                ItemStep::Gone => {
                    self.checkpoint.gone.insert(item.index);
                }
                ItemStep::Ask => to_ask.push(item.chosen),
            }
        }
        drop(looks);
        if let Some(first) = to_ask.first() {
            return Err(TransferError::NeedsOwner(question(first, to_ask.len())));
        }
        self.checkpoint.stage = DeletionStage::Hiding;
        self.checkpoint.is_confirmed = false;
        self.checkpoint.unhidden.clear();
        // Saved first: after a restart, what has one of the hidden names is known to be ours.
        save(run, &self.checkpoint).await?;
        let renames = to_hide.into_iter().map(|item: HiddenItem| async move {
            let renamed = session.rename(&item.original, &item.hidden, RenameMode::KeepExisting).await;
            (item, renamed)
        });
        let mut renames = stream::iter(renames).buffered(REQUESTS_AT_ONCE);
        while let Some((item, renamed)) = renames.next().await {
            match renamed {
                Ok(()) => paths.push(item.hidden),
                Err(SftpError::NotFound) => {
                    self.checkpoint.gone.insert(item.index);
                }
                Err(error @ SftpError::Run(_)) => return Err(error.into()),
                // Its folder doesn't allow it, or something is mounted there.
                Err(_) => {
                    self.checkpoint.unhidden.insert(item.index);
                    paths.push(item.original);
                }
            }
        }
        drop(renames);
        self.checkpoint.stage = DeletionStage::Hidden;
        save(run, &self.checkpoint).await?;
        Ok(paths)
    }

    /// What paths are called in sentences: by the hidden or real path of their item.
    pub(super) fn shown_names(&self) -> HashMap<RemotePath, RemotePath> {
        let both = |item: &HiddenItem| {
            [(item.hidden.clone(), item.chosen.clone()), (item.original.clone(), item.chosen.clone())]
        };
        self.items.iter().flat_map(both).collect()
    }

    /// Gives what is left its name back, after a failure.
    pub(super) async fn restore(
        &mut self,
        run: &TransferRun,
        session: &TransferSession,
    ) -> Result<RestoredItems, TransferError> {
        let left = self.find_left(session).await?;
        self.checkpoint.stage = DeletionStage::Hiding;
        // Saved first: after a restart, what has its name again isn't taken for deleted.
        save(run, &self.checkpoint).await?;
        self.rename_back(session, &left).await
    }

    /// Does the same for a deletion that is over.
    pub(super) async fn restore_cancelled(
        &mut self,
        session: &TransferSession,
    ) -> Result<RestoredItems, TransferError> {
        let left = self.find_left(session).await?;
        self.rename_back(session, &left).await
    }

    /// Finds the items with hidden names; notes which are gone.
    async fn find_left(&mut self, session: &TransferSession) -> Result<BTreeSet<usize>, TransferError> {
        let mut left = BTreeSet::new();
        if self.checkpoint.stage == DeletionStage::New {
            return Ok(left);
        }
        let items = self.items.iter().filter(|item| !self.checkpoint.gone.contains(&item.index)).cloned();
        let looks = items.collect::<Vec<_>>().into_iter().map(|item: HiddenItem| async move {
            let is_left = is_there(session, &item.hidden).await;
            (item.index, is_left)
        });
        let mut looks = stream::iter(looks).buffered(REQUESTS_AT_ONCE);
        while let Some((index, is_left)) = looks.next().await {
            if is_left? {
                left.insert(index);
            }
        }
        let is_hidden = self.checkpoint.stage == DeletionStage::Hidden;
        let known: BTreeSet<usize> = left.union(&self.checkpoint.unhidden).copied().collect();
        let indexes = self.items.iter().map(|item| item.index);
        self.checkpoint.gone.extend(indexes.filter(|index| is_hidden && !known.contains(index)));
        Ok(left)
    }

    async fn rename_back(
        &self,
        session: &TransferSession,
        left: &BTreeSet<usize>,
    ) -> Result<RestoredItems, TransferError> {
        let mut result = RestoredItems::default();
        let items = self.items.iter().filter(|item| left.contains(&item.index)).cloned();
        let renames = items.collect::<Vec<_>>().into_iter().map(|item: HiddenItem| async move {
            let renamed = session.rename(&item.hidden, &item.original, RenameMode::KeepExisting).await;
            (item, renamed)
        });
        let mut renames = stream::iter(renames).buffered(REQUESTS_AT_ONCE);
        while let Some((item, renamed)) = renames.next().await {
            match renamed {
                Ok(()) => result.restored += 1,
                Err(SftpError::NotFound) => {}
                Err(error @ SftpError::Run(_)) => return Err(error.into()),
                Err(_) => result.stuck.push((item.chosen, item.hidden)),
            }
        }
        Ok(result)
    }
}

impl RestoredItems {
    /// What to know about a deletion that was cancelled.
    pub(in crate::files::transfers) fn sentences(&self) -> String {
        let restored = if self.restored > 0 { "What wasn't deleted has its old name again. " } else { "" };
        format!("{restored}{}", self.stuck_sentence()).trim_end().to_owned()
    }

    /// What couldn't get its name back; empty if all could.
    pub(in crate::files::transfers) fn stuck_sentence(&self) -> String {
        let Some((chosen, hidden)) = self.stuck.first() else { return String::new() };
        let others = match self.stuck.len() {
            1 => String::new(),
            more => {
                let more = u64::try_from(more - 1).unwrap_or(u64::MAX);
                format!(" The same goes for {}.", format::count(more, "more item"))
            }
        };
        format!("What's left of {chosen} is now called {hidden}, because it couldn't be renamed back.{others}")
    }
}

const WAITED: &str =
    "The deletion had to wait for more than an hour. Check what's there now, then resume to delete it, or cancel.";

fn question(first: &RemotePath, count: usize) -> String {
    let others = match count {
        1 => String::new(),
        more => format!(" and {}", format::count(u64::try_from(more - 1).unwrap_or(u64::MAX), "more item")),
    };
    format!(
        "The deletion was interrupted, and {first}{others} may have been replaced since. Check what's there now, then resume to delete it, or cancel."
    )
}

async fn save(run: &TransferRun, checkpoint: &DeletionCheckpoint) -> Result<(), TransferError> {
    run.progress.set_checkpoint(checkpoint);
    Ok(run.save().await?)
}

async fn is_there(session: &TransferSession, path: &RemotePath) -> Result<bool, TransferError> {
    match session.lstat(path).await {
        Ok(_) => Ok(true),
        Err(SftpError::NotFound) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certainly_meant_is_deleted_after_an_interruption() {
        use ItemStep::{Ask, Delete, Gone, Hide};
        let at = |stage| DeletionCheckpoint { stage, ..DeletionCheckpoint::default() };
        let gone = DeletionCheckpoint { gone: [0].into(), ..at(DeletionStage::Hiding) };
        let unhidden = DeletionCheckpoint { unhidden: [0].into(), ..at(DeletionStage::Hidden) };
        for (checkpoint, has_hidden, has_original, step, confirmed) in [
            (at(DeletionStage::New), false, true, Hide, Hide),
            (at(DeletionStage::Hiding), true, true, Delete, Delete),
            (at(DeletionStage::Hiding), false, true, Ask, Hide),
            (at(DeletionStage::Hiding), false, false, Gone, Gone),
            // Something new has the name: it stays, whatever its owner resumes.
            (at(DeletionStage::Hidden), false, true, Gone, Gone),
            (at(DeletionStage::Hidden), true, true, Delete, Delete),
            (gone, false, true, Gone, Gone),
            (unhidden.clone(), false, true, Ask, Hide),
            (unhidden, false, false, Gone, Gone),
        ] {
            assert_eq!(checkpoint.next_step(0, has_hidden, has_original), step, "{checkpoint:?}");
            let text = serde_json::to_string(&checkpoint).unwrap();
            let resumed = DeletionCheckpoint::parse(&confirm(&text));
            assert_eq!(resumed.next_step(0, has_hidden, has_original), confirmed, "{resumed:?}");
        }
    }

    #[test]
    fn deletion_that_waited_long_asks_once() {
        let new = DeletionCheckpoint::default();
        assert!(new.has_waited_too_long(MAX_WAIT_SECS + 1) && !new.has_waited_too_long(MAX_WAIT_SECS));
        assert!(!DeletionCheckpoint::parse(&confirm("")).has_waited_too_long(MAX_WAIT_SECS + 1), "resumed");
        let begun = DeletionCheckpoint { stage: DeletionStage::Hidden, ..new };
        assert!(!begun.has_waited_too_long(MAX_WAIT_SECS + 1));
    }

    #[test]
    fn sentences_say_where_things_are() {
        let path = |text: &str| RemotePath::parse(text.as_bytes()).unwrap();
        assert_eq!(RestoredItems::default().sentences(), "");
        let stuck = vec![(path("/a/x"), path("/a/.portolan-1")), (path("/a/y"), path("/a/.portolan-2"))];
        let result = RestoredItems { restored: 1, stuck };
        let text = result.sentences();
        assert!(text.starts_with("What wasn't deleted has its old name again. What's left of /a/x is"), "{text}");
        assert!(text.contains("/a/.portolan-1") && text.ends_with("1 more item."), "{text}");
        assert!(question(&path("/a"), 1).contains("and /a may have"));
        assert!(question(&path("/a"), 3).contains("and /a and 2 more items may have"));
    }
}
