//! Checks which account a request is charged to, and whether it may be.

use super::RequestProblemCollector;
use crate::recipes::context::{ComposeCluster, SubmitAccount};
use crate::recipes::request::{JobRequest, RequestField};
use crate::sites::SiteFamily;

/// The account that a request names, by its display name or by Slurm's.
pub(super) fn find_account<'a>(request: &JobRequest, cluster: &'a ComposeCluster) -> Option<&'a SubmitAccount> {
    let name = request.account.as_deref()?;
    let fits = |account: &&SubmitAccount| account.name == name || account.slurm_names.iter().any(|own| own == name);
    cluster.accounts.iter().find(fits)
}

pub(super) fn check(request: &JobRequest, collector: &mut RequestProblemCollector<'_>) {
    let cluster = collector.cluster;
    let wants_gpus = request.gpus.is_some();
    let fits = |account: &&SubmitAccount| if wants_gpus { account.for_gpu } else { account.for_cpu };
    let fitting: Vec<&str> = cluster.accounts.iter().filter(fits).map(|account| account.name.as_str()).collect();
    let kind = if wants_gpus { "with GPUs" } else { "without GPUs" };
    let choose = match fitting.as_slice() {
        [] => String::new(),
        some => {
            format!(" Choose {}.", some.iter().take(8).copied().collect::<Vec<_>>().join(" or "))
        }
    };
    let Some(name) = &request.account else {
        let is_asked = cluster.site.family == SiteFamily::Alliance && fitting.len() > 1;
        if cluster.site.jobs.account_required || is_asked {
            collector.add_by_rule(
                "jobs.account_required",
                RequestField::Account,
                format!("Choose an account: this cluster requires one.{choose}"),
            );
        }
        return;
    };
    // The accounts are unknown there.
    if cluster.accounts.is_empty() {
        return;
    }
    let Some(account) = find_account(request, cluster) else {
        collector
            .add_refused(RequestField::Account, format!("You have no account called {name} on this cluster.{choose}"));
        return;
    };
    if !fits(&account) {
        collector.add_refused(
            RequestField::Account,
            format!("You can't use the account {name} for jobs {kind} on this cluster.{choose}"),
        );
    }
    let partition = request.partition.as_deref().filter(|name| *name != "default");
    if let Some(partition) = partition.filter(|names| {
        !account.partitions.is_empty() && names.split(',').all(|name| !account.partitions.iter().any(|own| own == name))
    }) {
        collector.add_refused(
            RequestField::Partition,
            format!(
                "You can't use the account {name} in the partition {partition}, only in {}.",
                account.partitions.join(", ")
            ),
        );
    }
    if let Some(qos) = request.qos.as_ref().filter(|qos| !account.qos.is_empty() && !account.qos.contains(qos)) {
        collector.add_refused(
            RequestField::Qos,
            format!("The account {name} doesn't have the QOS {qos}, only {}.", account.qos.join(", ")),
        );
    }
}
