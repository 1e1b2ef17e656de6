//! Each cluster: do its hosts answer, and with the host keys that were pinned? Is it stopped by an alarm?

use super::Finding;
use crate::app::files;
use crate::cluster::Known;
use crate::cluster::administration::{Scanned, scan};
use crate::cluster::known::hops;
use crate::config::Config;
use crate::ssh::host_keys::HostKey;
use crate::store;

const WHAT: &str = "Cluster";

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let path = config.data_dir.join(files::DATABASE);
    if !path.exists() {
        return Vec::new();
    }
    let known = async {
        let mut db = store::backup::look_into(&path).await?;
        let mut known = Vec::new();
        for row in store::clusters::list(&mut db).await? {
            known.push(Known::of(&mut db, row).await?);
        }
        store::Result::Ok(known)
    };
    let known = match known.await {
        Ok(known) => known,
        Err(error) => {
            return vec![Finding::warning(
                WHAT,
                format!(
                    "They cannot be read: {error}. After an upgrade, start the portal once and ask again."
                ),
            )];
        }
    };
    if known.is_empty() {
        return vec![Finding::warning(
            WHAT,
            "None is known yet. Add one on the portal's pages, or with: portolan cluster add NAME --preset PRESET",
        )];
    }
    // All at once: a host that does not answer takes its time.
    let work: Vec<_> = known.into_iter().map(|known| tokio::spawn(examine_one(known))).collect();
    let mut findings = Vec::new();
    for findings_of_one in work {
        findings.extend(findings_of_one.await.unwrap_or_default());
    }
    findings
}

async fn examine_one(known: Known) -> Vec<Finding> {
    let title = &known.row.title;
    if known.row.retired().is_some() {
        return vec![Finding::good(WHAT, format!("{title}: out of use, so it was not asked."))];
    }
    let mut findings = Vec::new();
    if let Some(since) = known.row.alarmed() {
        findings.push(Finding::bad(
            WHAT,
            format!(
                "{title}: STOPPED since {since}, because {}, which is not pinned. Compare with what the centre publishes, then decide on the cluster's page of host keys.",
                known.row.alarm
            ),
        ));
    }
    for host in scan(&known.site).await {
        findings.push(examine_host(&known, &host));
    }
    findings
}

fn examine_host(known: &Known, host: &Scanned) -> Finding {
    let title = match host.hop {
        hops::JUMP => format!("{}, jump host", known.row.title),
        hops::ROBOT => format!("{}, automation host", known.row.title),
        _ => known.row.title.clone(),
    };
    let pinned = known.keys_of(host.hop);
    let shown = match &host.shown {
        Ok(shown) => shown,
        Err(_) if host.hop == hops::LOGIN && known.site.login.jump.is_some() => {
            return Finding::good(
                WHAT,
                format!("{title}: it stands behind a jump host, so it was not asked from here."),
            );
        }
        Err(error) => {
            let words = format!(
                "{title}: {error}. Is the name right, and may this machine reach it (firewall, VPN)?"
            );
            // People can work without it.
            let is_extra = host.hop == hops::ROBOT;
            return if is_extra {
                Finding::warning(WHAT, words)
            } else {
                Finding::bad(WHAT, words)
            };
        }
    };
    if pinned.is_empty() {
        return Finding::warning(
            WHAT,
            format!(
                "{title}: no host key is pinned, so nobody can connect to it. Pin one on the cluster's page of host keys."
            ),
        );
    }
    match shown.iter().find(|key| pinned.contains(key)) {
        Some(key) if !host.published.is_empty() && !host.is_published(key) => Finding::warning(
            WHAT,
            format!(
                "{title}: answers with its pinned host key {}, which is not among those that its centre publishes according to its description.",
                key.fingerprint()
            ),
        ),
        Some(key) => Finding::good(
            WHAT,
            format!("{title}: answers with its pinned host key {}.", key.fingerprint()),
        ),
        None => {
            let seen: Vec<String> = shown.iter().map(HostKey::fingerprint).collect();
            Finding::bad(
                WHAT,
                format!(
                    "{title}: the host key has CHANGED. It now shows {}. Someone may be in between: compare with what the centre publishes before anything else.",
                    seen.join(", ")
                ),
            )
        }
    }
}
