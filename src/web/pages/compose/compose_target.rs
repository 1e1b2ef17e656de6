//! The clusters that someone can compose jobs for, with what is known about each. Doesn't contact any cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::discovered_facts::FolderKind;
use crate::cluster::{ClusterAccount, ConnectionStatus, DiscoveredFacts};
use crate::error::AppError;
use crate::recipes::context::{AvailableGpu, ComposeCluster};
use crate::sites::{Site, SiteGpu, SiteGpuSlice};
use crate::store::clusters::Cluster;
use crate::web::http::extractors::{CurrentPerson, RequestContext};

#[derive(Clone)]
pub struct ComposeTarget {
    pub account: Arc<ClusterAccount>,
    /// What forms know about it.
    pub compose_context: Arc<ComposeCluster>,
    pub is_connected: bool,
}

impl ComposeTarget {
    pub fn cluster(&self) -> &Cluster {
        self.account.cluster()
    }

    /// Whether any facts about the person's account there have been discovered yet.
    pub fn has_discovered(&self) -> bool {
        let facts = &self.account.discovered;
        facts.home.is_some() || !facts.partitions.is_empty()
    }
}

/// Lists all of them, hidden ones included: in the person's order, or else connected clusters first.
pub async fn list_targets(context: &RequestContext, me: &CurrentPerson) -> Result<Vec<ComposeTarget>, AppError> {
    let app = &context.app;
    let accounts = app.cluster_accounts.list(me.0.person.id).await?;
    let in_use = accounts.iter().filter(|account| account.cluster().retired_at().is_none());
    let mut found: Vec<ComposeTarget> = in_use
        .map(|account| ComposeTarget {
            compose_context: Arc::new(build_compose_context(account)),
            is_connected: matches!(account.status(&app.connections), ConnectionStatus::Up(_)),
            account: account.clone(),
        })
        .collect();
    found.sort_by_key(|target| (target.account.rank, !target.is_connected));
    Ok(found)
}

/// Lists those to choose from: without hidden clusters, except the one that a link or form names.
pub async fn list_choices(
    context: &RequestContext,
    me: &CurrentPerson,
    named: &str,
) -> Result<Vec<ComposeTarget>, AppError> {
    let mut found = list_targets(context, me).await?;
    found.retain(|target| !target.account.is_hidden || target.cluster().slug == named);
    Ok(found)
}

/// The one that is named, or else the first that is connected, or else the first.
pub fn choose<'a>(targets: &'a [ComposeTarget], named: &str) -> Option<&'a ComposeTarget> {
    let is_named = |target: &&ComposeTarget| target.cluster().slug == named;
    targets.iter().find(is_named).or_else(|| targets.iter().find(|target| target.is_connected)).or(targets.first())
}

pub async fn find_target(context: &RequestContext, me: &CurrentPerson, slug: &str) -> Result<ComposeTarget, AppError> {
    let found = list_targets(context, me).await?;
    found.into_iter().find(|target| target.cluster().slug == slug).ok_or(AppError::NotFound)
}

fn build_compose_context(account: &ClusterAccount) -> ComposeCluster {
    let (site, facts) = (account.site(), &account.discovered);
    // Slurm's limit is one more than the highest task number; our numbers start at 0.
    let max_array = match (site.jobs.max_array, facts.max_array_size) {
        (Some(documented), Some(reported)) => Some(documented.min(reported)),
        (documented, reported) => documented.or(reported),
    };
    ComposeCluster {
        user: facts.user.clone().unwrap_or_default(),
        folders: path_variables(facts),
        accounts: facts.accounts.clone(),
        partitions: facts.partitions.clone(),
        gpus: list_gpus(site, facts),
        max_array,
        keeps_comments: facts.keeps_comments,
        site: site.clone(),
    }
}

/// The values of path variables such as `$SCRATCH`.
pub fn path_variables(facts: &DiscoveredFacts) -> BTreeMap<String, String> {
    let mut folders = BTreeMap::new();
    folders.extend(facts.home.clone().map(|home| ("HOME".to_owned(), home)));
    folders.extend(facts.user.clone().map(|user| ("USER".to_owned(), user)));
    for (name, kind) in
        [("SCRATCH", FolderKind::Scratch), ("PROJECT", FolderKind::Project), ("USERWORK", FolderKind::Work)]
    {
        let path = facts.folders_of_kind(kind).find(|folder| folder.writable).map(|folder| folder.path.clone());
        folders.extend(path.map(|path| (name.to_owned(), path)));
    }
    folders
}

/// The GPUs that this cluster really has, by their common names, then the GPU slices that the site names.
fn list_gpus(site: &Site, facts: &DiscoveredFacts) -> Vec<AvailableGpu> {
    let of_site = |gpu: &SiteGpu| AvailableGpu {
        model: Some(gpu.name.clone()),
        label: gpu.label.clone(),
        per_node: gpu.per_node.unwrap_or(0).into(),
        is_slice: false,
        cores: gpu.cores.map(Into::into),
        memory_gb: gpu.node_memory_gb.map(Into::into),
        partition: gpu.partition.clone(),
    };
    let slice = |slice: &SiteGpuSlice| AvailableGpu {
        model: Some(slice.name.clone()),
        label: slice.label.clone(),
        per_node: 1,
        is_slice: true,
        cores: slice.cores.map(Into::into),
        memory_gb: slice.node_memory_gb.map(Into::into),
        partition: None,
    };
    let slices: Vec<AvailableGpu> = site.jobs.slices.iter().map(slice).collect();
    let mut found: Vec<AvailableGpu> = Vec::new();
    for gpu in &facts.gpus {
        let Some(model) = &gpu.model else { continue };
        if slices.iter().any(|slice| slice.model.as_ref() == Some(model)) {
            continue;
        }
        let described = site.jobs.gpus.iter().find(|gpu| gpu.name == *model).map(of_site);
        found.push(AvailableGpu {
            per_node: gpu.per_node_most,
            ..described.unwrap_or_else(|| AvailableGpu {
                model: Some(model.clone()),
                label: model.clone(),
                ..AvailableGpu::default()
            })
        });
    }
    if found.is_empty() {
        found.extend(site.jobs.gpus.iter().map(of_site));
    }
    // Some sites name no models.
    if let Some(gpu) = facts.gpus.iter().find(|gpu| gpu.model.is_none() && found.is_empty()) {
        let (label, per_node) = ("GPU".to_owned(), gpu.per_node_most);
        found.push(AvailableGpu { label, per_node, ..AvailableGpu::default() });
    }
    found.extend(slices);
    found
}
