//! What connections to clusters need on this machine: OpenSSH's programs and a folder for sockets.

use super::DoctorFinding;
use crate::app;
use crate::cli::maintenance;
use crate::config::Config;
use crate::ssh::ControlMaster;

/// The first version with `SSH_ASKPASS_REQUIRE`, which passes one-time codes to the browser.
const MIN_SSH_VERSION: (u32, u32) = (8, 4);

/// Where the portal looks for ssh and its helpers, whatever its own environment says.
const PROGRAM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The programs besides ssh itself, their purpose, and the package that contains them.
const REQUIRED_PROGRAMS: &[(&str, &str, &str)] = &[
    ("ssh-keyscan", "reads host keys", "openssh-client"),
    ("setsid", "keeps connections open while the portal restarts", "util-linux"),
];

pub(super) async fn check_connections(config: &Config) -> Vec<DoctorFinding> {
    let mut findings = vec![check_ssh_client().await];
    findings.extend(check_required_programs());
    findings.push(check_run_dir(config));
    findings.extend(count_open_connections(config).await);
    findings
}

async fn check_ssh_client() -> DoctorFinding {
    const WHAT: &str = "SSH client";
    let asked = tokio::process::Command::new("ssh").arg("-V").env("PATH", PROGRAM_PATH).output().await;
    let Ok(output) = asked else {
        return DoctorFinding::bad(
            WHAT,
            format!("ssh wasn't found in {PROGRAM_PATH}. Install it with: apt-get install openssh-client"),
        );
    };
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match parse_ssh_version(&text) {
        Some(version) if version >= MIN_SSH_VERSION => DoctorFinding::good(WHAT, text),
        Some(_) => DoctorFinding::bad(WHAT, format!("{text} is too old. Install OpenSSH 8.4 or newer.")),
        None => DoctorFinding::warning(WHAT, format!("This isn't OpenSSH: '{text}'.")),
    }
}

/// From `OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17` to (9, 2).
fn parse_ssh_version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.strip_prefix("OpenSSH_")?.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn check_required_programs() -> Vec<DoctorFinding> {
    const WHAT: &str = "SSH helpers";
    let is_there = |name: &str| PROGRAM_PATH.split(':').any(|folder| std::path::Path::new(folder).join(name).is_file());
    let missing: Vec<DoctorFinding> = REQUIRED_PROGRAMS
        .iter()
        .filter(|(name, ..)| !is_there(name))
        .map(|(name, purpose, package)| {
            DoctorFinding::bad(
                WHAT,
                format!(
                    "{name}, which {purpose}, wasn't found in {PROGRAM_PATH}. Install it with: apt-get install {package}"
                ),
            )
        })
        .collect();
    if missing.is_empty() {
        let names: Vec<&str> = REQUIRED_PROGRAMS.iter().map(|(name, ..)| *name).collect();
        return vec![DoctorFinding::good(WHAT, format!("{} are installed.", names.join(" and ")))];
    }
    missing
}

/// The length of its path is checked when the settings are loaded.
fn check_run_dir(config: &Config) -> DoctorFinding {
    const WHAT: &str = "Run folder";
    let dir = config.run_dir();
    if !dir.exists() {
        return DoctorFinding::warning(
            WHAT,
            format!("{} doesn't exist yet. The portal creates it when it first starts.", dir.display()),
        );
    }
    match app::prepare_run_dir(&dir) {
        Ok(()) => DoctorFinding::good(
            WHAT,
            format!("{} is closed to other users, and its path is short enough for sockets.", dir.display()),
        ),
        Err(error) => DoctorFinding::bad(WHAT, format!("{error:#}")),
    }
}

async fn count_open_connections(config: &Config) -> Option<DoctorFinding> {
    if !config.run_dir().exists() {
        return None;
    }
    let mut open = 0;
    for folder in maintenance::connection_folders(config) {
        open += usize::from(ControlMaster::find(&folder).await.is_some());
    }
    let words = match open {
        0 => "No open connections.".to_owned(),
        1 => "1 open connection.".to_owned(),
        _ => format!("{open} open connections."),
    };
    Some(DoctorFinding::good("Connections", words))
}

#[cfg(test)]
mod tests {
    use super::parse_ssh_version;

    #[test]
    fn versions_of_ssh_are_read() {
        assert_eq!(parse_ssh_version("OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17"), Some((9, 2)));
        assert_eq!(parse_ssh_version("OpenSSH_10.0p2, OpenSSL"), Some((10, 0)));
        assert_eq!(parse_ssh_version("Dropbear v2022"), None);
    }
}
