//! Which host keys are pinned: those that the centre publishes, and those that the administrator gives.

use std::str::FromStr;

use anyhow::bail;
use clap::Args;

use crate::cluster::administration::{ScannedHost, scan_hosts};
use crate::cluster::cluster_profile::hops;
use crate::sites::{HostKeyFingerprint, Site};
use crate::ssh::host_keys::HostKey;
use crate::store::clusters::PinnedHostKey;

#[derive(Debug, Args)]
pub(super) struct PinHostKeysArgs {
    /// A fingerprint published by the centre (SHA256:…). If the host can't be reached from here, the whole key after
    /// the role of its host: 'login ssh-ed25519 AAAA…' (or jump, or automation). Can be repeated. Not needed for keys
    /// that the preset lists as published.
    #[arg(long, value_name = "FINGERPRINT")]
    host_key: Vec<HostKeyArg>,
    /// Pin whatever keys the hosts present now, without comparing them. Only safe where nobody can intercept the
    /// connection, such as on this machine. Has no effect on a host whose keys differ from the published ones.
    #[arg(long)]
    trust_shown: bool,
}

/// A host key as given by an administrator.
#[derive(Debug, Clone)]
enum HostKeyArg {
    Fingerprint(HostKeyFingerprint),
    /// The whole key, and the host that it belongs to.
    WholeKey(&'static str, HostKey),
}

impl FromStr for HostKeyArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(fingerprint) = text.parse() {
            return Ok(Self::Fingerprint(fingerprint));
        }
        let whole = text.split_once(char::is_whitespace).and_then(|(hop, key)| {
            let hop = if hop == "automation" { hops::AUTOMATION } else { hop };
            let hop = [hops::LOGIN, hops::JUMP, hops::AUTOMATION].into_iter().find(|of| *of == hop)?;
            Some(Self::WholeKey(hop, HostKey::parse(key)?))
        });
        whole.ok_or(
            "Enter a fingerprint (SHA256: followed by 43 letters and digits) or a key such as 'login ssh-ed25519 AAAA…'.",
        )
    }
}

/// The host's role in the connection, for people.
pub(super) fn hop_label(hop: &str) -> &'static str {
    match hop {
        hops::JUMP => "jump host",
        hops::AUTOMATION => "automation host",
        _ => "login node",
    }
}

impl PinHostKeysArgs {
    /// Whether any host key option was given.
    pub(super) const fn is_given(&self) -> bool {
        self.trust_shown || !self.host_key.is_empty()
    }

    /// Asks every host of the site for its keys and returns those to pin, or explains what is missing.
    pub(super) async fn choose_pins(&self, site: &Site) -> anyhow::Result<Vec<PinnedHostKey>> {
        let mut pins = Vec::new();
        for host in scan_hosts(site).await {
            let keys = self.trusted_keys(&host);
            if keys.is_empty() {
                self.explain_no_trusted_key(&host, site)?;
            }
            for key in keys {
                let published = if host.is_published(&key) { ", as published" } else { "" };
                let (label, fingerprint) = (hop_label(host.hop), key.fingerprint());
                say!("{label} {}: {} {fingerprint}{published}", host.host.as_str(), key.kind());
                pins.push((host.hop.to_owned(), key.to_line()));
            }
        }
        Ok(pins)
    }

    /// The keys of one host that can be trusted.
    fn trusted_keys(&self, host: &ScannedHost) -> Vec<HostKey> {
        let trusted = self.trust_shown && host.published.is_empty();
        let named = |key: &HostKey| {
            let fingerprint = key.fingerprint();
            self.host_key
                .iter()
                .any(|name| matches!(name, HostKeyArg::Fingerprint(wanted) if wanted.as_str() == fingerprint))
        };
        let believed = |key: &&HostKey| trusted || host.is_published(key) || named(key);
        let mut keys: Vec<HostKey> = host.shown.iter().flatten().filter(believed).cloned().collect();
        for name in &self.host_key {
            if let HostKeyArg::WholeKey(hop, key) = name
                && *hop == host.hop
                && !keys.contains(key)
            {
                keys.push(key.clone());
            }
        }
        keys
    }

    /// Why none of a host's keys is trusted. Only the automation host may go without for now.
    fn explain_no_trusted_key(&self, host: &ScannedHost, site: &Site) -> anyhow::Result<()> {
        let (label, name) = (hop_label(host.hop), host.host.as_str());
        let is_optional = host.hop == hops::AUTOMATION;
        match &host.shown {
            Ok(keys) => {
                say!("The {label} {name} presents these host keys:");
                for key in keys {
                    say!("  {:<22} {}", key.kind(), key.fingerprint());
                }
            }
            Err(_) if is_optional => {}
            Err(_) if host.hop == hops::LOGIN && site.login.jump.is_some() => bail!(
                "{name} is behind a jump host and can't be reached from here. Run ssh-keyscan on the jump host, compare the fingerprints, and pass the keys with --host-key 'login ssh-ed25519 AAAA…'. Nothing was changed."
            ),
            Err(error) => bail!("{error}. Nothing was changed."),
        }
        if host.is_mismatch() {
            say!("The centre publishes different fingerprints: {}", host.published.join(", "));
        }
        if is_optional {
            say!(
                "No host key is pinned for the automation host {name}, so automation isn't available yet. You can pin one later on the cluster's host keys page."
            );
            return Ok(());
        }
        if host.is_mismatch() {
            bail!(
                "Someone may be intercepting the connection. Find out why {name} presents keys that differ from the published ones before you continue. Nothing was changed."
            );
        }
        if self.is_given() {
            bail!(
                "None of the host keys that {name} presents matches the fingerprints you entered. Find out why before you connect. Nothing was changed."
            );
        }
        bail!(
            "Compare these keys with the fingerprints that the centre publishes, then run the command again with --host-key FINGERPRINT. Nothing was changed."
        );
    }
}
