//! The clusters that someone can compose jobs for, with what is known of each. No cluster is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::discovered_facts::FolderKind;
use crate::cluster::{ClusterProfile, ConnectionStatus, DiscoveredFacts};
use crate::domain::{ConnectionRole, PersonId};
use crate::error::AppError;
use crate::jobs::ClusterAccountId;
use crate::recipes::context::{AvailableGpu, ComposeContext};
use crate::sites::Site;
use crate::store::clusters::Cluster;
use crate::store::{self, Store};
use crate::web::http::extractors::{CurrentPerson, RequestContext};

/// A cluster to compose for.
#[derive(Clone)]
pub struct ComposeTarget {
    pub cluster: Arc<Cluster>,
    /// What forms know of it.
    pub compose_context: Arc<ComposeContext>,
    /// Whether the connection stands.
    pub is_connected: bool,
    /// Whether anything was learnt of the person's place there yet.
    pub has_discovered: bool,
}

/// What is noted of someone's clusters, until anything is written.
pub type ComposeTargetCache = store::StoreCache<PersonId, Vec<ComposeTargetProfile>>;

/// What is noted of a cluster.
pub struct ComposeTargetProfile {
    cluster: Arc<Cluster>,
    compose_context: Arc<ComposeContext>,
    has_discovered: bool,
}

/// All of them, connected ones first.
pub async fn list_targets(
    context: &RequestContext,
    me: &CurrentPerson,
) -> Result<Vec<ComposeTarget>, AppError> {
    let person = me.0.person.id;
    let app = &context.app;
    let noted = context
        .pages
        .compose_targets
        .get_or_load(&app.store, &person, async || load_profiles(&app.store, person).await)
        .await?;
    let spot = |one: &ComposeTargetProfile| {
        let status = app
            .connections
            .status(ClusterAccountId { person, cluster: one.cluster.id }.connection_key());
        ComposeTarget {
            cluster: one.cluster.clone(),
            compose_context: one.compose_context.clone(),
            is_connected: matches!(status, ConnectionStatus::Up(_)),
            has_discovered: one.has_discovered,
        }
    };
    let mut found: Vec<ComposeTarget> = noted.iter().map(spot).collect();
    found.sort_by_key(|spot| !spot.is_connected);
    Ok(found)
}

async fn load_profiles(
    store: &Store,
    person: PersonId,
) -> Result<Vec<ComposeTargetProfile>, store::StoreError> {
    let mut db = store.read().await?;
    let mut found = Vec::new();
    for line in store::connections::list_for_person(&mut db, person).await? {
        let key = line.key();
        if key.role != ConnectionRole::Login {
            continue;
        }
        let Some(row) = store::clusters::get(&mut db, key.cluster).await? else { continue };
        if row.retired_at().is_some() {
            continue;
        }
        let known = ClusterProfile::load(&mut db, row.clone()).await?;
        let learnt: DiscoveredFacts = serde_json::from_str(&line.discovered).unwrap_or_default();
        found.push(ComposeTargetProfile {
            cluster: Arc::new(row),
            has_discovered: learnt.home.is_some() || !learnt.partitions.is_empty(),
            compose_context: Arc::new(build_compose_context(known.site, learnt)),
        });
    }
    Ok(found)
}

pub async fn find_target(
    context: &RequestContext,
    me: &CurrentPerson,
    slug: &str,
) -> Result<ComposeTarget, AppError> {
    let found = list_targets(context, me).await?;
    found.into_iter().find(|spot| spot.cluster.slug == slug).ok_or(AppError::NotFound)
}

fn build_compose_context(site: Site, learnt: DiscoveredFacts) -> ComposeContext {
    let gpus = list_gpus(&site, &learnt);
    // One more than the highest number that a task may have; ours begin with 0.
    let max_array = match (site.jobs.max_array, learnt.max_array_size) {
        (Some(said), Some(told)) => Some(said.min(told)),
        (said, told) => said.or(told),
    };
    ComposeContext {
        user: learnt.user.clone().unwrap_or_default(),
        folders: path_variables(&learnt),
        accounts: learnt.accounts,
        partitions: learnt.partitions,
        gpus,
        max_array,
        keeps_comments: learnt.keeps_comments,
        site: Arc::new(site),
    }
}

/// What the variables of paths stand for.
fn path_variables(learnt: &DiscoveredFacts) -> BTreeMap<String, String> {
    let mut folders = BTreeMap::new();
    folders.extend(learnt.home.clone().map(|home| ("HOME".to_owned(), home)));
    folders.extend(learnt.user.clone().map(|user| ("USER".to_owned(), user)));
    for (name, kind) in [
        ("SCRATCH", FolderKind::Scratch),
        ("PROJECT", FolderKind::Project),
        ("USERWORK", FolderKind::Work),
    ] {
        let path =
            learnt.folders_of_kind(kind).find(|folder| folder.writable).map(|one| one.path.clone());
        folders.extend(path.map(|path| (name.to_owned(), path)));
    }
    folders
}

/// The GPUs that this cluster really has, by the names that people know, then the parts of them that the site names.
fn list_gpus(site: &Site, learnt: &DiscoveredFacts) -> Vec<AvailableGpu> {
    let of_site = |gpu: &crate::sites::SiteGpu| AvailableGpu {
        model: Some(gpu.name.clone()),
        label: gpu.label.clone(),
        per_node: gpu.per_node.unwrap_or(0).into(),
        is_slice: false,
        cores: gpu.cores.map(Into::into),
        memory_gb: gpu.node_memory_gb.map(Into::into),
        partition: gpu.partition.clone(),
    };
    let slices: Vec<AvailableGpu> = site
        .jobs
        .slices
        .iter()
        .map(|slice| AvailableGpu {
            model: Some(slice.name.clone()),
            label: slice.label.clone(),
            per_node: 1,
            is_slice: true,
            cores: slice.cores.map(Into::into),
            memory_gb: slice.node_memory_gb.map(Into::into),
            partition: None,
        })
        .collect();
    let mut found: Vec<AvailableGpu> = Vec::new();
    for gpu in &learnt.gpus {
        let Some(model) = &gpu.model else { continue };
        if slices.iter().any(|slice| slice.model.as_ref() == Some(model)) {
            continue;
        }
        let described = site.jobs.gpus.iter().find(|one| one.name == *model).map(of_site);
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
    found.extend(slices);
    found
}
