//! What connections to clusters need of this machine: OpenSSH's programs and a folder for sockets.

use super::super::upkeep;
use super::Finding;
use crate::app;
use crate::config::Config;
use crate::ssh::ControlMaster;

/// `SSH_ASKPASS_REQUIRE`, by which one-time codes reach the browser, came with this version.
const OLDEST_SSH: (u32, u32) = (8, 4);

/// Where the portal lets ssh and its helpers be found, whatever its own environment says.
const SEARCHED: &str = "/usr/local/bin:/usr/bin:/bin";

/// The programs besides ssh itself, what they are for, and the package they come with.
const HELPERS: &[(&str, &str, &str)] = &[
    ("ssh-keyscan", "asks hosts for their keys", "openssh-client"),
    ("setsid", "lets connections outlive the portal", "util-linux"),
];

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let mut findings = vec![ssh_client().await];
    findings.extend(helpers());
    findings.push(run_dir(config));
    findings.extend(open_now(config).await);
    findings
}

async fn ssh_client() -> Finding {
    const WHAT: &str = "SSH client";
    let asked = tokio::process::Command::new("ssh").arg("-V").env("PATH", SEARCHED).output().await;
    let Ok(output) = asked else {
        return Finding::bad(
            WHAT,
            format!(
                "There is no program ssh in {SEARCHED}. Install it: apt-get install openssh-client"
            ),
        );
    };
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match version(&text) {
        Some(version) if version >= OLDEST_SSH => Finding::good(WHAT, text),
        Some(_) => {
            Finding::bad(WHAT, format!("{text} is too old. OpenSSH 8.4 or newer is needed."))
        }
        None => Finding::warning(WHAT, format!("It does not say that it is OpenSSH: '{text}'.")),
    }
}

/// From `OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17` to (9, 2).
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.strip_prefix("OpenSSH_")?.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn helpers() -> Vec<Finding> {
    const WHAT: &str = "SSH helpers";
    let is_there = |name: &str| {
        SEARCHED.split(':').any(|folder| std::path::Path::new(folder).join(name).is_file())
    };
    let missing: Vec<Finding> = HELPERS
        .iter()
        .filter(|(name, ..)| !is_there(name))
        .map(|(name, purpose, package)| {
            Finding::bad(
                WHAT,
                format!(
                    "There is no program {name} in {SEARCHED}; it {purpose}. Install it: apt-get install {package}"
                ),
            )
        })
        .collect();
    if missing.is_empty() {
        let names: Vec<&str> = HELPERS.iter().map(|(name, ..)| *name).collect();
        return vec![Finding::good(WHAT, format!("{} are there.", names.join(" and ")))];
    }
    missing
}

/// That its path is short enough was checked with the settings.
fn run_dir(config: &Config) -> Finding {
    const WHAT: &str = "Run folder";
    let dir = config.run_dir();
    if !dir.exists() {
        return Finding::warning(
            WHAT,
            format!("{} does not exist yet. It is made at the first start.", dir.display()),
        );
    }
    match app::prepare_run_dir(&dir) {
        Ok(()) => Finding::good(
            WHAT,
            format!(
                "{} is closed to other users, and its path is short enough for sockets.",
                dir.display()
            ),
        ),
        Err(error) => Finding::bad(WHAT, format!("{error:#}")),
    }
}

async fn open_now(config: &Config) -> Option<Finding> {
    if !config.run_dir().exists() {
        return None;
    }
    let mut open = 0;
    for folder in upkeep::folders(config) {
        open += usize::from(ControlMaster::find(&folder).await.is_some());
    }
    let words = match open {
        0 => "None is open.".to_owned(),
        1 => "1 is open.".to_owned(),
        _ => format!("{open} are open."),
    };
    Some(Finding::good("Connections", words))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_of_ssh_are_read() {
        assert_eq!(version("OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17"), Some((9, 2)));
        assert_eq!(version("OpenSSH_10.0p2, OpenSSL"), Some((10, 0)));
        assert_eq!(version("Dropbear v2022"), None);
    }
}
