//! How a person logs in to a site: hosts, authentication factors, keys, and automation hosts.

use serde::{Deserialize, Serialize};

use super::identifiers::{HostKeyFingerprint, SiteHost, SiteLink};
use super::{OnByDefault, is_default};

/// The default port of SSH servers.
const SSH_PORT: u16 = 22;

/// The login server of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteLoginServer {
    /// The host that people log in to. Missing only in a file that an administrator has yet to complete.
    pub host: Option<SiteHost>,
    #[serde(skip_serializing_if = "is_ssh_port")]
    pub port: u16,
    /// Other published names of the same servers.
    #[serde(skip_serializing_if = "is_default")]
    pub also: Vec<SiteHost>,
    /// The accepted ways to log in, the preferred one first; each lists the factors in the order the server asks for
    /// them.
    #[serde(skip_serializing_if = "is_default")]
    pub accepts: Vec<Vec<SiteLoginFactor>>,
    /// Fingerprints of the host keys, as the centre publishes them.
    #[serde(skip_serializing_if = "is_default")]
    pub fingerprints: Vec<HostKeyFingerprint>,
    /// From which countries people may connect, as a sentence; `None` if from everywhere.
    pub region: Option<String>,
    /// Seconds that the server waits for a person to finish logging in, if known.
    pub grace_s: Option<u16>,
    pub jump: Option<SiteJumpHost>,
}

impl Default for SiteLoginServer {
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

impl SiteLoginServer {
    /// The factors of the preferred way to log in. A key, if the file says nothing.
    pub fn preferred_factors(&self) -> &[SiteLoginFactor] {
        self.accepts.first().map_or(&[SiteLoginFactor::Key], Vec::as_slice)
    }

    /// Whether someone must be there to answer, so that the portal never connects automatically.
    pub fn needs_person(&self) -> bool {
        self.preferred_factors().iter().any(|factor| *factor != SiteLoginFactor::Key)
    }
}

/// A jump host. The person has the same user name there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteJumpHost {
    pub host: SiteHost,
    #[serde(default = "ssh_port", skip_serializing_if = "is_ssh_port")]
    pub port: u16,
}

/// One way in which a person proves their identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteLoginFactor {
    /// A key that was uploaded beforehand.
    Key,
    /// The password of the account at the site.
    Password,
    /// A code from an app, valid for about half a minute.
    Code,
    /// Duo: a request on the phone, a passcode, or a security key.
    Duo,
}

/// How a person registers their key with the site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteKeyRegistration {
    /// Whether the site accepts keys at all. If not, the portal asks for no key and says why.
    #[serde(skip_serializing_if = "is_default")]
    pub opens: OnByDefault,
    /// Why a key is useless here, as a sentence.
    pub why_not: Option<String>,
    /// The page for uploading a public key; at sites without keys, the one for setting up codes.
    pub page: Option<SiteLink>,
    /// What that page is called.
    pub page_name: Option<String>,
    /// What to do on it, one short sentence each.
    #[serde(skip_serializing_if = "is_default")]
    pub steps: Vec<String>,
    /// How long it takes until a new key works, as a sentence.
    pub delay: Option<String>,
    /// The page where a person first requests access to this cluster.
    pub access: Option<SiteLink>,
    /// What the site calls the user name: "Alliance user name".
    pub user_name: Option<String>,
    /// How the site treats a key that was added to `~/.ssh/authorized_keys` by hand.
    #[serde(skip_serializing_if = "is_default")]
    pub authorized_keys: AuthorizedKeysUse,
}

/// How a site treats the key file in a person's home folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthorizedKeysUse {
    #[default]
    Unknown,
    /// A key in it lets its owner log in.
    Read,
    /// Only keys uploaded on the page count.
    Ignored,
}

/// Hosts for programs, without a second factor; access is given on request. Some centres call them automation nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteAutomationHosts {
    /// The preferred one first.
    pub hosts: Vec<SiteHost>,
    #[serde(skip_serializing_if = "is_ssh_port")]
    pub port: u16,
    /// Fingerprints of their host keys, if published.
    #[serde(skip_serializing_if = "is_default")]
    pub fingerprints: Vec<HostKeyFingerprint>,
    /// Where to request access: an e-mail address or a link.
    pub support: Option<String>,
    /// The page for uploading the key.
    pub page: Option<SiteLink>,
    /// The centre's own documentation of it.
    pub docs: Option<SiteLink>,
    /// What is not possible on these hosts, one sentence each.
    #[serde(skip_serializing_if = "is_default")]
    pub forbids: Vec<String>,
    /// What else is good to know, one sentence each.
    #[serde(skip_serializing_if = "is_default")]
    pub notes: Vec<String>,
    /// Programs of the site that may be named as a key's forced command.
    #[serde(skip_serializing_if = "is_default")]
    pub wrappers: Vec<SiteForcedCommand>,
}

impl Default for SiteAutomationHosts {
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

/// A program of the site that allows only a few commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteForcedCommand {
    pub path: String,
    /// What it allows, as a sentence.
    pub allows: String,
}

const fn ssh_port() -> u16 {
    SSH_PORT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_ssh_port(port: &u16) -> bool {
    *port == SSH_PORT
}
