//! Why a login failed, read from ssh's own log (never from what the server wrote).

use std::fmt;

use crate::text::strip_hidden;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteHop {
    Target,
    /// The jump host.
    Jump,
}

/// What is known besides ssh's log.
#[derive(Debug, Clone, Copy, Default)]
pub struct SshLoginFacts {
    /// The key was used to sign, so the server had accepted it.
    pub has_signed: bool,
    /// How many answers the person gave.
    pub answers: u32,
}

/// Why a login failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SshLoginError {
    /// The host shows a key other than the pinned ones; its fingerprint if ssh logged it.
    HostKeyChanged(RouteHop, Option<String>),
    /// No host key of the type that the host shows is pinned.
    HostKeyUnknown(RouteHop),
    /// The server does not accept this key.
    KeyRefused,
    /// The server refused a password, code or other answer.
    SignInRefused {
        /// Whether the key had been accepted.
        after_key: bool,
        /// How many answers the person had given.
        answers: u32,
    },
    /// The host name does not resolve.
    NoSuchHost(RouteHop),
    ConnectionRefused(RouteHop),
    TimedOut(RouteHop),
    /// The server closed the connection.
    Disconnected {
        /// Whether the key had been accepted.
        after_key: bool,
        /// How many answers the person had given.
        answers: u32,
    },
    /// The person cancelled.
    Cancelled,
    AnswerTimedOut,
    /// The server asks a question and nobody is there to answer.
    NeedsPerson,
    /// The portal's own machine failed: disk full, no ssh.
    LocalFault(String),
    /// The login succeeded, but no command can run there; the reason as a sentence.
    Unusable(String),
    /// Anything else: ssh's last log line.
    Other(String),
}

/// Why a login failed, with what the server printed, unchanged.
#[derive(Debug)]
pub struct ConnectError {
    pub failure: SshLoginError,
    pub notices: String,
}

impl ConnectError {
    /// An error of the portal itself.
    pub fn internal(error: &dyn fmt::Display) -> Self {
        SshLoginError::LocalFault(error.to_string()).into()
    }
}

impl From<SshLoginError> for ConnectError {
    fn from(failure: SshLoginError) -> Self {
        Self { failure, notices: String::new() }
    }
}

impl SshLoginError {
    /// Finds the reason in ssh's logs.
    pub fn from_logs(log: &str, jump_log: &str, traces: SshLoginFacts) -> Self {
        let (log, jump_log) = (&strip_server_lines(log), &strip_server_lines(jump_log));
        // A host key alarm comes first, on either host. Then the jump host: if it fails, the target only reports a
        // hang-up.
        find_host_key_alarm(jump_log, RouteHop::Jump)
            .or_else(|| find_host_key_alarm(log, RouteHop::Target))
            .or_else(|| find_host_problem(jump_log, RouteHop::Jump))
            .or_else(|| find_host_problem(log, RouteHop::Target))
            .unwrap_or_else(|| classify_sign_in(log, jump_log, traces))
    }

    /// Whether trying again could help although nothing has changed.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::ConnectionRefused(_) | Self::TimedOut(_) | Self::Disconnected { .. } | Self::NoSuchHost(_))
    }

    /// A stable code for statistics and records.
    pub const fn code(&self) -> &'static str {
        self.code_and_reason().0
    }

    /// A few words, for lists.
    pub const fn short_reason(&self) -> &'static str {
        self.code_and_reason().1
    }

    const fn code_and_reason(&self) -> (&'static str, &'static str) {
        match self {
            Self::HostKeyChanged(..) => ("host-key-changed", "its host key changed"),
            Self::HostKeyUnknown(_) => ("host-key-unknown", "its host key isn't pinned"),
            Self::KeyRefused => ("key-refused", "it rejected the SSH key"),
            Self::SignInRefused { .. } => ("sign-in-refused", "it rejected the login"),
            Self::NoSuchHost(_) => ("no-such-host", "its host name wasn't found"),
            Self::ConnectionRefused(_) => ("refused", "it refused the connection"),
            Self::TimedOut(_) => ("silent", "it didn't respond"),
            Self::Disconnected { .. } => ("hung-up", "it closed the connection"),
            Self::Cancelled => ("given-up", "cancelled"),
            Self::AnswerTimedOut => ("ran-out", "its login prompt wasn't answered in time"),
            Self::NeedsPerson => ("needs-person", "it asked for a code or a password"),
            Self::LocalFault(_) => ("here", "an error on the portal's server"),
            Self::Unusable(_) => ("no-use", "no commands could be run there"),
            Self::Other(_) => ("other", "unknown reason"),
        }
    }
}

/// What happened and what to do, for the person who wanted to connect.
impl fmt::Display for SshLoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |hop: &RouteHop| match hop {
            RouteHop::Target => "The cluster",
            RouteHop::Jump => "The cluster's jump host",
        };
        match self {
            Self::HostKeyChanged(hop, _) => write!(f, "{} presented a host key that differs from the one this portal trusts. Nothing was sent to it. Nobody can connect until an administrator has reviewed it.", host(hop)),
            Self::HostKeyUnknown(hop) => write!(f, "{} presented a host key that this portal doesn't know. Ask an administrator to check and pin it.", host(hop)),
            Self::KeyRefused => f.write_str("The cluster rejected your SSH key. Check that your public key is registered there for this user name. If you've only just registered it, wait a little and try again."),
            Self::SignInRefused { after_key: true, answers: 0 } => f.write_str("The cluster accepted your SSH key, but then rejected the login. Your cluster account may not have access to this host."),
            Self::SignInRefused { answers: 0, .. } => f.write_str("The cluster rejected the login. Check your user name and your SSH key."),
            Self::SignInRefused { .. } => f.write_str("The cluster rejected your answers. Check the code or password and connect again. Each code works only once."),
            Self::NoSuchHost(hop) => write!(f, "{}'s host name couldn't be found. Ask an administrator to check the host name and the portal's network.", host(hop)),
            Self::ConnectionRefused(hop) => write!(f, "{} refused the connection. It may be down for maintenance. Check the centre's status page.", host(hop)),
            Self::TimedOut(hop) => write!(f, "{} didn't respond in time. It may be down, or there may be a network problem. Try again later.", host(hop)),
            Self::Disconnected { answers: 0, .. } => f.write_str("The cluster closed the connection during login. It may be busy, or it may block this portal's address. Try again in a few minutes."),
            Self::Disconnected { .. } => f.write_str("The cluster closed the connection during login, perhaps because it waited too long for an answer. Connect again."),
            Self::Cancelled => f.write_str("The connection attempt was cancelled."),
            Self::AnswerTimedOut => f.write_str("You ran out of time to answer. Connect again when you have your phone or code at hand."),
            Self::NeedsPerson => f.write_str("The cluster asks for a code or a password. Select Connect when you have it at hand."),
            Self::LocalFault(what) => write!(f, "The portal couldn't open the connection because of an error on its server: {what}. Tell an administrator."),
            Self::Unusable(why) => write!(f, "You're connected, but the portal can't work on this cluster. {why}"),
            Self::Other(line) if line.is_empty() => f.write_str("The connection closed without an error message. Try again. If it keeps happening, tell an administrator."),
            Self::Other(line) => write!(f, "The connection failed. SSH reported: {line}"),
        }
    }
}

/// ssh repeats what a server says when it disconnects; those lines are not ssh's own.
fn strip_server_lines(log: &str) -> String {
    let theirs = |line: &&str| {
        ["Received disconnect", "Disconnected from", "channel "]
            .iter()
            .any(|start| line.trim_start().starts_with(start))
    };
    log.lines().filter(|line| !theirs(line)).collect::<Vec<_>>().join("\n")
}

/// Looks for the banner of ssh's own warning.
fn find_host_key_alarm(log: &str, hop: RouteHop) -> Option<SshLoginError> {
    let warns = |line: &str| {
        line.starts_with("@ ")
            && (line.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") || line.contains("REVOKED HOST KEY DETECTED"))
    };
    log.lines().any(warns).then(|| SshLoginError::HostKeyChanged(hop, find_fingerprint(log)))
}

fn find_host_problem(log: &str, hop: RouteHop) -> Option<SshLoginError> {
    let has = |text: &str| log.contains(text);
    Some(if has("Host key verification failed") || has("host key is known for") {
        SshLoginError::HostKeyUnknown(hop)
    } else if has("Could not resolve hostname") {
        SshLoginError::NoSuchHost(hop)
    } else if has("Connection refused") {
        SshLoginError::ConnectionRefused(hop)
    } else if has("timed out") || has("No route to host") || has("Network is unreachable") {
        SshLoginError::TimedOut(hop)
    } else {
        return None;
    })
}

fn classify_sign_in(log: &str, jump_log: &str, traces: SshLoginFacts) -> SshLoginError {
    let SshLoginFacts { has_signed: signed, answers } = traces;
    let has = |text: &str| log.contains(text) || jump_log.contains(text);
    if has("Permission denied") || has("Too many authentication failures") {
        return if signed || answers > 0 {
            SshLoginError::SignInRefused { after_key: signed, answers }
        } else {
            SshLoginError::KeyRefused
        };
    }
    if has("Connection closed") || has("Connection reset") || has("closed by remote host") || has("Broken pipe") {
        return SshLoginError::Disconnected { after_key: signed, answers };
    }
    let last = log.lines().chain(jump_log.lines()).rfind(|line| !line.trim().is_empty());
    SshLoginError::Other(strip_hidden(last.unwrap_or_default().trim(), 300))
}

/// The fingerprint in ssh's warning.
fn find_fingerprint(log: &str) -> Option<String> {
    log.split_whitespace()
        .map(|word| word.trim_end_matches('.'))
        .find(|word| word.starts_with("SHA256:") && word.len() == 50)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log lines of OpenSSH 9.2 for each kind of failure.
    #[test]
    fn logs_are_read_as_ssh_wrote_them() {
        let traces = SshLoginFacts::default();
        let changed = "@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@\nThe fingerprint for the ED25519 key sent by the remote host is\nSHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU.\nPlease contact your system administrator.\nHost key verification failed.\n";
        assert_eq!(
            SshLoginError::from_logs(changed, "", traces),
            SshLoginError::HostKeyChanged(
                RouteHop::Target,
                Some("SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU".into())
            )
        );
        let unknown = "No ED25519 host key is known for fir and you have requested strict checking.\nHost key verification failed.\n";
        assert_eq!(SshLoginError::from_logs(unknown, "", traces), SshLoginError::HostKeyUnknown(RouteHop::Target));
        for (log, expected) in [
            ("alice@127.0.0.1: Permission denied (publickey).", SshLoginError::KeyRefused),
            (
                "ssh: connect to host 127.0.0.1 port 9: Connection refused",
                SshLoginError::ConnectionRefused(RouteHop::Target),
            ),
            (
                "ssh: Could not resolve hostname x.invalid: Name or service not known",
                SshLoginError::NoSuchHost(RouteHop::Target),
            ),
            (
                "Connection timed out during banner exchange\nConnection to 127.0.0.1 port 2 timed out",
                SshLoginError::TimedOut(RouteHop::Target),
            ),
            ("Connection closed by 127.0.0.1 port 22022", SshLoginError::Disconnected { after_key: false, answers: 0 }),
            ("", SshLoginError::Other(String::new())),
        ] {
            assert_eq!(SshLoginError::from_logs(log, "", traces), expected, "{log}");
        }
        let forged = "Received disconnect from 127.0.0.1 port 1:2: x\nReceived disconnect from h: @    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nDisconnected from h\nConnection closed by 127.0.0.1 port 1";
        assert_eq!(
            SshLoginError::from_logs(forged, "", traces),
            SshLoginError::Disconnected { after_key: false, answers: 0 },
            "a server's own words raise no alarm"
        );
        let after = SshLoginFacts { has_signed: true, answers: 2 };
        assert_eq!(
            SshLoginError::from_logs("alice@h: Permission denied (keyboard-interactive).", "", after),
            SshLoginError::SignInRefused { after_key: true, answers: 2 }
        );
        assert_eq!(
            SshLoginError::from_logs("Connection closed by UNKNOWN port 65535", changed, traces),
            SshLoginError::HostKeyChanged(
                RouteHop::Jump,
                Some("SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU".into())
            )
        );
    }
}
