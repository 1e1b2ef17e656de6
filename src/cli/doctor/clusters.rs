//! Checks each cluster: do its hosts respond, do they present the pinned host keys, is an alarm active?

use super::DoctorFinding;
use crate::app::files;
use crate::cluster::ClusterProfile;
use crate::cluster::administration::{ScannedHost, scan_hosts};
use crate::cluster::cluster_profile::hops;
use crate::config::Config;
use crate::ssh::host_keys::HostKey;
use crate::store;

const CLUSTER_SUBJECT: &str = "Cluster";

pub(super) async fn check_clusters(config: &Config) -> Vec<DoctorFinding> {
    let path = config.data_dir.join(files::DATABASE);
    if !path.exists() {
        return Vec::new();
    }
    let load = async {
        let mut db = store::backup::open_read_only(&path).await?;
        let mut profiles = Vec::new();
        for row in store::clusters::list(&mut db).await? {
            profiles.push(ClusterProfile::load(&mut db, row).await?);
        }
        store::Result::Ok(profiles)
    };
    let profiles = match load.await {
        Ok(profiles) => profiles,
        Err(error) => {
            return vec![DoctorFinding::warning(
                CLUSTER_SUBJECT,
                format!(
                    "The clusters can't be read: {error}. After an upgrade, start the portal once, then run doctor again."
                ),
            )];
        }
    };
    if profiles.is_empty() {
        return vec![DoctorFinding::warning(
            CLUSTER_SUBJECT,
            "There are none yet. Add one in the portal, or with: portolan cluster add NAME --preset PRESET",
        )];
    }
    // All in parallel, because a host that doesn't respond takes a while.
    let work: Vec<_> = profiles.into_iter().map(|profile| tokio::spawn(check_cluster(profile))).collect();
    let mut findings = Vec::new();
    for findings_of_one in work {
        findings.extend(findings_of_one.await.unwrap_or_default());
    }
    findings
}

async fn check_cluster(profile: ClusterProfile) -> Vec<DoctorFinding> {
    let title = &profile.row.title;
    if profile.row.retired_at().is_some() {
        return vec![DoctorFinding::good(CLUSTER_SUBJECT, format!("{title}: retired, so it wasn't checked."))];
    }
    let mut findings = Vec::new();
    if let Some(since) = profile.row.alarm_at() {
        findings.push(DoctorFinding::bad(
            CLUSTER_SUBJECT,
            format!(
                "{title}: BLOCKED since {since}, because {}, which isn't pinned. Compare the key with what the centre publishes, then decide on the cluster's host keys page.",
                profile.row.alarm
            ),
        ));
    }
    for host in scan_hosts(&profile.site).await {
        findings.push(check_host(&profile, &host));
    }
    findings
}

fn check_host(profile: &ClusterProfile, host: &ScannedHost) -> DoctorFinding {
    let title = match host.hop {
        hops::JUMP => format!("{}, jump host", profile.row.title),
        hops::AUTOMATION => format!("{}, automation host", profile.row.title),
        _ => profile.row.title.clone(),
    };
    let pinned = profile.host_keys(host.hop);
    let shown = match &host.shown {
        Ok(shown) => shown,
        Err(_) if host.hop == hops::LOGIN && profile.site.login.jump.is_some() => {
            return DoctorFinding::good(
                CLUSTER_SUBJECT,
                format!("{title}: behind a jump host, so it wasn't checked from here."),
            );
        }
        Err(error) => {
            let words =
                format!("{title}: {error}. Check the host name, and that this machine can reach it (firewall, VPN).");
            // People can work without the automation host.
            let is_extra = host.hop == hops::AUTOMATION;
            return if is_extra {
                DoctorFinding::warning(CLUSTER_SUBJECT, words)
            } else {
                DoctorFinding::bad(CLUSTER_SUBJECT, words)
            };
        }
    };
    if pinned.is_empty() {
        return DoctorFinding::warning(
            CLUSTER_SUBJECT,
            format!("{title}: no host key is pinned, so nobody can connect. Pin one on the cluster's host keys page."),
        );
    }
    match shown.iter().find(|key| pinned.contains(key)) {
        Some(key) if !host.published.is_empty() && !host.is_published(key) => DoctorFinding::warning(
            CLUSTER_SUBJECT,
            format!(
                "{title}: reachable with its pinned host key {}, but the cluster configuration doesn't list this key as published by the centre.",
                key.fingerprint()
            ),
        ),
        Some(key) => DoctorFinding::good(
            CLUSTER_SUBJECT,
            format!("{title}: reachable with its pinned host key {}.", key.fingerprint()),
        ),
        None => {
            let seen: Vec<String> = shown.iter().map(HostKey::fingerprint).collect();
            DoctorFinding::bad(
                CLUSTER_SUBJECT,
                format!(
                    "{title}: the host key has CHANGED. It is now {}. Someone may be intercepting the connection: compare the key with what the centre publishes before you do anything else.",
                    seen.join(", ")
                ),
            )
        }
    }
}
