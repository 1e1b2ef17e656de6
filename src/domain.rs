//! Types that every module shares: identifiers, names and roles, each valid by construction. Parsed once at the edge;
//! nothing here does I/O.

mod remote_path;

use std::fmt;
use std::str::FromStr;

pub use self::remote_path::{RemoteName, RemotePath, RemotePathError};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize)]
            #[serde(transparent)]
            pub struct $name(pub i64);

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.fmt(f)
                }
            }
        )*
    };
}

ids! {
    /// A person with an account on this portal.
    PersonId,
    /// A group, usually a lab.
    GroupId,
    SessionId,
    /// A one-time link: set-up, invitation or password reset.
    OneTimeLinkId,
    /// A cluster that this portal knows.
    ClusterId,
    /// An SSH key of a person.
    SshKeyId,
    /// A job in our own records.
    JobRowId,
    /// A notification to a person.
    NotificationId,
    /// A submission, whatever became of it.
    SubmissionId,
    /// Work on files in the background.
    TransferId,
    /// A saved recipe.
    RecipeId,
    DashboardId,
    /// One run of a dashboard: the job that serves it.
    DashboardRunId,
    /// A link for guests, to a dashboard, a report, or files on a cluster.
    GuestLinkId,
    /// A file or folder on a cluster that a guest link leads to.
    SharedPathId,
    /// What one person reads about one account's usage.
    UsageSourceId,
    /// An allocation granted to one of a group's accounts.
    AllocationId,
    /// A frozen report of a group.
    ReportId,
}

/// Gives the variants of an enum the codes by which the database, forms and URLs know them.
macro_rules! codes {
    ($name:ident { $($variant:ident = $code:literal),* $(,)? }) => {
        impl $name {
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant),*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            pub fn parse(code: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == code)
            }
        }
    };
}
pub(crate) use codes;

/// Which host a connection leads to, and which a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConnectionRole {
    /// The login node: everything that a person can do.
    Login,
    /// The automation host: a few commands, without a second factor.
    Automation,
}

impl ConnectionRole {
    /// As stored (`robot` since 0.1.0) and as sent by forms.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Automation => "robot",
        }
    }
}

impl FromStr for ConnectionRole {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "login" => Ok(Self::Login),
            "robot" => Ok(Self::Automation),
            _ => Err(NameError("Choose the login node or the automation host.")),
        }
    }
}

/// A person's role in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupRole {
    /// Leads the group: may invite people and sees the group's usage.
    Pi,
    /// Belongs to the group.
    Member,
}

impl GroupRole {
    /// As stored and as sent by forms.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::Member => "member",
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::Pi => "PI",
            Self::Member => "Member",
        }
    }

    /// Within a sentence, after "a".
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Pi => "PI",
            Self::Member => "member",
        }
    }
}

impl fmt::Display for GroupRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for GroupRole {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "pi" => Ok(Self::Pi),
            "member" => Ok(Self::Member),
            _ => Err(NameError("Choose one of the listed roles.")),
        }
    }
}

/// Why a name was rejected, as a sentence for the person who typed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(pub &'static str);

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The name that a person signs in with: lower-case letters, digits, dot, dash, underscore.
    SignInName
);

impl SignInName {
    /// In characters.
    pub const MAX: usize = 32;
}

impl FromStr for SignInName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.trim().to_lowercase();
        if name.is_empty() {
            return Err(NameError("Choose a user name."));
        }
        if name.chars().count() > Self::MAX {
            return Err(NameError("Use at most 32 characters."));
        }
        let mut chars = name.chars();
        let starts_well = chars.next().is_some_and(|c| c.is_ascii_lowercase());
        let goes_on_well = chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c));
        if !starts_well || !goes_on_well {
            return Err(NameError(
                "Start with a letter, then use only unaccented letters, digits, dots, dashes or underscores.",
            ));
        }
        Ok(Self(name))
    }
}

name!(
    /// A name for people to read (a person's, a group's): one line, any script, no invisible characters.
    DisplayName
);

impl DisplayName {
    /// In characters.
    pub const MAX: usize = 80;
}

impl FromStr for DisplayName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Err(NameError("Enter a name."));
        }
        if text.chars().count() > Self::MAX {
            return Err(NameError("Use at most 80 characters."));
        }
        if text.chars().any(crate::text::is_hidden) {
            return Err(NameError("Remove line breaks and invisible control characters."));
        }
        Ok(Self(text.to_owned()))
    }
}

name!(
    /// A short name for URLs and commands: `fir`, `demo-mfa`.
    Slug
);

impl FromStr for Slug {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.is_empty()
            || text.len() > 32
            || !text.starts_with(|c: char| c.is_ascii_lowercase())
            || !text.chars().all(good)
        {
            return Err(NameError("Use up to 32 lower-case letters, digits and dashes, starting with a letter."));
        }
        Ok(Self(text.to_owned()))
    }
}

name!(
    /// A host name or address that is safe to pass to `ssh` as an argument.
    HostName
);

impl FromStr for HostName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let good = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
        if text.is_empty()
            || text.len() > 253
            || !text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == ':')
            || !text.chars().all(good)
        {
            return Err(NameError("Enter a host name such as login.example.org, or an IP address."));
        }
        Ok(Self(text.to_owned()))
    }
}

name!(
    /// A person's user name on a cluster: safe to pass to `ssh`, whatever shell reads it later.
    RemoteUser
);

impl RemoteUser {
    pub const MAX: usize = 64;
}

impl FromStr for RemoteUser {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Err(NameError("Enter your user name on the cluster."));
        }
        if text.len() > Self::MAX {
            return Err(NameError("Use at most 64 characters."));
        }
        let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') || !text.chars().all(good) {
            return Err(NameError(
                "Enter only your user name. It can contain unaccented letters, digits, dots, dashes and underscores, and can't start with a dash.",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn user_names_on_clusters_cannot_look_like_options() {
        for bad in ["", "-oProxyCommand=x", "a b", "a\nb", "a@b", "x;y", "$(id)", "é", "%h", ".x"] {
            assert!(bad.parse::<RemoteUser>().is_err(), "{bad:?}");
        }
        for good in ["alice", " alice ", "a.b-c_d", "_x", "s1234"] {
            assert_eq!(good.parse::<RemoteUser>().unwrap().as_str(), good.trim());
        }
    }

    #[test]
    fn sign_in_names_are_folded_and_checked() {
        assert_eq!("  Alice.B ".parse::<SignInName>().unwrap().as_str(), "alice.b");
        for bad in ["", " ", "9lives", "-rf", "a b", "a\nb", "é", "<b>", &"a".repeat(33)] {
            assert!(bad.parse::<SignInName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn labels_take_any_script_but_no_tricks() {
        for good in ["Ada Smith", "名前", "Ødegård & fils", "<script>", "O'Brien"] {
            assert_eq!(good.parse::<DisplayName>().unwrap().as_str(), good);
        }
        for bad in ["", "a\nb", "a\u{202E}b", "a\u{0}b", "\u{200B}", "\u{3164}", "a\u{61C}b", &"x".repeat(81)] {
            assert!(bad.parse::<DisplayName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn hosts_cannot_look_like_options() {
        for bad in ["-oProxyCommand=x", "", "a b", "a;b", "a\nb", "$(x)"] {
            assert!(bad.parse::<HostName>().is_err(), "{bad:?}");
        }
        for good in ["fir.alliancecan.ca", "127.0.0.1", "::1"] {
            assert!(good.parse::<HostName>().is_ok(), "{good:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_short_and_single_line(text in ".{0,120}") {
            if let Ok(label) = text.parse::<DisplayName>() {
                prop_assert!(label.as_str().chars().count() <= DisplayName::MAX);
                prop_assert!(!label.as_str().chars().any(char::is_control));
            }
            if let Ok(name) = text.parse::<SignInName>() {
                prop_assert!(name.as_str().is_ascii());
                prop_assert_eq!(name.as_str().parse::<SignInName>().unwrap(), name);
            }
            if let Ok(host) = text.parse::<HostName>() {
                prop_assert!(!host.as_str().starts_with('-'));
            }
        }
    }
}
