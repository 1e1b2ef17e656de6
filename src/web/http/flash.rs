//! Short messages for the next page. The cookie holds only a code from this list, so nobody can inject text.

use axum::http::HeaderValue;
use axum::response::{IntoResponse as _, Redirect, Response};

use crate::web::http::cookies::{self, CookieKind};
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
    SignedOut = "signed-out", "ok", "You are signed out.";
    SignedOutEverywhere = "signed-out-everywhere", "ok", "You are signed out on every device.";
    SignInExpired = "ran-out", "warning", "That took too long or too many codes were wrong. Please begin again with your password.";
    PasswordChanged = "password-changed", "ok", "Your password is changed. Every other device was signed out.";
    PasswordReset = "password-reset", "ok", "Your new password is set. Sign in with it.";
    PasswordResetKeysLost = "password-reset-keys-lost", "warning", "Your new password is set. Your SSH key was deleted with the old password, as it opened with nothing else: sign in, then make a new key and register it with your clusters.";
    NameChanged = "name-changed", "ok", "Your name is changed.";
    DeviceEnded = "device-ended", "ok", "That device is signed out.";
    SecondFactorOff = "second-factor-off", "warning", "The second factor is off. Your password alone now opens your account.";
    SecondFactorRemoved = "second-factor-removed", "ok", "Their second factor is off. Ask them to set it up again.";
    JoinedBefore = "joined-before", "info", "You belong to this group already. The invitation is still open for someone else.";
    Joined = "joined", "ok", "You have joined the group.";
    GroupMade = "group-made", "ok", "The group is there. Now invite its people.";
    GroupRenamed = "group-renamed", "ok", "The group has its new name.";
    InvitationRevoked = "invitation-revoked", "ok", "The invitation no longer works.";
    RoleChanged = "role-changed", "ok", "The role is changed.";
    MemberRemoved = "member-removed", "ok", "They no longer belong to the group. Their account stays.";
    PersonDisabled = "person-disabled", "ok", "The account is switched off and every session of it was ended.";
    PersonEnabled = "person-enabled", "ok", "The account can sign in again.";
    AdminChanged = "admin-changed", "ok", "The administrator rights are changed.";
    OlderJobsAsked = "older-jobs", "info", "The cluster is being asked for older jobs. They appear here in a moment.";
    CannotWithdraw = "not-given-up", "warning", "It cannot be given up now: it may have reached the cluster. Once it is a job, you can cancel it.";
    Disconnected = "disconnected", "ok", "The connection is closed.";
    NoUserName = "no-user-name", "warning", "First enter your user name on this cluster.";
    NoKey = "no-key", "warning", "First make or import a key.";
    ClusterClosed = "cluster-closed", "warning", "Nobody can connect to this cluster at present.";
    TooManyConnects = "too-many-connects", "warning", "There were too many tries to connect to this cluster in the last hour. Centres lock out addresses that try too often, so the portal waits. Try again later.";
    KeyMade = "key-made", "ok", "Your key is made. Now tell your clusters about its public half.";
    WrapperInstalled = "wrapper-installed", "ok", "portolan-commands is in your home folder on the cluster, ready to be named in the line.";
    WrapperNotInstalled = "wrapper-not-installed", "warning", "portolan-commands could not be put into your home folder on the cluster. Connect first, look whether there is room, and try again.";
    AutomationKeyMade = "robot-key-made", "ok", "The key is made. Register it only with the restrictions of the line below in front of it.";
    KeyImported = "key-imported", "ok", "Your key is kept, sealed. Its public half must be registered with your clusters.";
    NewKeyMade = "new-key-made", "ok", "The new key waits. Register its public half with your clusters and test it; the old one works until then.";
    KeyReplaced = "key-replaced", "ok", "The new key is in use and the old one is deleted. Remove the old one from your clusters' key pages too.";
    KeyDeleted = "key-deleted", "ok", "The key is deleted. Remove it from your clusters' key pages too.";
    KeyUnproven = "key-unproven", "warning", "The new key has not opened a connection yet. Test it with a cluster first, so that you do not lock yourself out.";
    NewKeyPending = "key-waiting", "warning", "There is a new key waiting already. Use it or discard it first.";
    UnattendedOn = "unattended-on", "ok", "The portal may now use this key while you are away.";
    UnattendedOff = "unattended-off", "ok", "The portal uses this key only while you are signed in.";
    ClusterAdded = "cluster-added", "ok", "The cluster is added and its host keys are pinned. People can now connect to it.";
    ClusterChanged = "cluster-changed", "ok", "The settings are saved.";
    ClusterRetired = "cluster-retired", "ok", "The cluster is out of use and every connection to it was closed.";
    ClusterRestored = "cluster-restored", "ok", "The cluster is in use again.";
    ClusterRemoved = "cluster-removed", "ok", "The cluster is forgotten.";
    HostKeysPinned = "host-keys-pinned", "ok", "The host keys are pinned. People connect anew.";
    AlarmEnded = "alarm-ended", "ok", "The alarm is over; the pinned keys stay as they were.";
    NotificationsSaved = "notices-chosen", "ok", "Your choice is saved.";
    WebhookSet = "webhook-set", "ok", "Notices are sent to this address from now on. Send a test message to see whether it arrives.";
    WebhookRemoved = "webhook-removed", "ok", "Nothing is sent to that address any more.";
    NoScript = "no-script", "info", "The cluster no longer has the script of this job, so it cannot be run again from here. Choose a recipe under New job instead.";
    RecipeSaved = "recipe-saved", "ok", "The recipe is saved. Jobs can be made with it from now on.";
    RecipeChanged = "recipe-changed", "ok", "The new version is saved. Jobs that ran before keep the version they ran with.";
    RecipePublished = "recipe-published", "ok", "The recipe is published. Everybody in the group can use it.";
    RecipeWithdrawn = "recipe-withdrawn", "ok", "The recipe is its owner's alone again.";
    RecipeDeleted = "recipe-deleted", "ok", "The recipe is deleted. Jobs that were made with it stay as they are.";
    DashboardNotReady = "board-not-ready", "info", "It cannot be opened yet. This page tells when it can.";
    DashboardExtended = "board-extended", "ok", "A follow-up is asked for. It takes over shortly before the time is up; the address stays the same.";
    DashboardChanged = "board-changed", "ok", "Your changes are saved.";
    DashboardDeleted = "board-removed", "ok", "The dashboard is deleted, and its links no longer work. What it showed is still on the cluster.";
    DashboardLinkRevoked = "board-unshared", "ok", "The link no longer works, and whoever looked by it is shut out.";
    ReportFrozen = "report-frozen", "ok", "The report is frozen: it stays as it is, whatever is read later.";
    ReportRemoved = "report-removed", "ok", "The report is deleted, and its links no longer work.";
    TooManyReports = "reports-enough", "warning", "The group has as many reports as can be kept. Delete some that nobody needs any more.";
    ReportLinkRevoked = "report-unshared", "ok", "The link no longer works, and whoever looked by it is shut out.";
    AlertsSet = "alerts-set", "ok", "Your choice is saved. What is worth telling appears under Notices.";
    DashboardNotConnected = "board-no-way", "warning", "You have no connection to this cluster. Connect to it first, then try again.";
    DashboardOwnerAway = "board-owner-away", "warning", "It cannot be started now: it runs as its owner, and their connection to the cluster is closed. Ask them to connect.";
    DashboardAlreadyRunning = "board-runs-already", "info", "It is running or on its way already.";
    DashboardNotRunning = "board-not-running", "info", "It is not running, so there is nothing to prolong or stop.";
    DashboardAlreadyExtended = "board-followed", "info", "A follow-up is on its way already.";
    DashboardStartLimit = "board-woken-enough", "warning", "It was started as often as its owner allows in a day. Ask them to start it.";
    UsageAccountsSet = "usage-accounts", "ok", "The accounts of the group are saved. What they used is read over each viewer's own connection.";
    AllocationAdded = "allocation-added", "ok", "The allocation is added.";
    AllocationChanged = "allocation-changed", "ok", "The allocation is changed.";
    AllocationRemoved = "allocation-removed", "ok", "The allocation is removed. What was used stays.";
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
