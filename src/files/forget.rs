//! What happens to work on files when someone forgets a cluster.

use std::time::Duration;

use super::transfers::TransferWorker;
use super::uploads::UploadService;
use crate::cluster::ClusterAccountId;
use crate::store::StoreError;

/// How long it may take to remove half-written uploads and what transfers left; what remains is hidden, and stays on the
/// cluster.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Stops the transfers of an account that run or wait, and removes its unfinished uploads from the cluster.
pub async fn end_file_work(
    transfers: &TransferWorker,
    uploads: &UploadService,
    account: ClusterAccountId,
) -> Result<(), StoreError> {
    for (row, _) in transfers.list(account.person).await? {
        let is_there = [row.cluster_id, row.target_cluster()].contains(&account.cluster);
        if is_there && !row.state.is_over() {
            transfers.cancel(account.person, row.id).await?;
        }
    }
    let removed = async {
        let ((), clean) = tokio::join!(uploads.cancel_for_account(account), transfers.wait_until_clean(account));
        clean
    };
    tokio::time::timeout(REMOVE_TIMEOUT, removed).await.unwrap_or_else(|_| {
        tracing::info!("Some half-written uploads or leftovers of transfers stay on a cluster that was forgotten");
        Ok(())
    })
}
