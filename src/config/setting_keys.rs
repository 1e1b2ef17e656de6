//! Every setting: its name in the file, its environment variable, its meaning. A test checks `docs/ADMIN.md` against
//! this list.

use toml::{Table, Value};

use self::EnvValueKind::{Flag, List, Number, Text};
use super::{Config, ConfigError};

/// How an environment variable's text becomes a TOML value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvValueKind {
    Text,
    Number,
    /// Items separated by commas.
    List,
    /// `true` or `false`.
    Flag,
}

#[derive(Debug)]
pub struct SettingDefinition {
    /// Dotted name in the file.
    pub name: &'static str,
    pub kind: EnvValueKind,
    /// One sentence for the documentation.
    pub about: &'static str,
}

const fn key(name: &'static str, kind: EnvValueKind, about: &'static str) -> SettingDefinition {
    SettingDefinition { name, kind, about }
}

pub const SETTING_KEYS: &[SettingDefinition] = &[
    key("data_dir", Text, "Folder for the database and the master key."),
    key(
        "run_dir",
        Text,
        "Folder for the sockets of cluster connections. Needs a short path; defaults to run in the data folder.",
    ),
    key("portal.listen", Text, "Address and port the portal listens on."),
    key("portal.public_url", Text, "URL that people open to reach the portal."),
    key("dashboards.listen", Text, "Address and port that dashboards are served on."),
    key("dashboards.public_url", Text, "URL of the dashboards. Its host name must differ from the portal's."),
    key("dashboards.idle_minutes", Number, "Minutes without a viewer after which a dashboard is stopped."),
    key("metrics.listen", Text, "Loopback address and port of /healthz and /metrics."),
    key("proxy.trusted", List, "Networks of the proxies whose X-Forwarded-For header is trusted."),
    key("sessions.idle_hours", Number, "Hours of inactivity after which a browser is signed out."),
    key("sessions.absolute_days", Number, "Days after which a browser is signed out even if it's in use."),
    key("log.level", Text, "Log level: error, warn, info, debug, or a tracing filter."),
    key("log.format", Text, "Log format: auto, text or json. auto is text on a terminal and JSON otherwise."),
    key("activity.keep_days", Number, "Days the activity log is kept."),
    key("notifications.allow_private", Flag, "Whether notifications may be sent to addresses in private networks."),
    key("terminals.enabled", Flag, "Whether people may open terminals on their clusters in the browser."),
    key("terminals.idle_minutes", Number, "Minutes without a viewer after which a terminal is closed."),
    key("transfers.allow_private", Flag, "Whether people may download files from addresses in private networks."),
];

/// Sections that had another name in 0.1.0: old, new. The old names still work.
const RENAMED_SECTIONS: &[(&str, &str)] = &[("boards", "dashboards"), ("notices", "notifications")];

/// Variables with the prefix that are not settings: read elsewhere, or meant for scripts.
const OTHER_VARIABLES: &[&str] = &["PORTOLAN_CONFIG", "PORTOLAN_MASTER_KEY", "PORTOLAN_ASKPASS_SOCKET"];

/// The demo cluster's scripts have their own variables.
const SCRIPT_PREFIX: &str = "PORTOLAN_CLUSTER_";

const ENV_PREFIX: &str = "PORTOLAN_";

impl SettingDefinition {
    /// The environment variable that sets it: `PORTOLAN_PORTAL_PUBLIC_URL`.
    pub fn env_variable(&self) -> String {
        format!("{ENV_PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }
}

/// Rejects names that are not in [`SETTING_KEYS`].
pub fn refuse_unknown(table: &Table, place: &str) -> Result<(), ConfigError> {
    for name in dotted_names(table) {
        if !SETTING_KEYS.iter().any(|key| key.name == name) {
            let nearest = nearest_name(&name, SETTING_KEYS.iter().map(|key| key.name.to_owned()));
            return Err(ConfigError::Unknown { place: place.to_owned(), name, nearest });
        }
    }
    Ok(())
}

/// Renames sections with an old name and returns warnings. If both exist, the new one wins.
pub fn rename_old_sections(table: &mut Table) -> Vec<String> {
    let mut warnings = Vec::new();
    for (old, new) in RENAMED_SECTIONS {
        let Some(Value::Table(given)) = table.remove(*old) else { continue };
        warnings.push(format!("The section [{old}] is now called [{new}]. Rename it in the configuration file."));
        let entry = table.entry(*new).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(present) = entry {
            for (name, value) in given {
                present.entry(name).or_insert(value);
            }
        }
    }
    warnings
}

/// The current name of a variable that had another one in 0.1.0.
fn renamed_variable(variable: &str) -> Option<String> {
    RENAMED_SECTIONS.iter().find_map(|(old, new)| {
        let rest = variable.strip_prefix(&format!("{ENV_PREFIX}{}_", old.to_uppercase()))?;
        Some(format!("{ENV_PREFIX}{}_{rest}", new.to_uppercase()))
    })
}

/// Overrides the file's values with `PORTOLAN_*` variables. Returns a warning for each old name; a variable with the
/// new name wins.
pub fn overlay_env(table: &mut Table, env: impl Iterator<Item = (String, String)>) -> Result<Vec<String>, ConfigError> {
    let mut warnings = Vec::new();
    let mut given: Vec<(String, String, bool)> = Vec::new();
    for (variable, text) in env.filter(|(name, _)| name.starts_with(ENV_PREFIX)) {
        match renamed_variable(&variable) {
            Some(new) => {
                warnings.push(format!("{variable} is now called {new}. Rename the environment variable."));
                given.push((new, text, true));
            }
            None => given.push((variable, text, false)),
        }
    }
    given.sort_by_key(|(_, _, is_old)| !is_old);
    for (variable, text, _) in given {
        if OTHER_VARIABLES.contains(&variable.as_str()) || variable.starts_with(SCRIPT_PREFIX) {
            continue;
        }
        let Some(key) = SETTING_KEYS.iter().find(|key| key.env_variable() == variable) else {
            let nearest = nearest_name(&variable, SETTING_KEYS.iter().map(SettingDefinition::env_variable));
            return Err(ConfigError::Unknown { place: "The environment".into(), name: variable, nearest });
        };
        insert(table, key.name, parse_env_value(key, &variable, &text)?);
    }
    Ok(warnings)
}

/// Fills in the defaults for keys that a section in the file leaves out.
pub fn fill_defaults(table: &mut Table) {
    let defaults = Config::default();
    let (portal, dashboards) = (&defaults.portal, &defaults.dashboards);
    for (section, default_listen, default_url) in
        [("portal", portal.listen, &portal.public_url), ("dashboards", dashboards.listen, &dashboards.public_url)]
    {
        let Some(Value::Table(given)) = table.get_mut(section) else {
            continue;
        };
        let listen = given.get("listen").and_then(Value::as_str).map(str::to_owned);
        given.entry("listen").or_insert_with(|| Value::String(default_listen.to_string()));
        given.entry("public_url").or_insert_with(|| {
            // A different port is the most common change: the public URL follows it.
            let port = listen.as_deref().and_then(|text| text.rsplit(':').next()?.parse().ok());
            let url = port.map_or_else(
                || default_url.to_string(),
                |port| super::PublicUrl::http(default_url.host(), port).to_string(),
            );
            Value::String(url)
        });
    }
    if let Some(Value::Table(given)) = table.get_mut("dashboards") {
        let idle = Value::Integer(dashboards.idle_minutes.into());
        given.entry("idle_minutes").or_insert(idle);
    }
    if let Some(Value::Table(given)) = table.get_mut("metrics") {
        given.entry("listen").or_insert_with(|| Value::String(defaults.metrics.listen.to_string()));
    }
}

fn parse_env_value(key: &SettingDefinition, variable: &str, text: &str) -> Result<Value, ConfigError> {
    match key.kind {
        Text => Ok(Value::String(text.to_owned())),
        List => Ok(Value::Array(
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| Value::String(item.to_owned()))
                .collect(),
        )),
        Flag => text
            .trim()
            .parse()
            .map(Value::Boolean)
            .map_err(|_| ConfigError::Invalid(format!("{variable} is '{text}', but it must be true or false."))),
        Number => text
            .trim()
            .parse()
            .map(Value::Integer)
            .map_err(|_| ConfigError::Invalid(format!("{variable} is '{text}', but it must be a whole number."))),
    }
}

fn insert(table: &mut Table, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            table.insert(name.to_owned(), value);
        }
        Some((section, rest)) => {
            let entry = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = entry {
                insert(inner, rest, value);
            }
        }
    }
}

fn dotted_names(table: &Table) -> Vec<String> {
    table
        .iter()
        .flat_map(|(name, value)| match value {
            Value::Table(inner) => dotted_names(inner).into_iter().map(|rest| format!("{name}.{rest}")).collect(),
            _ => vec![name.clone()],
        })
        .collect()
}

fn nearest_name(name: &str, known: impl Iterator<Item = String>) -> String {
    known.max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b))).unwrap_or_default()
}
