//! A person's own list of clusters: hiding some of them, and putting the others in order.

use serde::Deserialize;

use crate::auth::Permission;
use crate::domain::ClusterId;
use crate::store;
use crate::store::cluster_preferences::ClusterPreferences;
use crate::store::clusters::Cluster;
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::{self, FlashMessage};
use crate::web::pages::clusters::{ClusterRequest, UncheckedClusterRequest};

/// Where a cluster moves to in the list.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum MoveDirection {
    Up,
    Down,
}

#[derive(Deserialize)]
pub struct MoveClusterForm {
    to: MoveDirection,
}

pub async fn hide(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    set_hidden(request, true).await
}

pub async fn show(unchecked: UncheckedClusterRequest) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    set_hidden(request, false).await
}

async fn set_hidden(request: ClusterRequest, is_hidden: bool) -> HandlerResult {
    let id = request.account_id();
    let message = if is_hidden { FlashMessage::ClusterHidden } else { FlashMessage::ClusterShown };
    let mut tx = request.context.app.store.write().await?;
    store::cluster_preferences::set_hidden(&mut tx, id.person, id.cluster, is_hidden).await?;
    store::commit(tx).await?;
    Ok(flash::redirect(request.context, "/clusters", message))
}

/// Moves a cluster by one place among those that are shown.
pub async fn reorder(unchecked: UncheckedClusterRequest, FormBody(form): FormBody<MoveClusterForm>) -> HandlerResult {
    let request = unchecked.authorize(Permission::UseClusters).await?;
    let id = request.account_id();
    let mut tx = request.context.app.store.write().await?;
    let preferences = store::cluster_preferences::list(&mut tx, id.person).await?;
    let clusters = sort_active(store::clusters::list(&mut tx).await?, &preferences);
    let mut order: Vec<ClusterId> = clusters.iter().map(|cluster| cluster.id).collect();
    if move_by_one(&mut order, id.cluster, form.to, |cluster| preferences.is_hidden(cluster)) {
        store::cluster_preferences::save_order(&mut tx, id.person, &order).await?;
        store::commit(tx).await?;
    }
    // Whoever works with the keyboard goes on where the cluster is now.
    Ok(flash::see_other(&format!("/clusters#to-{}", request.cluster.row.slug)))
}

/// The clusters in use, in a person's order.
pub(super) fn sort_active(mut clusters: Vec<Cluster>, preferences: &ClusterPreferences) -> Vec<Cluster> {
    clusters.retain(|cluster| cluster.retired_at().is_none());
    clusters.sort_by_key(|cluster| preferences.rank(cluster.id));
    clusters
}

/// Swaps a cluster with its neighbour, passing over hidden ones. False if it stays where it is.
fn move_by_one(
    order: &mut [ClusterId],
    cluster: ClusterId,
    to: MoveDirection,
    is_hidden: impl Fn(ClusterId) -> bool,
) -> bool {
    let Some(from) = order.iter().position(|other| *other == cluster) else { return false };
    let is_shown = |at: &usize| !is_hidden(order[*at]);
    let neighbour = match to {
        MoveDirection::Up => (0..from).rev().find(is_shown),
        MoveDirection::Down => (from + 1..order.len()).find(is_shown),
    };
    let Some(neighbour) = neighbour else { return false };
    order.swap(from, neighbour);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_moves_among_those_that_are_shown() {
        let moved = |cluster, to, hidden: &[i64]| {
            let mut order = [1, 2, 3, 4].map(ClusterId);
            let has_moved = move_by_one(&mut order, ClusterId(cluster), to, |other| hidden.contains(&other.0));
            (has_moved, order.map(|id| id.0))
        };
        assert_eq!(moved(2, MoveDirection::Up, &[]), (true, [2, 1, 3, 4]));
        assert_eq!(moved(2, MoveDirection::Down, &[]), (true, [1, 3, 2, 4]));
        assert_eq!(moved(4, MoveDirection::Up, &[2, 3]), (true, [4, 2, 3, 1]), "past the hidden ones");
        assert_eq!(moved(1, MoveDirection::Up, &[]), (false, [1, 2, 3, 4]));
        assert_eq!(moved(3, MoveDirection::Down, &[4]), (false, [1, 2, 3, 4]));
        assert_eq!(moved(9, MoveDirection::Down, &[]), (false, [1, 2, 3, 4]));
    }
}
