//! What can be examined without asking anyone: folder, key, database, clock, disk.

use std::path::Path;

use super::Finding;
use crate::app::{self, KeySource, files};
use crate::clock::Clock;
use crate::config::Config;
use crate::health::{CLOCK_SLACK, DISK_LOW, free_space};
use crate::store;
use crate::vault::Vault;

pub(super) fn data_dir(config: &Config) -> Finding {
    const WHAT: &str = "Data folder";
    if !config.data_dir.exists() {
        return Finding::warning(
            WHAT,
            format!(
                "{} does not exist yet. It is made at the first start.",
                config.data_dir.display()
            ),
        );
    }
    match app::prepare_data_dir(&config.data_dir) {
        Ok(()) => {
            Finding::good(WHAT, format!("{} is closed to other users.", config.data_dir.display()))
        }
        Err(error) => Finding::bad(WHAT, format!("{error:#}")),
    }
}

pub(super) fn master_key(config: &Config, findings: &mut Vec<Finding>) -> Option<Vault> {
    const WHAT: &str = "Master key";
    let source = app::key_source(&config.data_dir);
    if let KeySource::File(path) = &source
        && !path.exists()
    {
        let finding = if config.data_dir.join(files::DATABASE).exists() {
            Finding::bad(
                WHAT,
                format!(
                    "{} is missing, but there is a database. Put the key back from where you keep it.",
                    path.display()
                ),
            )
        } else {
            Finding::warning(WHAT, "There is none yet. It is made at the first start.")
        };
        findings.push(finding);
        return None;
    }
    match app::master_key::master_key(&config.data_dir) {
        Ok(key) => {
            let place = match source {
                KeySource::Environment => "from PORTOLAN_MASTER_KEY".to_owned(),
                KeySource::File(path) => format!("in {}, readable by you alone", path.display()),
            };
            findings.push(Finding::good(WHAT, format!("A strong key {place}.")));
            Some(Vault::new(key))
        }
        Err(error) => {
            findings.push(Finding::bad(WHAT, format!("{error:#}.")));
            None
        }
    }
}

pub(super) async fn database(config: &Config, vault: Option<&Vault>, findings: &mut Vec<Finding>) {
    const WHAT: &str = "Database";
    let path = config.data_dir.join(files::DATABASE);
    if !path.exists() {
        findings.push(Finding::warning(WHAT, "There is none yet. It is made at the first start."));
        return;
    }
    match store::backup::inspect(&path).await {
        Err(error) => findings.push(Finding::bad(WHAT, format!("It cannot be read: {error}."))),
        Ok(found) if !found.intact => findings.push(Finding::bad(
            WHAT,
            "It is damaged. Stop the portal and restore the newest backup: portolan restore FILE --replace",
        )),
        Ok(found) => {
            let belongs = match (vault, &found.key_check) {
                (Some(vault), Some(check)) => Some(*check == app::key_check(vault)),
                _ => None,
            };
            findings.push(if belongs == Some(false) {
                Finding::bad(WHAT, "It was sealed under another master key. Put the right key back.")
            } else {
                Finding::good(WHAT, format!("It is whole and holds {} account(s).", found.people))
            });
            findings.extend(belongs.and_then(|belongs| next_key(config, belongs)));
            findings.push(clock(&path).await);
        }
    }
}

/// What the next master key in the data folder means: it is there only while the key is being changed.
fn next_key(config: &Config, belongs: bool) -> Option<Finding> {
    const WHAT: &str = "Next key";
    let path = config.data_dir.join(files::NEXT_MASTER_KEY);
    if !path.exists() {
        return None;
    }
    let path = path.display();
    Some(if belongs {
        Finding::warning(
            WHAT,
            format!(
                "{path} is left over from a change of the master key, and the database does not need it. Delete it."
            ),
        )
    } else {
        Finding::warning(
            WHAT,
            format!(
                "{path} may be the right key: a change of the master key was not finished. Start the portal; it goes on from there, or says where to put the key."
            ),
        )
    })
}

async fn clock(path: &Path) -> Finding {
    const WHAT: &str = "Clock";
    let newest = async {
        let mut db = store::backup::look_into(path).await?;
        store::activity::newest_at(&mut db).await
    };
    let now = Clock::system().now();
    match newest.await {
        Err(error) => Finding::bad(WHAT, format!("The activity log cannot be read: {error}.")),
        Ok(Some(newest)) if newest.since(now) > CLOCK_SLACK => Finding::bad(
            WHAT,
            format!(
                "It says {now}, but the activity log has an entry of {newest}. One-time codes need the right time: set the clock and keep it right with NTP."
            ),
        ),
        Ok(_) => Finding::good(WHAT, format!("It says {now}, which fits the activity log.")),
    }
}

pub(super) fn disk(config: &Config) -> Finding {
    const WHAT: &str = "Disk";
    // The first folder on the way up that exists; a relative path ends in the current one.
    let dir = config.data_dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("."));
    match free_space(dir) {
        Err(error) => Finding::bad(WHAT, format!("{} cannot be examined: {error}.", dir.display())),
        Ok(free) if free < DISK_LOW => Finding::bad(
            WHAT,
            format!(
                "Only {} MB are left for the data folder. Make room, or move it.",
                free / 1_000_000
            ),
        ),
        Ok(free) => {
            Finding::good(WHAT, format!("{} MB are left for the data folder.", free / 1_000_000))
        }
    }
}

pub(super) fn privileges() -> Option<Finding> {
    rustix::process::geteuid().is_root().then(|| {
        Finding::warning(
            "User",
            "The doctor runs as root. Run the portal as a user of its own (see docs/ADMIN.md), and the doctor as that user.",
        )
    })
}
