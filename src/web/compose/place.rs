//! The clusters that someone can compose jobs for, with what is known of each. No cluster is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::extract::{Context, Me};
use crate::cluster::discovered_facts::FolderKind;
use crate::cluster::{ClusterProfile, ConnectionStatus, DiscoveredFacts};
use crate::domain::{ConnectionRole, PersonId};
use crate::error::AppError;
use crate::jobs::QueueKey;
use crate::recipes::place::{Gpu, Place};
use crate::sites::Site;
use crate::store::clusters::Cluster;
use crate::store::{self, Store};

/// A cluster to compose for.
#[derive(Clone)]
pub struct Spot {
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// What forms know of it.
    pub place: Arc<Place>,
    /// Whether the connection stands.
    pub is_up: bool,
    /// Whether anything was learnt of the person's place there yet.
    pub is_known: bool,
}

/// What is noted of someone's clusters, until anything is written.
pub type Spots = store::StoreCache<PersonId, Vec<Noted>>;

/// What is noted of a cluster.
pub struct Noted {
    cluster: Arc<Cluster>,
    place: Arc<Place>,
    is_known: bool,
}

/// All of them, connected ones first.
pub async fn all(context: &Context, me: &Me) -> Result<Vec<Spot>, AppError> {
    let person = me.0.person.id;
    let app = &context.app;
    let noted = app
        .compose_targets
        .get_or_load(&app.store, &person, async || read(&app.store, person).await)
        .await?;
    let spot = |one: &Noted| {
        let status = app.connections.status(QueueKey { person, cluster: one.cluster.id }.line());
        Spot {
            cluster: one.cluster.clone(),
            place: one.place.clone(),
            is_up: matches!(status, ConnectionStatus::Up(_)),
            is_known: one.is_known,
        }
    };
    let mut found: Vec<Spot> = noted.iter().map(spot).collect();
    found.sort_by_key(|spot| !spot.is_up);
    Ok(found)
}

async fn read(store: &Store, person: PersonId) -> Result<Vec<Noted>, store::StoreError> {
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
        let learnt: DiscoveredFacts = serde_json::from_str(&line.learnt).unwrap_or_default();
        found.push(Noted {
            cluster: Arc::new(row),
            is_known: learnt.home.is_some() || !learnt.partitions.is_empty(),
            place: Arc::new(place(known.site, learnt)),
        });
    }
    Ok(found)
}

/// One of them.
pub async fn one(context: &Context, me: &Me, slug: &str) -> Result<Spot, AppError> {
    let found = all(context, me).await?;
    found.into_iter().find(|spot| spot.cluster.slug == slug).ok_or(AppError::NotFound)
}

fn place(site: Site, learnt: DiscoveredFacts) -> Place {
    let gpus = gpus(&site, &learnt);
    // One more than the highest number that a task may have; ours begin with 0.
    let max_array = match (site.jobs.max_array, learnt.max_array_size) {
        (Some(said), Some(told)) => Some(said.min(told)),
        (said, told) => said.or(told),
    };
    Place {
        user: learnt.user.clone().unwrap_or_default(),
        folders: folders(&learnt),
        accounts: learnt.accounts,
        partitions: learnt.partitions,
        gpus,
        max_array,
        keeps_comments: learnt.keeps_comments,
        site: Arc::new(site),
    }
}

/// What the variables of paths stand for.
fn folders(learnt: &DiscoveredFacts) -> BTreeMap<String, String> {
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
fn gpus(site: &Site, learnt: &DiscoveredFacts) -> Vec<Gpu> {
    let of_site = |gpu: &crate::sites::SiteGpu| Gpu {
        model: Some(gpu.name.clone()),
        label: gpu.label.clone(),
        per_node: gpu.per_node.unwrap_or(0).into(),
        is_slice: false,
        cores: gpu.cores.map(Into::into),
        memory_gb: gpu.node_memory_gb.map(Into::into),
        partition: gpu.partition.clone(),
    };
    let slices: Vec<Gpu> = site
        .jobs
        .slices
        .iter()
        .map(|slice| Gpu {
            model: Some(slice.name.clone()),
            label: slice.label.clone(),
            per_node: 1,
            is_slice: true,
            cores: slice.cores.map(Into::into),
            memory_gb: slice.node_memory_gb.map(Into::into),
            partition: None,
        })
        .collect();
    let mut found: Vec<Gpu> = Vec::new();
    for gpu in &learnt.gpus {
        let Some(model) = &gpu.model else { continue };
        if slices.iter().any(|slice| slice.model.as_ref() == Some(model)) {
            continue;
        }
        let described = site.jobs.gpus.iter().find(|one| one.name == *model).map(of_site);
        found.push(Gpu {
            per_node: gpu.per_node_most,
            ..described.unwrap_or_else(|| Gpu {
                model: Some(model.clone()),
                label: model.clone(),
                ..Gpu::default()
            })
        });
    }
    if found.is_empty() {
        found.extend(site.jobs.gpus.iter().map(of_site));
    }
    found.extend(slices);
    found
}
