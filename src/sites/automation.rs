//! Automation hosts, to which some centres give access on request: no second factor, but a key that works from one
//! address only and starts one command only. Builds what a person must submit, and explains the result of a test.
//!
//! `automation/portolan-commands` is our own forced command. Nothing here connects.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

mod outcome;

pub use outcome::{AutomationTestOutcome, explain_outcome};

use super::Site;

/// Our own forced command, to be shown and downloaded.
pub const WRAPPER_SCRIPT: &str = include_str!("../../automation/portolan-commands");

/// The Slurm commands that `automation/portolan-commands` allows.
pub const SLURM_COMMANDS: &[&str] =
    &["squeue", "sacct", "sshare", "sinfo", "sprio", "sreport", "seff", "sbatch", "scancel", "scontrol", "sacctmgr"];
/// What else it allows, apart from SFTP. A test compares both lists with the file.
pub const OTHER_COMMANDS: &[&str] =
    &["diskusage_report", "dusage", "cost", "projects", "id", "groups", "echo", "ls", "cat", "mkdir"];

/// Why no line for the key page could be built, as a sentence for the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AutomationKeyLineError {
    #[error("Enter the address from which this portal connects to the cluster.")]
    NoAddress,
    /// An address that the cluster never sees.
    #[error(
        "{0} is a private address. Enter the portal's public address; your network administrators \
         know it."
    )]
    InsideAddress(IpAddr),
    /// A command that cannot be put between the quotes.
    #[error(
        "Enter the full path of the command, with only letters, digits, dots, dashes, underscores and slashes, and \
         spaces only before its arguments."
    )]
    Command,
    #[error("Enter a public key: one line that starts with ssh-ed25519, ecdsa-sha2 or ssh-rsa.")]
    PublicKey,
    /// A private key, which must never be handed over.
    #[error("This is a private key. Keep it secret, and enter the public key instead (the file that ends in .pub).")]
    PrivateKey,
}

/// The line to upload on the key page: the three restrictions and the public key.
///
/// Addresses are written in full. The Alliance requires at least the first three numbers of an IPv4 address, and an
/// address of the family that the connection really uses: if the portal has both families, give both.
pub fn authorized_keys_line(
    addresses: &[IpAddr],
    command: &str,
    public_key: &str,
) -> Result<String, AutomationKeyLineError> {
    if addresses.is_empty() {
        return Err(AutomationKeyLineError::NoAddress);
    }
    let mut from = Vec::new();
    for address in addresses {
        let address = address.to_canonical();
        if is_private_address(address) {
            return Err(AutomationKeyLineError::InsideAddress(address));
        }
        from.push(address.to_string());
    }
    let good = |c: char| c.is_ascii_alphanumeric() || "._-/+ ~".contains(c);
    let starts = command.starts_with(|c: char| c.is_ascii_alphanumeric() || "/.~".contains(c));
    if !starts || command.len() > 300 || !command.chars().all(good) || command.ends_with(' ') {
        return Err(AutomationKeyLineError::Command);
    }
    let key = parse_public_key(public_key)?;
    Ok(format!("restrict,from=\"{}\",command=\"{command}\" {key}", from.join(",")))
}

/// Whether an address is meaningful only inside a network. Loopback is allowed, for trials on one machine.
fn is_private_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && (64..128).contains(&b);
            v4.is_private() || v4.is_link_local() || v4.is_multicast() || a == 0 || a >= 240 || shared
        }
        IpAddr::V6(v6) => {
            v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast() || v6.is_unspecified()
        }
    }
}

/// Type, body and, if it is plain, the comment of a public key.
fn parse_public_key(text: &str) -> Result<String, AutomationKeyLineError> {
    if text.contains("PRIVATE KEY") {
        return Err(AutomationKeyLineError::PrivateKey);
    }
    let text = text.trim();
    let mut words = text.split_whitespace();
    let (Some(kind), Some(body)) = (words.next(), words.next()) else {
        return Err(AutomationKeyLineError::PublicKey);
    };
    let known = ["ssh-ed25519", "ssh-rsa"].contains(&kind) || kind.starts_with("ecdsa-sha2-");
    let inside = STANDARD.decode(body).unwrap_or_default();
    // The body begins with the length of the type's name, then the name itself.
    let length = u32::try_from(kind.len()).unwrap_or_default().to_be_bytes();
    let named = inside.strip_prefix(&length).is_some_and(|rest| rest.starts_with(kind.as_bytes()));
    if !known || !named || text.contains('\n') {
        return Err(AutomationKeyLineError::PublicKey);
    }
    let comment = words
        .next()
        .filter(|word| word.len() <= 64 && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-@+".contains(c)));
    Ok(comment.map_or(format!("{kind} {body}"), |word| format!("{kind} {body} {word}")))
}

/// What a person tells the centre's support.
#[derive(Debug, Clone, Copy)]
pub struct AutomationRequestLetter<'a> {
    pub person: &'a str,
    /// Their user name at the site.
    pub user_name: &'a str,
    /// The portal's own address or name.
    pub portal: &'a str,
    /// The addresses from which it connects.
    pub addresses: &'a [IpAddr],
    /// The command that the key is bound to.
    pub command: &'a str,
}

/// The letter to the centre's support; `None` if the site has no automation hosts.
pub fn access_request_letter(site: &Site, request: &AutomationRequestLetter<'_>) -> Option<String> {
    let automation = site.automation.as_ref()?;
    let hosts: Vec<&str> = automation.hosts.iter().map(super::SiteHost::as_str).collect();
    let addresses: Vec<String> = request.addresses.iter().map(ToString::to_string).collect();
    // The centre does not know our command, so the letter includes it; its own needs no explanation.
    let script = if request.command.ends_with("portolan-commands") {
        "That command is a script of about 70 lines, which I'd be happy to send you. It runs only the commands below, \
         without a shell."
    } else {
        ""
    };
    let (addresses, title, limits) = (addresses.join(", "), &site.title, site.limits);
    Some(format!(
        "Subject: Automation access to {title} for {user}\n\
         \n\
         Hello,\n\
         \n\
         I'd like to request automation access for my account {user} on {title} ({hosts}).\n\
         \n\
         Purpose: my research group runs the web portal Portolan on its own server ({portal}). It shows me my \
         jobs and their results, and submits a job when I click a button. It's a conventional program that runs the \
         fixed commands below, not an AI agent.\n\
         \n\
         Tools: the OpenSSH client, and SFTP for the files of my jobs.\n\
         \n\
         Source address: {addresses}\n\
         \n\
         Key: one key for this purpose only, with the options restrict, from=\"{from}\" and command=\"{command}\". \
         {script}\n\
         \n\
         Commands: {commands}, and SFTP. Of these, scontrol is limited to show, hold, release and requeue, sacctmgr \
         to show, and scancel to job IDs.\n\
         \n\
         Rate: at most {calls} commands per minute over one persistent connection. The queue is read at most every \
         {every} seconds, and only while someone is viewing it or one of my jobs is active. Submissions are at least \
         {spacing} s apart.\n\
         \n\
         Thank you,\n\
         {person}\n",
        user = request.user_name,
        hosts = hosts.join(", "),
        portal = request.portal,
        from = addresses.replace(' ', ""),
        command = request.command,
        commands = [SLURM_COMMANDS, OTHER_COMMANDS].concat().join(", "),
        calls = limits.calls_per_minute,
        every = limits.queue_every_s,
        spacing = limits.submit_spacing_s,
        person = request.person,
    ))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wrapper_tests;
