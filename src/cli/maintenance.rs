//! Maintenance of a stopped portal: changing the master key, closing leftover connections.

use super::{open_existing_app, require_installation};
use crate::app;
use crate::cluster::connection_pool::is_connection_folder;
use crate::config::Config;
use crate::ssh::route::ConnectionFolder;
use crate::ssh::{ControlMaster, control_master};

/// `portolan rotate-master-key`
pub(super) async fn rotate_master_key(config: Config) -> anyhow::Result<()> {
    require_installation(&config)?;
    let _lock = app::lock_data_dir(&config.data_dir)?;
    let data_dir = config.data_dir.clone();
    let app = open_existing_app(config).await?;
    let rotated = app::rotate_master_key(&app, &data_dir).await?;
    app.store.close().await;
    say!("Changed the master key and re-encrypted {} secrets.", rotated.resealed);
    match rotated.key_to_install {
        None => say!(
            "Copy {} to a safe place. Earlier backups still need the old key.",
            data_dir.join(app::files::MASTER_KEY).display()
        ),
        Some(path) => say!(
            "The new key is in {}. Put it where the portal reads its key from, then delete this file. The portal starts only with the new key. Earlier backups still need the old one.",
            path.display()
        ),
    }
    Ok(())
}

/// `portolan disconnect-all`
pub(super) async fn close_connections(config: Config) -> anyhow::Result<()> {
    require_installation(&config)?;
    let _lock = app::lock_data_dir(&config.data_dir)?;
    let mut closed = 0;
    for folder in connection_folders(&config) {
        if let Some(master) = ControlMaster::find(&folder).await {
            master.close().await;
            closed += 1;
        }
        control_master::close_stale_master(&folder).await;
    }
    match closed {
        0 => say!("There were no open connections in {}.", config.run_dir().display()),
        1 => say!("Closed 1 connection."),
        _ => say!("Closed {closed} connections."),
    }
    Ok(())
}

/// The folders of connections in the run folder. Leaves everything else there alone.
pub(super) fn connection_folders(config: &Config) -> Vec<ConnectionFolder> {
    let run = config.run_dir();
    std::fs::read_dir(&run)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_connection_folder(name))
        .map(|name| ConnectionFolder::new(&run, &name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_connection_folder;

    #[test]
    fn only_folders_of_connections_are_touched() {
        for ours in ["3-7-login", "3-7-robot", "12-1-login-test"] {
            assert!(is_connection_folder(ours), "{ours}");
        }
        for other in ["", "sites", "portolan.db", "3-7", "3-7-x", "a-7-login", "3-7-login-x", "-1-7-login"] {
            assert!(!is_connection_folder(other), "{other}");
        }
    }
}
