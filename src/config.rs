//! The portal's settings: one TOML file plus `PORTOLAN_*` environment variables, loaded and checked once.
//! Unknown names are rejected with the nearest valid one, so that a typo never goes unnoticed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::Deserialize;

mod public_url;
mod queue_pace;
mod setting_keys;
mod submit_pace;
mod usage_pace;

pub use public_url::PublicUrl;
pub use queue_pace::QueuePace;
pub use setting_keys::SETTING_KEYS;
pub use submit_pace::SubmissionTimeouts;
pub use usage_pace::UsageReadPace;

/// All settings, with defaults filled in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where the database and the master key are stored.
    pub data_dir: PathBuf,
    /// Where the connections' sockets are; `run` in the data folder if not set.
    pub run_dir: Option<PathBuf>,
    /// This program, which ssh starts to ask questions. Not a setting: determined at start.
    #[serde(skip, default = "current_program")]
    pub program: PathBuf,
    /// How often queues are read. Not a setting: sites decide, and tests speed it up.
    #[serde(skip)]
    pub queue_pace: QueuePace,
    /// How submissions are sent and looked up. Not a setting; tests speed it up.
    #[serde(skip)]
    pub submit_pace: SubmissionTimeouts,
    /// How gently group usage is read. Not a setting; tests speed it up.
    #[serde(skip)]
    pub usage_pace: UsageReadPace,
    pub portal: PublicListenerSettings,
    /// The separate origin on which dashboards are shown.
    pub dashboards: DashboardOriginSettings,
    /// The private listener for `/healthz` and `/metrics`.
    pub metrics: MetricsSettings,
    /// The reverse proxy in front, if any.
    pub proxy: ReverseProxySettings,
    pub sessions: SessionSettings,
    pub log: LogSettings,
    pub activity: ActivitySettings,
    pub notifications: WebhookSettings,
    pub transfers: TransferSettings,
    pub terminals: TerminalSettings,
    /// Deprecated setting names in use, each as a sentence with the new name. Logged at start.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A public listener and its URL.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicListenerSettings {
    pub listen: SocketAddr,
    /// What people type: scheme, host and port.
    pub public_url: PublicUrl,
}

/// The dashboards' listener, and when unused dashboards stop.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DashboardOriginSettings {
    pub listen: SocketAddr,
    /// What people type: scheme, host and port; the host must differ from the portal's.
    pub public_url: PublicUrl,
    /// A dashboard stops after this many minutes without a viewer.
    pub idle_minutes: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Address and port; must be loopback.
    pub listen: SocketAddr,
}

/// The reverse proxy in front.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReverseProxySettings {
    /// Networks whose `X-Forwarded-For` is trusted.
    pub trusted: Vec<IpNet>,
}

/// How long a browser stays signed in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// Hours without a request after which a session ends.
    pub idle_hours: u32,
    /// Days after which a session ends regardless of use.
    pub absolute_days: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSettings {
    /// A `tracing` filter such as `info` or `portolan=debug`.
    pub level: String,
    /// `auto` (readable on a terminal, JSON otherwise), `text` or `json`.
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Readable on a terminal, JSON otherwise.
    Auto,
    Text,
    /// One JSON object per line.
    Json,
}

/// The activity (audit) log.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActivitySettings {
    /// Entries older than this many days are deleted.
    pub keep_days: u32,
}

/// Notifications sent to people's own webhooks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhookSettings {
    /// Whether webhooks may point to private networks, including this machine.
    pub allow_private: bool,
}

/// Background work on files.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransferSettings {
    /// Whether people may download from private networks, including this machine.
    pub allow_private: bool,
}

/// Shells on clusters in people's browsers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TerminalSettings {
    /// Whether the portal offers terminals.
    pub enabled: bool,
    /// A terminal ends after this many minutes without a viewer.
    pub idle_minutes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("portolan-data"),
            run_dir: None,
            program: current_program(),
            queue_pace: QueuePace::default(),
            submit_pace: SubmissionTimeouts::default(),
            usage_pace: UsageReadPace::default(),
            portal: PublicListenerSettings::local("localhost", 8080),
            dashboards: DashboardOriginSettings::local("127.0.0.1", 8081),
            metrics: MetricsSettings { listen: loopback_address(8082) },
            proxy: ReverseProxySettings::default(),
            sessions: SessionSettings::default(),
            log: LogSettings::default(),
            activity: ActivitySettings::default(),
            notifications: WebhookSettings::default(),
            transfers: TransferSettings::default(),
            terminals: TerminalSettings::default(),
            warnings: Vec::new(),
        }
    }
}

impl PublicListenerSettings {
    /// A listener on loopback, reached as `http://host:port`. The portal and the dashboards use different names for
    /// this machine because cookies ignore ports.
    pub fn local(host: &str, port: u16) -> Self {
        Self { listen: loopback_address(port), public_url: PublicUrl::http(host, port) }
    }
}

impl DashboardOriginSettings {
    const IDLE_MINUTES: u32 = 45;

    /// The same for dashboards.
    pub fn local(host: &str, port: u16) -> Self {
        let PublicListenerSettings { listen, public_url } = PublicListenerSettings::local(host, port);
        Self { listen, public_url, idle_minutes: Self::IDLE_MINUTES }
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self { idle_hours: 12, absolute_days: 14 }
    }
}

impl Default for TerminalSettings {
    fn default() -> Self {
        Self { enabled: true, idle_minutes: 30 }
    }
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::Auto }
    }
}

impl Default for ActivitySettings {
    fn default() -> Self {
        Self { keep_days: 730 }
    }
}

const fn loopback_address(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), port)
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("The configuration file {path} couldn't be read")]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is not TOML, or a value has the wrong type.
    #[error("{place}: {message}")]
    Parse {
        /// The file, or "the settings".
        place: String,
        message: String,
    },
    /// An unknown setting name.
    #[error("{place}: there is no setting called '{name}'. Did you mean '{nearest}'?")]
    Unknown {
        /// The file or "the environment".
        place: String,
        name: String,
        /// The nearest name that exists.
        nearest: String,
    },
    /// Values that contradict each other.
    #[error("{0}")]
    Invalid(String),
}

impl Config {
    /// Loads the file, if any, applies the environment and checks the result.
    pub fn load(file: Option<&Path>, env: impl Iterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        let mut table = match file {
            None => toml::Table::new(),
            Some(path) => read_table(path)?,
        };
        let mut warnings = setting_keys::rename_old_sections(&mut table);
        if let Some(path) = file {
            setting_keys::refuse_unknown(&table, &path.display().to_string())?;
        }
        warnings.extend(setting_keys::overlay_env(&mut table, env)?);
        setting_keys::fill_defaults(&mut table);
        let place = file.map_or_else(|| "the settings".into(), |path| path.display().to_string());
        let mut config: Self = table
            .try_into()
            .map_err(|error: toml::de::Error| ConfigError::Parse { place, message: error.to_string() })?;
        config.warnings = warnings;
        config.validate()?;
        Ok(config)
    }

    /// Where the connections' sockets are, as an absolute path, because ssh runs in another folder.
    pub fn run_dir(&self) -> PathBuf {
        let dir = self.run_dir.clone().unwrap_or_else(|| self.data_dir.join("run"));
        std::path::absolute(&dir).unwrap_or(dir)
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let invalid = |message: String| Err(ConfigError::Invalid(message));
        check_run_dir(&self.run_dir())?;
        if std::path::absolute(&self.data_dir).is_ok_and(|data| data.starts_with(self.run_dir())) {
            return invalid("run_dir needs its own folder: it can't be the data folder or contain it.".into());
        }
        if !self.metrics.listen.ip().is_loopback() {
            return invalid(format!(
                "metrics.listen is {}, but it serves internal metrics without sign-in. Use a loopback address such as 127.0.0.1:8082.",
                self.metrics.listen
            ));
        }
        if self.portal.public_url.host() == self.dashboards.public_url.host() {
            return invalid(format!(
                "portal.public_url and dashboards.public_url both use the host '{}'. Dashboards run other people's scripts, so they need their own host name; another port isn't enough, because browsers share cookies between ports. For example, use https://portolan.example.org and https://dashboards.example.org.",
                self.portal.public_url.host()
            ));
        }
        if self.sessions.idle_hours == 0 || self.sessions.absolute_days == 0 {
            return invalid("sessions.idle_hours and sessions.absolute_days must be at least 1.".into());
        }
        if self.dashboards.idle_minutes < 5 {
            return invalid("dashboards.idle_minutes must be at least 5.".into());
        }
        if !(1..=1440).contains(&self.terminals.idle_minutes) {
            return invalid("terminals.idle_minutes must be from 1 to 1440.".into());
        }
        if self.activity.keep_days < 30 {
            return invalid("activity.keep_days must be at least 30.".into());
        }
        Ok(())
    }
}

/// Socket paths must stay below 108 bytes, ssh adds 17 while it binds, and it expands some characters in a path.
fn check_run_dir(dir: &Path) -> Result<(), ConfigError> {
    const LONGEST: usize = 64;
    let text = dir.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.len() > LONGEST || !text.chars().all(plain) {
        return Err(ConfigError::Invalid(format!(
            "The run folder {text} can't hold sockets: its path may have at most {LONGEST} characters, all of them letters, digits or / . _ -. Set run_dir to another folder, for example /run/portolan."
        )));
    }
    Ok(())
}

fn current_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("portolan"))
}

fn read_table(path: &Path) -> Result<toml::Table, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    text.parse().map_err(|error: toml::de::Error| ConfigError::Parse {
        place: path.display().to_string(),
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests;
