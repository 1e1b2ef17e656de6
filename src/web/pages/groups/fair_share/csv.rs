//! CSV files of a group's fair share over time, queued demand and storage.

use crate::clock::UnixTime;
use crate::store;
use crate::usage::demand::compute_demand;
use crate::usage::{GroupAccountContext, fair_share, hours};
use crate::web::HandlerResult;
use crate::web::http::csv::{download_response, format_row};
use crate::web::pages::groups::GroupRequest;
use crate::web::pages::groups::fair_share::{cards, load_accounts_by_cluster, storage};
use crate::web::pages::groups::usage::{format_exact, record_names_seen};

/// Each account's fair share over time, as far back as it was read.
pub async fn fair_share_csv(request: GroupRequest) -> HandlerResult {
    let view = request.load_usage().await?;
    let GroupRequest { context, group, .. } = request;
    let from = context.app.clock.now().plus(-cards::HISTORY_SECONDS);
    let mut text = format_row(&["cluster", "account", "loaded at", "share", "recent usage", "recent usage / share"]);
    let mut db = context.app.store.read().await?;
    for facts in view.accounts.iter().map(|account| &account.details) {
        for name in &facts.slurm_names {
            for point in store::fair_share_history::list_since(&mut db, group, facts.cluster, name, from).await? {
                let ratio = fair_share::ratio_of_point(&point).map(|ratio| format!("{ratio:.4}"));
                text.push_str(&format_row(&[
                    facts.slug.clone(),
                    name.clone(),
                    point.at.iso(),
                    format!("{:.6}", point.share),
                    format!("{:.6}", point.used),
                    ratio.unwrap_or_default(),
                ]));
            }
        }
    }
    Ok(download_response(&format!("group-{group}-fair-share.csv"), text))
}

/// What pending jobs ask for and running jobs hold.
pub async fn queue_csv(request: GroupRequest) -> HandlerResult {
    let view = request.load_usage().await?;
    let GroupRequest { context, me, group } = request;
    let now = context.app.clock.now();
    let mut text = format_row(&[
        "cluster",
        "account",
        "loaded at",
        "pending jobs",
        "queued core hours",
        "queued GPU hours",
        "pending jobs without a time limit",
        "running jobs",
        "cores in use",
        "GPUs in use",
    ]);
    for (queue, accounts) in load_accounts_by_cluster(&context, &me, &view).await? {
        let Some(group_queue) = queue.as_ref().and_then(|queue| queue.snapshot.group.as_ref()) else {
            continue;
        };
        for facts in accounts.iter().map(|account| &account.details) {
            let found = compute_demand(&group_queue.jobs, &facts.slurm_names, now);
            text.push_str(&format_row(&[
                facts.slug.clone(),
                facts.account.clone(),
                group_queue.seen.map(UnixTime::iso).unwrap_or_default(),
                found.waiting.jobs.to_string(),
                format_exact(hours(found.waiting.core_s)),
                format_exact(hours(found.waiting.gpu_s)),
                found.waiting.without_limit.to_string(),
                found.running.jobs.to_string(),
                found.cores.to_string(),
                found.gpus.to_string(),
            ]));
        }
    }
    Ok(download_response(&format!("group-{group}-queue.csv"), text))
}

/// The group's folders; for PIs, also each person's usage in them.
pub async fn storage_csv(request: GroupRequest) -> HandlerResult {
    let view = request.load_usage().await?;
    let GroupRequest { context, me, group } = request;
    record_names_seen(&context, &me, &view).await?;
    let mut text = format_row(&["cluster", "folder", "member", "user", "bytes", "byte limit", "files", "file limit"]);
    let or_empty = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    for (queue, accounts) in load_accounts_by_cluster(&context, &me, &view).await? {
        let Some(queue) = queue else { continue };
        let (resources, slug) = (&queue.snapshot.resources, &queue.cluster().slug);
        let facts: Vec<&GroupAccountContext> = accounts.iter().map(|account| &*account.details).collect();
        for quota in storage::group_quotas(&resources.places, &facts) {
            text.push_str(&format_row(&[
                slug.clone(),
                quota.label.clone(),
                String::new(),
                String::new(),
                quota.used_bytes.to_string(),
                or_empty(quota.limit_bytes),
                or_empty(quota.files),
                or_empty(quota.files_limit),
            ]));
        }
        let people = resources.per_user.iter().filter(|_| view.is_leader);
        for row in people.filter(|row| facts.iter().any(|account| storage::is_account_name(&row.project, account))) {
            let name = view.known_name(queue.cluster().id, &row.user);
            text.push_str(&format_row(&[
                slug.clone(),
                row.project.clone(),
                name.unwrap_or_default().to_owned(),
                row.user.clone(),
                row.used_bytes.to_string(),
                String::new(),
                row.files.to_string(),
                String::new(),
            ]));
        }
    }
    Ok(download_response(&format!("group-{group}-storage.csv"), text))
}
