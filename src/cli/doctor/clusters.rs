//! Each cluster: does it answer, and with the host key that was pinned?

use super::Finding;
use crate::app::files;
use crate::config::Config;
use crate::domain::HostName;
use crate::ssh::host_keys::{self, HostKey};
use crate::store;
use crate::store::clusters::Cluster;

const WHAT: &str = "Cluster";

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let path = config.data_dir.join(files::DATABASE);
    let known = async {
        let mut db = store::backup::look_into(&path).await?;
        let mut known = Vec::new();
        for cluster in store::clusters::list(&mut db).await? {
            let keys = store::clusters::host_keys(&mut db, cluster.id).await?;
            known.push((cluster, keys));
        }
        store::Result::Ok(known)
    };
    // A database that cannot be read was reported before.
    let Ok(known) = known.await else {
        return Vec::new();
    };
    if known.is_empty() {
        return vec![Finding::warning(
            WHAT,
            "None is known yet. Add one: portolan cluster add NAME --host HOST",
        )];
    }
    let mut findings = Vec::new();
    for (cluster, pinned) in known {
        findings.push(examine_one(&cluster, &pinned).await);
    }
    findings
}

async fn examine_one(cluster: &Cluster, pinned: &[String]) -> Finding {
    let Cluster { title, host, port, .. } = cluster;
    let Ok(name) = host.parse::<HostName>() else {
        return Finding::bad(WHAT, format!("{title}: '{host}' is not a host name."));
    };
    match host_keys::scan(&name, *port).await {
        Err(error) => Finding::bad(
            WHAT,
            format!(
                "{title}: {error}. Is the name right, and may this machine reach it (firewall, VPN)?"
            ),
        ),
        Ok(shown) => {
            let matching: Vec<&HostKey> =
                shown.iter().filter(|key| pinned.contains(&key.line())).collect();
            if let Some(key) = matching.first() {
                Finding::good(
                    WHAT,
                    format!("{title}: answers with its pinned host key {}.", key.fingerprint()),
                )
            } else {
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
}
