//! How a person gets into a site: hosts, proofs of identity, keys, and the way in for programs.

use serde::{Deserialize, Serialize};

use super::identifiers::{HostKeyFingerprint, SiteHost, SiteLink};
use super::{is_default, is_true};

/// The port of every ssh server that does not say otherwise.
const SSH_PORT: u16 = 22;

/// The sign-in server of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteLogin {
    /// The host that people sign in to. Missing only in a file that an administrator still completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<SiteHost>,
    #[serde(skip_serializing_if = "is_ssh_port")]
    pub port: u16,
    /// Other published names of the same servers.
    #[serde(skip_serializing_if = "is_default")]
    pub also: Vec<SiteHost>,
    /// The ways in, the preferred one first; each is what the server asks for, in its order.
    #[serde(skip_serializing_if = "is_default")]
    pub accepts: Vec<Vec<AuthFactor>>,
    /// Fingerprints of the host keys, as the centre publishes them.
    #[serde(skip_serializing_if = "is_default")]
    pub fingerprints: Vec<HostKeyFingerprint>,
    /// From where in the world one may connect, as a sentence; nothing if from everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Seconds that the server waits for a person to finish signing in, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_s: Option<u16>,
    /// A host to pass through first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jump: Option<SiteJumpHost>,
}

impl Default for SiteLogin {
    fn default() -> Self {
        Self {
            host: None,
            port: SSH_PORT,
            also: Vec::new(),
            accepts: Vec::new(),
            fingerprints: Vec::new(),
            region: None,
            grace_s: None,
            jump: None,
        }
    }
}

impl SiteLogin {
    /// What the server asks for on the preferred way. Where nothing is said, a key.
    pub fn preferred_factors(&self) -> &[AuthFactor] {
        self.accepts.first().map_or(&[AuthFactor::Key], Vec::as_slice)
    }

    /// Whether someone must be there to answer, so that the portal never connects by itself.
    pub fn needs_person(&self) -> bool {
        self.preferred_factors().iter().any(|proof| *proof != AuthFactor::Key)
    }
}

/// A host that stands before the site. The person has the same user name there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteJumpHost {
    pub host: SiteHost,
    #[serde(default = "ssh_port", skip_serializing_if = "is_ssh_port")]
    pub port: u16,
}

/// One thing by which a person shows who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthFactor {
    /// A key that was uploaded before.
    Key,
    /// The password of the account at the site.
    Password,
    /// A code from an app, valid for about half a minute.
    Code,
    /// Duo: a request on the phone, a passcode, or a security key.
    Duo,
}

/// How a person tells the site about their key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteKeyRules {
    /// Whether a key opens the way in at all. If not, the portal asks for no key and says why.
    #[serde(skip_serializing_if = "is_true")]
    pub opens: bool,
    /// Why a key is of no use here, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// The page on which a public key is uploaded; where keys open nothing, the one where codes are set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<SiteLink>,
    /// What that page is called there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_name: Option<String>,
    /// What to do on it, one short sentence each.
    #[serde(skip_serializing_if = "is_default")]
    pub steps: Vec<String>,
    /// How long it takes until a new key works, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// The page on which a person first asks to be let onto this cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<SiteLink>,
    /// What the user name is called there: "Alliance user name".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// What the site makes of a key that was put into `~/.ssh/authorized_keys` by hand.
    #[serde(skip_serializing_if = "is_default")]
    pub authorized_keys: AuthorizedKeysPolicy,
}

impl Default for SiteKeyRules {
    fn default() -> Self {
        Self {
            opens: true,
            why_not: None,
            page: None,
            page_name: None,
            steps: Vec::new(),
            delay: None,
            access: None,
            user_name: None,
            authorized_keys: AuthorizedKeysPolicy::Unknown,
        }
    }
}

/// What a site makes of the key file in a person's home.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthorizedKeysPolicy {
    #[default]
    Unknown,
    /// A key in it lets its owner in.
    Read,
    /// Only keys uploaded on the page count.
    Ignored,
}

/// The way in for programs, without a second proof; given on request. Some centres call it an automation node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteAutomation {
    /// Its hosts, the preferred one first.
    pub hosts: Vec<SiteHost>,
    #[serde(skip_serializing_if = "is_ssh_port")]
    pub port: u16,
    /// Fingerprints of their host keys, where published.
    #[serde(skip_serializing_if = "is_default")]
    pub fingerprints: Vec<HostKeyFingerprint>,
    /// Where to ask for it: a mail address or a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support: Option<String>,
    /// The page on which its key is uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<SiteLink>,
    /// The centre's own description of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docs: Option<SiteLink>,
    /// What cannot be done through it, one sentence each.
    #[serde(skip_serializing_if = "is_default")]
    pub forbids: Vec<String>,
    /// What else is good to know, one sentence each.
    #[serde(skip_serializing_if = "is_default")]
    pub notes: Vec<String>,
    /// Programs of the site that may be named as a key's only command.
    #[serde(skip_serializing_if = "is_default")]
    pub wrappers: Vec<SiteForcedCommand>,
}

impl Default for SiteAutomation {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            port: SSH_PORT,
            fingerprints: Vec::new(),
            support: None,
            page: None,
            docs: None,
            forbids: Vec::new(),
            notes: Vec::new(),
            wrappers: Vec::new(),
        }
    }
}

/// A program of the site that lets a few commands through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteForcedCommand {
    pub path: String,
    /// What it lets through, as a sentence.
    pub allows: String,
}

const fn ssh_port() -> u16 {
    SSH_PORT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_ssh_port(port: &u16) -> bool {
    *port == SSH_PORT
}
