//! The events that the activity log records: stable codes for the database and sentences for people.

use super::RequestClient;
use crate::clock::UnixTime;
use crate::domain::PersonId;
use crate::store::{self, activity::NewActivityEntry, people::Person};

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $sentence:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ActivityEventKind { $($(#[$doc])* $variant,)* }

        impl ActivityEventKind {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable code in the database and in exports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)* }
            }
        }
    };
}

events! {
    /// The set-up link was used.
    SetUp = "portal.set-up", "Set up the portal";
    SignedIn = "sign-in.done", "Signed in";
    /// Wrong name or password.
    SignInFailed = "sign-in.failed", "Failed to sign in";
    /// The password was right, but the account is disabled.
    SignInDisabled = "sign-in.disabled", "Tried to sign in to a disabled account";
    /// The one-time code was wrong.
    CodeFailed = "sign-in.code-failed", "Entered a wrong second-factor code";
    /// A recovery code was used instead of the phone.
    RecoveryCodeUsed = "sign-in.recovery-code", "Used a recovery code";
    /// Someone signed out.
    SignedOut = "sign-out", "Signed out";
    /// Someone signed out one of their other browsers.
    DeviceEnded = "device.ended", "Signed out a device";
    /// All browsers were signed out.
    SignedOutEverywhere = "sign-out.everywhere", "Signed out everywhere";
    /// The owner changed their password.
    PasswordChanged = "password.changed", "Changed the password";
    /// A reset link was used.
    PasswordReset = "password.reset", "Reset the password with a link";
    /// A reset link was created.
    ResetLinkMade = "password.reset-link", "Created a password reset link";
    /// The second factor was turned on.
    SecondFactorOn = "second-factor.on", "Turned on the second factor";
    /// The second factor was turned off.
    SecondFactorOff = "second-factor.off", "Turned off the second factor";
    /// An administrator turned someone's second factor off.
    SecondFactorRemoved = "second-factor.removed", "Turned off someone's second factor";
    /// New recovery codes were created.
    RecoveryCodesMade = "second-factor.codes", "Created new recovery codes";
    /// Someone changed their display name.
    NameChanged = "profile.name", "Changed the display name";
    /// A group was created.
    GroupMade = "group.made", "Created a group";
    /// A group was renamed.
    GroupRenamed = "group.renamed", "Renamed a group";
    /// An invitation was created.
    Invited = "invitation.made", "Created an invitation";
    /// An invitation was revoked.
    InvitationRevoked = "invitation.revoked", "Revoked an invitation";
    /// An invitation was used.
    Joined = "invitation.used", "Joined a group";
    /// Someone's role in a group was changed.
    RoleChanged = "group.role", "Changed a member's role";
    /// Someone was removed from a group.
    RemovedFromGroup = "group.removed", "Removed someone from a group";
    /// An account was created on the command line.
    PersonAdded = "person.added", "Added a portal account";
    /// An account was disabled.
    PersonDisabled = "person.disabled", "Disabled a portal account";
    /// An account was enabled again.
    PersonEnabled = "person.enabled", "Enabled a portal account";
    /// An account was deleted.
    PersonDeleted = "person.deleted", "Deleted a portal account";
    /// Someone became an administrator.
    AdminGranted = "person.admin-granted", "Made someone an administrator";
    /// Someone is no longer an administrator.
    AdminRevoked = "person.admin-revoked", "Removed someone's administrator rights";
    /// The whole activity log was exported.
    ActivityExported = "activity.exported", "Exported the activity log";
    /// A cluster was added.
    ClusterAdded = "cluster.added", "Added a cluster";
    /// A cluster was removed.
    ClusterRemoved = "cluster.removed", "Deleted a cluster";
    /// A cluster's settings were changed.
    ClusterChanged = "cluster.changed", "Changed a cluster's settings";
    /// A cluster was taken out of use.
    ClusterRetired = "cluster.retired", "Retired a cluster";
    /// A cluster was taken back into use.
    ClusterRestored = "cluster.restored", "Restored a cluster";
    /// A cluster's host keys were pinned.
    HostKeysPinned = "cluster.host-keys", "Pinned a cluster's host keys";
    /// A cluster's host presented a key that is not pinned.
    HostKeyAlarm = "cluster.host-key-alarm", "Blocked connections because a cluster's host key changed";
    /// An administrator dismissed the alarm as false.
    HostKeyAlarmEnded = "cluster.host-key-alarm-ended", "Dismissed a host key alert and kept the pinned keys";
    /// An SSH key was generated.
    KeyMade = "key.made", "Created an SSH key";
    /// An SSH key was imported.
    KeyImported = "key.imported", "Imported an SSH key";
    /// A new key replaced the old one.
    KeyReplaced = "key.replaced", "Replaced an SSH key";
    /// An SSH key was deleted.
    KeyDeleted = "key.deleted", "Deleted an SSH key";
    /// A key may be used while its owner is away.
    KeyUnattendedOn = "key.unattended-on", "Allowed unattended use of an SSH key";
    /// A key may no longer be used while its owner is away.
    KeyUnattendedOff = "key.unattended-off", "Stopped unattended use of an SSH key";
    /// Keys were lost because the password was reset.
    KeysLost = "key.lost", "Deleted SSH keys because the password was reset";
    /// A person set their user name on a cluster.
    UserNamed = "line.user", "Set the user name for a cluster";
    /// A connection was opened.
    Connected = "line.connected", "Connected to a cluster";
    /// Connecting to a cluster failed.
    ConnectFailed = "line.failed", "Failed to connect to a cluster";
    /// The owner closed a connection.
    Disconnected = "line.disconnected", "Disconnected from a cluster";
    /// A person removed their connection to a cluster, and what the portal stored about it.
    ClusterForgotten = "line.forgotten", "Forgot a cluster";
    /// A job was submitted.
    JobSubmitted = "jobs.submitted", "Submitted a job";
    JobsCancelled = "jobs.cancelled", "Cancelled jobs";
    JobsHeld = "jobs.held", "Held jobs";
    JobsReleased = "jobs.released", "Released held jobs";
    /// Jobs were requeued.
    JobsRequeued = "jobs.requeued", "Requeued jobs";
    /// A job was moved to the top of the person's jobs.
    JobsMovedUp = "jobs.moved-up", "Moved a job to the top of the user's jobs";
    /// Files or folders on a cluster were deleted, or their deletion began.
    FilesDeleted = "files.deleted", "Deleted files on a cluster";
    /// Files were uploaded: one large file, or several small ones in one request.
    FilesUploaded = "files.uploaded", "Uploaded files to a cluster";
    /// A guest uploaded a file into a drop-box.
    DropBoxFilled = "drop-box.uploaded", "Uploaded a file to a drop-box";
    /// An empty file was created on a cluster.
    FileCreated = "files.created", "Created a file on a cluster";
    /// A text file on a cluster was saved.
    FileEdited = "files.edited", "Edited a file on a cluster";
    /// A folder was created on a cluster.
    FolderCreated = "files.folder-created", "Created a folder on a cluster";
    /// The compression of files on a cluster began.
    FilesCompressed = "files.compressed", "Compressed files on a cluster";
    /// A cluster began to receive a file from a URL.
    FileFetched = "files.fetched", "Downloaded a file from the web to a cluster";
    /// Files or folders on a cluster were moved or renamed.
    FilesMoved = "files.moved", "Moved or renamed files on a cluster";
    /// Who can use files or folders on a cluster was changed.
    FilePermissionsChanged = "files.permissions", "Changed permissions of files on a cluster";
    /// A copy of files or folders on a cluster began.
    FilesCopied = "files.copied", "Copied files on a cluster";
    /// The extraction of an archive on a cluster began.
    ArchiveExtracted = "files.extracted", "Extracted an archive on a cluster";
    /// A terminal was opened; what is typed in it isn't recorded.
    TerminalOpened = "terminal.opened", "Opened a terminal on a cluster";
    /// A terminal ended.
    TerminalClosed = "terminal.closed", "Ended a terminal on a cluster";
    /// A recipe was saved.
    RecipeSaved = "recipe.saved", "Saved a recipe";
    /// A new version of a recipe was saved.
    RecipeChanged = "recipe.changed", "Saved a new version of a recipe";
    /// A recipe was published to a group.
    RecipePublished = "recipe.published", "Published a recipe to a group";
    /// A published recipe became private again.
    RecipeWithdrawn = "recipe.withdrawn", "Unpublished a recipe from a group";
    /// A recipe was deleted.
    RecipeDeleted = "recipe.deleted", "Deleted a recipe";
    /// A dashboard was created.
    DashboardCreated = "board.made", "Created a dashboard";
    /// A dashboard was started again.
    DashboardStarted = "board.started", "Started a dashboard";
    /// A dashboard was extended.
    DashboardExtended = "board.extended", "Extended a dashboard";
    /// A group member started someone else's dashboard.
    DashboardStartedByMember = "board.woken", "Started another member's dashboard";
    /// A dashboard was stopped.
    DashboardStopped = "board.stopped", "Stopped a dashboard";
    /// A dashboard's name or visibility was changed.
    DashboardChanged = "board.changed", "Changed a dashboard's settings";
    /// A dashboard was deleted.
    DashboardDeleted = "board.removed", "Deleted a dashboard";
    /// A guest link to a dashboard was created.
    DashboardLinkCreated = "board.shared", "Created a guest link to a dashboard";
    /// A guest link to a dashboard was revoked.
    DashboardLinkRevoked = "board.unshared", "Revoked a guest link to a dashboard";
    /// A guest link to a dashboard was opened.
    DashboardLinkOpened = "board.visited", "Opened a guest link to a dashboard";
    /// A guest link to a file or folder was created.
    FileLinkCreated = "files.shared", "Created a guest link to files";
    /// A guest link to a file or folder was revoked.
    FileLinkRevoked = "files.unshared", "Revoked a guest link to files";
    /// A guest link to a file or folder was opened.
    FileLinkOpened = "files.visited", "Opened a guest link to files";
    /// A drop-box was created.
    DropBoxCreated = "drop-box.created", "Created a drop-box";
    /// A drop-box was revoked.
    DropBoxRevoked = "drop-box.revoked", "Revoked a drop-box";
    /// A drop-box was opened.
    DropBoxOpened = "drop-box.visited", "Opened a drop-box";
    /// A report of a group was frozen.
    ReportFrozen = "report.frozen", "Froze a group report";
    /// A report of a group was deleted.
    ReportRemoved = "report.removed", "Deleted a group report";
    /// A guest link to a report was created.
    ReportLinkCreated = "report.shared", "Created a guest link to a report";
    /// A guest link to a report was revoked.
    ReportLinkRevoked = "report.unshared", "Revoked a guest link to a report";
    /// A guest link to a report was opened.
    ReportLinkOpened = "report.visited", "Opened a guest link to a report";
    /// A group's usage alerts were changed.
    UsageAlertsSet = "usage.alerts", "Changed a group's usage alerts";
    /// A group's accounts were chosen.
    UsageAccountsSet = "usage.accounts", "Changed a group's Slurm accounts";
    /// An allocation was added to a group.
    AllocationSet = "usage.allocation", "Added an allocation to a group";
    /// An allocation of a group was changed.
    AllocationChanged = "usage.allocation-changed", "Changed a group's allocation";
    /// An allocation of a group was removed.
    AllocationRemoved = "usage.allocation-removed", "Removed an allocation from a group";
    /// A PI viewed the usage of the group's members.
    UsageViewed = "usage.seen", "Viewed a group's usage by member";
    /// A PI opened a member's job.
    MemberJobViewed = "usage.job-seen", "Viewed a member's job";
    /// A group or a member decided whether PIs can read scripts and output of jobs.
    JobSharingSet = "usage.job-sharing", "Changed the sharing of job scripts and output";
    /// A PI named the person behind a user name.
    UserNameSet = "usage.user-name-set", "Entered a name for a user name";
    /// The webhook for notifications was set or removed.
    WebhookChanged = "notices.webhook", "Changed where notifications are sent";
    /// The master key was changed.
    MasterKeyRotated = "portal.master-key", "Changed the master key";
    /// A backup was restored.
    Restored = "portal.restored", "Restored the portal from a backup";
}

impl ActivityEventKind {
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.as_str() == word)
    }
}

/// Who does something: a signed-in person, an anonymous visitor, or the command line.
#[derive(Debug, Clone)]
pub struct Actor {
    /// The person, if signed in.
    pub id: Option<PersonId>,
    pub name: String,
    pub address: String,
}

impl Actor {
    pub fn from_person(person: &Person, client: &RequestClient) -> Self {
        Self { id: Some(person.id), name: person.name.clone(), address: client.address.to_string() }
    }

    /// Someone who isn't signed in, identified by the name they entered, if any.
    pub fn anonymous(name: &str, client: &RequestClient) -> Self {
        Self { id: None, name: name.to_owned(), address: client.address.to_string() }
    }

    /// The portal itself, acting on an earlier request that was authorised and recorded then.
    pub fn portal() -> Self {
        Self { id: None, name: "portal".into(), address: String::new() }
    }

    /// Someone who can run commands on the portal's machine.
    pub fn command_line() -> Self {
        Self { id: None, name: "command line".into(), address: String::new() }
    }
}

/// An event's details: what it happened to.
#[derive(Debug, Default)]
pub struct ActivityDetails<'a> {
    /// The person affected.
    pub person: Option<PersonId>,
    /// The name of the thing affected.
    pub subject: &'a str,
    pub detail: &'a str,
}

/// Records an event in the same transaction as the change itself.
pub async fn record(
    db: &mut store::DbConnection,
    actor: &Actor,
    event: ActivityEventKind,
    about: ActivityDetails<'_>,
    now: UnixTime,
) -> store::Result<()> {
    let entry = NewActivityEntry {
        actor: actor.id,
        actor_name: &actor.name,
        action: event.as_str(),
        person: about.person,
        subject: about.subject,
        detail: about.detail,
        address: &actor.address,
    };
    store::activity::add(db, &entry, now).await?;
    tracing::info!(
        action = event.as_str(),
        actor = actor.name,
        subject = about.subject,
        address = actor.address,
        "{}",
        event.sentence()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_read_back() {
        for event in ActivityEventKind::ALL {
            assert_eq!(ActivityEventKind::parse(event.as_str()), Some(*event));
        }
        assert_eq!(ActivityEventKind::parse("no-such-thing"), None);
    }
}
