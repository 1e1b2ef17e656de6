//! Rare work on a stopped portal: changing the master key, closing what it left open.

use super::{open_existing, refuse_missing};
use crate::app;
use crate::config::Config;
use crate::domain::LineRole;
use crate::ssh::route::ConnectionFolder;
use crate::ssh::{ControlMaster, control_master};

/// `portolan rotate-master-key`
pub(super) async fn rotate_master_key(config: Config) -> anyhow::Result<()> {
    refuse_missing(&config)?;
    let _lock = app::lock_data_dir(&config.data_dir)?;
    let data_dir = config.data_dir.clone();
    let app = open_existing(config).await?;
    let rotated = app::rotate(&app, &data_dir).await?;
    app.store.close().await;
    say!("The master key is changed; {} sealed values were moved to the new one.", rotated.moved);
    match rotated.by_hand {
        None => say!(
            "Make a new copy of {} and put it somewhere safe. Backups made before need the old key.",
            data_dir.join(app::files::MASTER_KEY).display()
        ),
        Some(path) => say!(
            "The new key is in {}. Put it where the portal gets its key from, then delete that file. The portal starts only with the new key. Backups made before need the old one.",
            path.display()
        ),
    }
    Ok(())
}

/// `portolan hang-up`
pub(super) async fn hang_up(config: Config) -> anyhow::Result<()> {
    refuse_missing(&config)?;
    let _lock = app::lock_data_dir(&config.data_dir)?;
    let mut closed = 0;
    for folder in folders(&config) {
        if let Some(master) = ControlMaster::find(&folder).await {
            master.close().await;
            closed += 1;
        }
        control_master::close_stale_master(&folder).await;
    }
    match closed {
        0 => say!("No connection was open in {}.", config.run_dir().display()),
        1 => say!("1 connection is closed."),
        _ => say!("{closed} connections are closed."),
    }
    Ok(())
}

/// The folders of connections in the run folder. Whatever else lies there is not ours to touch.
pub(super) fn folders(config: &Config) -> Vec<ConnectionFolder> {
    let run = config.run_dir();
    std::fs::read_dir(&run)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_of_connection(name))
        .map(|name| ConnectionFolder::new(&run, &name))
        .collect()
}

/// `PERSON-CLUSTER-login` or `…-robot`; `-test` follows while a new key is tried.
fn is_of_connection(name: &str) -> bool {
    let mut parts = name.strip_suffix("-test").unwrap_or(name).splitn(3, '-');
    let mut number = || parts.next().is_some_and(|part| part.parse::<i64>().is_ok_and(|n| n > 0));
    number() && number() && parts.next().is_some_and(|role| role.parse::<LineRole>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::is_of_connection;

    #[test]
    fn only_folders_of_connections_are_touched() {
        for ours in ["3-7-login", "3-7-robot", "12-1-login-test"] {
            assert!(is_of_connection(ours), "{ours}");
        }
        for other in
            ["", "sites", "portolan.db", "3-7", "3-7-x", "a-7-login", "3-7-login-x", "-1-7-login"]
        {
            assert!(!is_of_connection(other), "{other}");
        }
    }
}
