//! Checks that need no network: folder, key, database, clock, disk.

use std::path::Path;

use super::DoctorFinding;
use crate::app::{self, MasterKeySource, files};
use crate::clock::Clock;
use crate::config::Config;
use crate::format;
use crate::health::{MAX_CLOCK_SKEW_SECS, MIN_FREE_BYTES, free_space};
use crate::store;
use crate::vault::Vault;

pub(super) fn check_data_dir(config: &Config) -> DoctorFinding {
    const WHAT: &str = "Data folder";
    if !config.data_dir.exists() {
        return DoctorFinding::warning(
            WHAT,
            format!("{} doesn't exist yet. The portal creates it when it first starts.", config.data_dir.display()),
        );
    }
    match app::prepare_data_dir(&config.data_dir) {
        Ok(()) => DoctorFinding::good(WHAT, format!("{} is closed to other users.", config.data_dir.display())),
        Err(error) => DoctorFinding::bad(WHAT, format!("{error:#}")),
    }
}

pub(super) fn check_master_key(config: &Config, findings: &mut Vec<DoctorFinding>) -> Option<Vault> {
    const WHAT: &str = "Master key";
    let source = app::master_key_source(&config.data_dir);
    if let MasterKeySource::File(path) = &source
        && !path.exists()
    {
        let finding = if config.data_dir.join(files::DATABASE).exists() {
            DoctorFinding::bad(
                WHAT,
                format!("{} is missing, but there is a database. Restore the key from your copy.", path.display()),
            )
        } else {
            DoctorFinding::warning(WHAT, "There is none yet. The portal creates it when it first starts.")
        };
        findings.push(finding);
        return None;
    }
    match app::master_key::load_or_create_master_key(&config.data_dir) {
        Ok(key) => {
            let place = match source {
                MasterKeySource::Environment => "from PORTOLAN_MASTER_KEY".to_owned(),
                MasterKeySource::File(path) => {
                    format!("in {}, readable only by you", path.display())
                }
            };
            findings.push(DoctorFinding::good(WHAT, format!("A strong key {place}.")));
            Some(Vault::new(key))
        }
        Err(error) => {
            findings.push(DoctorFinding::bad(WHAT, format!("{error:#}.")));
            None
        }
    }
}

pub(super) async fn check_database(config: &Config, vault: Option<&Vault>, findings: &mut Vec<DoctorFinding>) {
    const WHAT: &str = "Database";
    let path = config.data_dir.join(files::DATABASE);
    if !path.exists() {
        findings.push(DoctorFinding::warning(WHAT, "There is none yet. The portal creates it when it first starts."));
        return;
    }
    match store::backup::inspect(&path).await {
        Err(error) => findings.push(DoctorFinding::bad(WHAT, format!("The database can't be read: {error}."))),
        Ok(found) if !found.is_intact => findings.push(DoctorFinding::bad(
            WHAT,
            "The database is damaged. Stop the portal and restore the newest backup: portolan restore FILE --replace",
        )),
        Ok(found) => {
            let belongs = match (vault, &found.key_check) {
                (Some(vault), Some(check)) => Some(*check == app::compute_key_check(vault)),
                _ => None,
            };
            findings.push(if belongs == Some(false) {
                DoctorFinding::bad(WHAT, "The database was encrypted with another master key. Restore the right key.")
            } else {
                let accounts = format::count(u64::try_from(found.people).unwrap_or(0), "account");
                DoctorFinding::good(WHAT, format!("The database is intact and has {accounts}."))
            });
            findings.extend(belongs.and_then(|belongs| check_next_key(config, belongs)));
            findings.push(check_clock(&path).await);
        }
    }
}

/// A next master key in the data folder: it exists only while the key is being changed.
fn check_next_key(config: &Config, belongs: bool) -> Option<DoctorFinding> {
    const WHAT: &str = "Next key";
    let path = config.data_dir.join(files::NEXT_MASTER_KEY);
    if !path.exists() {
        return None;
    }
    let path = path.display();
    Some(if belongs {
        DoctorFinding::warning(
            WHAT,
            format!("{path} is left over from a master key change and is no longer needed. Delete it."),
        )
    } else {
        DoctorFinding::warning(
            WHAT,
            format!(
                "A master key change wasn't completed, and {path} may be the right key. Start the portal: it completes the change or says where to put the key."
            ),
        )
    })
}

async fn check_clock(path: &Path) -> DoctorFinding {
    const WHAT: &str = "Clock";
    let newest = async {
        let mut db = store::backup::open_read_only(path).await?;
        store::activity::newest_at(&mut db).await
    };
    let now = Clock::system().now();
    match newest.await {
        Err(error) => DoctorFinding::bad(WHAT, format!("The activity log can't be read: {error}.")),
        Ok(Some(newest)) if newest.since(now) > MAX_CLOCK_SKEW_SECS => DoctorFinding::bad(
            WHAT,
            format!(
                "The clock says {now}, but the newest entry in the activity log is from {newest}. One-time codes need the correct time: set the clock and synchronise it with NTP."
            ),
        ),
        Ok(_) => DoctorFinding::good(WHAT, format!("The clock says {now}, which is consistent with the activity log.")),
    }
}

pub(super) fn check_disk(config: &Config) -> DoctorFinding {
    const WHAT: &str = "Disk";
    // The nearest parent that exists; a relative path ends in the current folder.
    let dir = config.data_dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("."));
    match free_space(dir) {
        Err(error) => DoctorFinding::bad(WHAT, format!("{} can't be checked: {error}.", dir.display())),
        Ok(free) if free < MIN_FREE_BYTES => DoctorFinding::bad(
            WHAT,
            format!("Only {} MB left for the data folder. Free up space, or move the folder.", free / 1_000_000),
        ),
        Ok(free) => DoctorFinding::good(WHAT, format!("{} MB left for the data folder.", free / 1_000_000)),
    }
}

pub(super) fn check_privileges() -> Option<DoctorFinding> {
    rustix::process::geteuid().is_root().then(|| {
        DoctorFinding::warning(
            "User",
            "You're running doctor as root. Run the portal as its own user (see docs/ADMIN.md), and doctor as that user.",
        )
    })
}
