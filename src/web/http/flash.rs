//! Short messages for the next page. The cookie holds a code from this list and, where a message names things, its text,
//! sealed: nobody can inject text.

use axum::http::HeaderValue;
use axum::response::{IntoResponse as _, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::app::App;
use crate::format;
use crate::vault::VaultPurpose;
use crate::web::http::cookies::{self, CookieKind, RawRequestCookies};
use crate::web::http::extractors::RequestContext;

macro_rules! flashes {
    ($($variant:ident = $word:literal, $kind:literal, $text:literal;)*) => {
        /// A message for the next page.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FlashMessage { $(#[doc = $text] $variant,)* }

        impl FlashMessage {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code in the cookie.
            const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The style of the message: ok, info, warning or danger.
            pub const fn kind(self) -> &'static str {
                match self { $(Self::$variant => $kind,)* }
            }

            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

flashes! {
    SignedOut = "signed-out", "ok", "You're signed out.";
    SignedOutEverywhere = "signed-out-everywhere", "ok", "You're signed out on all devices.";
    SignInExpired = "ran-out", "warning", "Your sign-in expired, or the code was wrong too many times. Start again with your password.";
    PasswordChanged = "password-changed", "ok", "Password changed. All your other devices are signed out.";
    PasswordReset = "password-reset", "ok", "Password changed. Sign in with your new password.";
    PasswordResetKeysLost = "password-reset-keys-lost", "warning", "Password changed. Your SSH key was deleted because only your old password could decrypt it. Sign in, create a new key and register it with your clusters.";
    NameChanged = "name-changed", "ok", "Name saved.";
    DeviceEnded = "device-ended", "ok", "Device signed out.";
    SecondFactorOff = "second-factor-off", "warning", "The second factor is off. You now sign in with just your password.";
    SecondFactorRemoved = "second-factor-removed", "ok", "Their second factor is off. Ask them to set it up again.";
    JoinedBefore = "joined-before", "info", "You're already a member of this group. The invitation is still valid for someone else.";
    Joined = "joined", "ok", "You joined the group.";
    GroupMade = "group-made", "ok", "Group created. Now invite its members.";
    GroupRenamed = "group-renamed", "ok", "Group renamed.";
    InvitationRevoked = "invitation-revoked", "ok", "Invitation revoked.";
    RoleChanged = "role-changed", "ok", "Role changed.";
    MemberRemoved = "member-removed", "ok", "Member removed from the group. Their portal account still exists.";
    PersonDisabled = "person-disabled", "ok", "Account disabled and signed out on all devices.";
    PersonEnabled = "person-enabled", "ok", "Account enabled. This person can sign in again.";
    PersonDeleted = "person-deleted", "ok", "Account deleted.";
    AdminChanged = "admin-changed", "ok", "Administrator rights changed.";
    OlderJobsAsked = "older-jobs", "info", "Loading older jobs from the cluster. They appear here in a moment.";
    CannotWithdraw = "not-given-up", "warning", "This submission can no longer be cancelled because it may already have reached the cluster. Once it shows up as a job, cancel the job.";
    Disconnected = "disconnected", "ok", "Disconnected.";
    NoUserName = "no-user-name", "warning", "First enter your user name on this cluster.";
    NoKey = "no-key", "warning", "First create or import an SSH key.";
    ClusterClosed = "cluster-closed", "warning", "Connections to this cluster are currently blocked.";
    TooManyConnects = "too-many-connects", "warning", "Too many connection attempts to this cluster in the last hour. Computing centres block addresses that connect too often, so try again later.";
    KeyMade = "key-made", "ok", "SSH key created. Now register the public key with your clusters.";
    WrapperInstalled = "wrapper-installed", "ok", "portolan-commands is installed in your home folder on the cluster.";
    WrapperNotInstalled = "wrapper-not-installed", "warning", "Couldn't install portolan-commands in your home folder on the cluster. Make sure you're connected and have space left, then try again.";
    AutomationKeyMade = "robot-key-made", "ok", "Automation key created. Register the whole line below, including the restrictions at its start.";
    KeyImported = "key-imported", "ok", "SSH key imported and encrypted. If you haven't done so yet, register the public key with your clusters.";
    NewKeyMade = "new-key-made", "ok", "New key created. Register the public key with your clusters and test it; until then, your old key keeps working.";
    KeyReplaced = "key-replaced", "ok", "You're now using the new key, and the old one is deleted. Remove the old public key from your centres' key pages too.";
    KeyDeleted = "key-deleted", "ok", "SSH key deleted. Remove it from your clusters too.";
    KeyUnproven = "key-unproven", "warning", "The new key hasn't been tested yet. Test it on a cluster first, so that you don't lock yourself out.";
    NewKeyPending = "key-waiting", "warning", "You already have a new key. Switch to it or discard it first.";
    UnattendedOn = "unattended-on", "ok", "The portal can now use this key while you're signed out.";
    UnattendedOff = "unattended-off", "ok", "The portal now uses this key only while you're signed in.";
    ClusterAdded = "cluster-added", "ok", "Cluster added and host keys pinned. People can now connect to it.";
    ClusterChanged = "cluster-changed", "ok", "Settings saved.";
    ClusterHidden = "cluster-hidden", "ok", "Cluster hidden. You can show it again at the bottom of this page.";
    ClusterShown = "cluster-shown", "ok", "The cluster is back in your lists.";
    ClusterForgotten = "cluster-forgotten", "ok", "Cluster forgotten. Your user name and your connection were removed from the portal.";
    ClusterRetired = "cluster-retired", "ok", "Cluster retired. All connections to it are closed.";
    ClusterRestored = "cluster-restored", "ok", "Cluster restored. People can connect to it again.";
    ClusterRemoved = "cluster-removed", "ok", "Cluster deleted.";
    HostKeysPinned = "host-keys-pinned", "ok", "Host keys pinned. Everyone needs to reconnect.";
    AlarmEnded = "alarm-ended", "ok", "Alert dismissed. The pinned keys haven't changed.";
    NotificationsSaved = "notices-chosen", "ok", "Notification settings saved.";
    WebhookSet = "webhook-set", "ok", "Webhook saved. Send a test message to check that it works.";
    WebhookRemoved = "webhook-removed", "ok", "Webhook removed.";
    NoScript = "no-script", "info", "You can't resubmit this job because the cluster no longer has its script. Choose a recipe under New job instead.";
    RecipeSaved = "recipe-saved", "ok", "Recipe saved. You can now use it for new jobs.";
    RecipeChanged = "recipe-changed", "ok", "New version saved. Earlier jobs keep the version they ran with.";
    RecipePublished = "recipe-published", "ok", "Recipe published. All members of the group can use it.";
    RecipeWithdrawn = "recipe-withdrawn", "ok", "Recipe unpublished. Only its owner can use it now.";
    RecipeDeleted = "recipe-deleted", "ok", "Recipe deleted. Jobs created with it aren't affected.";
    DashboardNotReady = "dashboard-not-ready", "info", "The dashboard isn't ready yet. This page shows when you can open it.";
    DashboardExtended = "dashboard-extended", "ok", "Dashboard extended. A follow-up job takes over shortly before this one ends; the address stays the same.";
    DashboardChanged = "dashboard-changed", "ok", "Changes saved.";
    DashboardDeleted = "dashboard-removed", "ok", "Dashboard deleted. Its guest links no longer work. The files it showed are still on the cluster.";
    DashboardLinkRevoked = "dashboard-unshared", "ok", "Guest link revoked. Anyone using it has lost access.";
    FileLinkRevoked = "file-unshared", "ok", "Guest link revoked. Anyone using it has lost access.";
    ReportFrozen = "report-frozen", "ok", "Report frozen. Its figures no longer change.";
    ReportRemoved = "report-removed", "ok", "Report deleted. Its guest links no longer work.";
    TooManyReports = "reports-enough", "warning", "This group has reached the maximum number of frozen reports. Delete some you no longer need.";
    ReportLinkRevoked = "report-unshared", "ok", "Guest link revoked. Anyone using it has lost access.";
    JobSharingSet = "job-sharing-set", "ok", "Job sharing saved.";
    UserNameSet = "user-name-set", "ok", "Name saved. It's used on usage pages, in reports and in CSV files.";
    AlertsSet = "alerts-set", "ok", "Usage alerts saved. They appear under Notifications.";
    DashboardNotConnected = "dashboard-no-way", "warning", "You're not connected to this cluster. Connect first, then try again.";
    DashboardOwnerAway = "dashboard-owner-away", "warning", "The dashboard can't be started because it runs as its owner, who isn't connected to the cluster. Ask them to connect.";
    DashboardAlreadyRunning = "dashboard-runs-already", "info", "The dashboard is already running or starting.";
    DashboardNotRunning = "dashboard-not-running", "info", "The dashboard isn't running, so it can't be extended or stopped.";
    DashboardAlreadyExtended = "dashboard-followed", "info", "The dashboard has already been extended.";
    DashboardStartLimit = "dashboard-woken-enough", "warning", "The dashboard has been started as often as its owner allows per day. Ask them to start it.";
    TerminalClosed = "terminal-closed", "ok", "Terminal closed.";
    TerminalNotOpened = "terminal-not-opened", "warning", "The terminal couldn't be opened. Try again in a moment.";
    JobNotRunning = "job-not-running", "warning", "The job isn't running, so you can't open a shell in it.";
    FileDeleted = "file-deleted", "ok", "Deleted.";
    UsageAccountsSet = "usage-accounts", "ok", "Accounts saved. Open Usage to load what they used.";
    AllocationAdded = "allocation-added", "ok", "Allocation added.";
    AllocationChanged = "allocation-changed", "ok", "Allocation saved.";
    AllocationRemoved = "allocation-removed", "ok", "Allocation removed. The recorded usage is kept.";
    FavouriteAdded = "favourite-added", "ok", "Added to your favourites.";
    FavouriteRemoved = "favourite-removed", "ok", "Removed from your favourites.";
    FavouritesFull = "favourites-full", "warning", "You have 30 favourites, which is the maximum. Remove one you no longer need first.";
    FolderCreated = "folder-created", "ok", "Folder created.";
    FileRenamed = "file-renamed", "ok", "Renamed.";
    FilesMoved = "files-moved", "ok", "Moved.";
    PermissionsChanged = "permissions-changed", "ok", "Permissions changed.";
    FileSaved = "file-saved", "ok", "Saved.";
    AnotherFolderMeasured = "another-folder-measured", "info", "Another folder is still being measured. Try again when that's done.";
    StorageNotConnected = "storage-not-connected", "warning", "You're not connected to this cluster. Connect first, then measure the folder.";
    FolderNotMeasured = "folder-not-measured", "warning", "Couldn't measure the folder because the cluster is busy with your other requests. Try again in a few minutes.";
    Welcome = "welcome", "ok", "Your account is ready. Welcome aboard.";
}

/// How long a message waits for its page.
const FLASH_LIFETIME_SECS: i64 = 60;

impl FlashMessage {
    /// The message for a code.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|message| message.as_str() == word)
    }
}

/// A message as the page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingFlash {
    message: FlashMessage,
    /// What is said instead of the message's own text; empty if nothing is.
    text: String,
}

/// Longer texts are cut: a cookie has little room.
const MAX_TEXT_CHARS: usize = 300;
/// Longer names are cut in messages.
const MAX_NAME_CHARS: usize = 80;

impl PendingFlash {
    /// The message that waits for this browser's next page.
    pub fn read(app: &App, cookies: &RawRequestCookies) -> Option<Self> {
        let value = cookies.get(app, CookieKind::FlashMessage)?;
        let (word, sealed) = value.split_once('.').unwrap_or((value, ""));
        let message = FlashMessage::parse(word)?;
        let session = cookies.get(app, CookieKind::Session).unwrap_or_default();
        Some(Self { message, text: open_text(app, session, sealed).unwrap_or_default() })
    }

    pub const fn kind(&self) -> &'static str {
        self.message.kind()
    }

    pub fn text(&self) -> &str {
        if self.text.is_empty() { self.message.text() } else { &self.text }
    }
}

fn open_text(app: &App, session: &str, sealed: &str) -> Option<String> {
    let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    let text = app.vault.open(VaultPurpose::ShownOnce, &seal_context(session), &sealed).ok()?;
    Some(std::str::from_utf8(&text).ok()?.to_owned())
}

/// Binds the text to the session that it was written in.
fn seal_context(session: &str) -> String {
    format!("flash {session}")
}

/// A name as messages give it.
pub fn name_in_message(name: impl std::fmt::Display) -> String {
    format::shorten(&name.to_string(), MAX_NAME_CHARS)
}

/// Redirects to another page, which shows this text in place of the message's own. If it can't be sealed, the page shows
/// that one.
pub fn redirect_with_text(context: RequestContext, to: &str, message: FlashMessage, text: &str) -> Response {
    let text: String = text.chars().take(MAX_TEXT_CHARS).collect();
    let session = seal_context(context.cookie(CookieKind::Session).unwrap_or_default());
    let value = match context.app.vault.seal(VaultPurpose::ShownOnce, &session, text.as_bytes()) {
        Ok(sealed) => format!("{}.{}", message.as_str(), URL_SAFE_NO_PAD.encode(sealed)),
        Err(_) => message.as_str().to_owned(),
    };
    let jar = cookies::set(context.jar, &context.app, CookieKind::FlashMessage, &value, FLASH_LIFETIME_SECS);
    (jar, see_other(to)).into_response()
}

/// Redirects to another page and shows a message there.
pub fn redirect(context: RequestContext, to: &str, message: FlashMessage) -> Response {
    let jar = cookies::set(context.jar, &context.app, CookieKind::FlashMessage, message.as_str(), FLASH_LIFETIME_SECS);
    (jar, see_other(to)).into_response()
}

/// Redirects to another page of the portal.
pub fn see_other(to: &str) -> Response {
    // Header values can't hold control characters; an address that has some isn't ours.
    let to = if HeaderValue::from_str(to).is_ok() { to } else { "/" };
    Redirect::to(to).into_response()
}

/// Allows only paths of this portal: never another site, however it is written.
pub fn safe_local_path(text: &str) -> &str {
    let is_local = text.starts_with('/')
        && !text.starts_with("//")
        && !text.contains('\\')
        && !text.chars().any(char::is_control)
        && text.len() < 1000
        && !text.starts_with("/sign-in");
    if is_local { text } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_in_messages() {
        assert_eq!(name_in_message("a.txt"), "a.txt");
        let cut = name_in_message("ä".repeat(255));
        assert!(cut.chars().count() == MAX_NAME_CHARS && cut.ends_with('…'), "{cut}");
    }
}
