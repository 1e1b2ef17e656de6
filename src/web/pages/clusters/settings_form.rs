//! The cluster settings form: what most administrators change, on top of a full site description.

use serde::Deserialize;

use crate::domain::{DisplayName, HostName, Slug};
use crate::sites::{
    Site, SiteAccountPrefix, SiteAutomationHosts, SiteHost, SiteJumpHost, SiteName, SiteStorageArea, StorageAreaKind,
};
use crate::web::http::form_errors::FormErrors;

/// The fields as typed.
#[derive(Debug, Clone, Deserialize)]
pub struct ClusterSettingsForm {
    pub name: String,
    pub title: String,
    pub host: String,
    pub port: String,
    pub jump_host: String,
    pub jump_port: String,
    pub robot_host: String,
    pub robot_port: String,
    pub calls_per_minute: String,
    pub idle_minutes: String,
    pub connects_per_hour: String,
    pub storage: String,
    pub accounts: String,
    pub units: String,
    /// The site description that the fields above change.
    pub base: String,
}

impl ClusterSettingsForm {
    /// Fills the fields from a site description.
    pub fn from_site(site: &Site) -> Self {
        let jump = site.login.jump.as_ref();
        let automation = site.automation.as_ref();
        let area = |area: &SiteStorageArea| format!("{}: {}", area.label, area.path);
        let host_text = |host: Option<&SiteHost>| host.map(|host| host.as_str().to_owned()).unwrap_or_default();
        Self {
            name: site.name.as_str().to_owned(),
            title: site.title.clone(),
            host: host_text(site.login.host.as_ref()),
            port: site.login.port.to_string(),
            jump_host: host_text(jump.map(|jump| &jump.host)),
            jump_port: jump.map_or(22, |jump| jump.port).to_string(),
            robot_host: host_text(automation.and_then(|automation| automation.hosts.first())),
            robot_port: automation.map_or(22, |automation| automation.port).to_string(),
            calls_per_minute: site.limits.calls_per_minute.to_string(),
            idle_minutes: site.limits.idle_minutes.to_string(),
            connects_per_hour: site.limits.connects_per_hour.to_string(),
            storage: site.storage.areas.iter().map(area).collect::<Vec<_>>().join("\n"),
            accounts: site.jobs.accounts.iter().map(|account| account.prefix.clone()).collect::<Vec<_>>().join(", "),
            units: site.units.name.clone().unwrap_or_default(),
            base: site.to_toml().unwrap_or_default(),
        }
    }

    /// Fills the fields from a preset. One without a host describes no cluster in particular, so its names are nobody's.
    pub fn from_preset(site: &Site) -> Self {
        let form = Self::from_site(site);
        if site.login.host.is_some() {
            return form;
        }
        Self { name: String::new(), title: String::new(), ..form }
    }

    /// The site description with the fields applied, or what is wrong with them.
    pub fn to_site(&self) -> Result<Site, FormErrors> {
        let mut problems = FormErrors::default();
        let mut site = match Site::from_toml(&self.base) {
            Ok(site) => site,
            Err(error) => return Err(FormErrors::single("file", error)),
        };
        if let Some(name) = problems.parse::<Slug>("name", &self.name) {
            site.name = SiteName(name);
        }
        if let Some(title) = problems.parse::<DisplayName>("title", &self.title) {
            title.as_str().clone_into(&mut site.title);
        }
        site.login.host = problems.parse::<HostName>("host", self.host.trim()).map(SiteHost);
        site.login.port = parse_port(&mut problems, "port", &self.port);
        site.login.jump = match self.jump_host.trim() {
            "" => None,
            host => problems.parse::<HostName>("jump_host", host).map(|host| SiteJumpHost {
                host: SiteHost(host),
                port: parse_port(&mut problems, "jump_port", &self.jump_port),
            }),
        };
        self.apply_automation(&mut site, &mut problems);
        parse_number(&mut problems, "calls_per_minute", &self.calls_per_minute, &mut site.limits.calls_per_minute);
        parse_number(&mut problems, "idle_minutes", &self.idle_minutes, &mut site.limits.idle_minutes);
        parse_number(&mut problems, "connects_per_hour", &self.connects_per_hour, &mut site.limits.connects_per_hour);
        site.storage.areas = self.parse_areas(&site, &mut problems);
        site.jobs.accounts = self.parse_account_prefixes(&site);
        site.units.name = Some(self.units.trim().to_owned()).filter(|name| !name.is_empty());
        if problems.is_empty()
            && let Err(error) = site.check()
        {
            problems.add("file", error);
        }
        if problems.is_empty() { Ok(site) } else { Err(problems) }
    }

    fn apply_automation(&self, site: &mut Site, problems: &mut FormErrors) {
        let host = self.robot_host.trim();
        if host.is_empty() {
            site.automation = None;
        } else if let Some(host) = problems.parse::<HostName>("robot_host", host) {
            let automation = site.automation.get_or_insert_with(SiteAutomationHosts::default);
            automation.port = parse_port(problems, "robot_port", &self.robot_port);
            match automation.hosts.first_mut() {
                Some(first) => *first = SiteHost(host),
                None => automation.hosts.push(SiteHost(host)),
            }
        }
    }

    /// Parses lines of `Label: path`; other settings of a folder with the same label are kept.
    fn parse_areas(&self, site: &Site, problems: &mut FormErrors) -> Vec<SiteStorageArea> {
        let mut areas = Vec::new();
        for line in self.storage.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some((label, path)) = line.split_once(':') else {
                let problem =
                    format!("Enter each folder as \u{201c}Name: path\u{201d}. This line has no colon: {line}");
                problems.add("storage", problem);
                continue;
            };
            let (label, path) = (label.trim().to_owned(), path.trim().to_owned());
            let existing = site.storage.areas.iter().find(|area| area.label == label).cloned();
            areas.push(match existing {
                Some(area) => SiteStorageArea { path, ..area },
                None => SiteStorageArea {
                    kind: guess_area_kind(&label),
                    purpose: format!("Files in {label}."),
                    room: None,
                    purge: None,
                    purge_days: None,
                    read_only_in_jobs: false,
                    label,
                    path,
                },
            });
        }
        areas
    }

    fn parse_account_prefixes(&self, site: &Site) -> Vec<SiteAccountPrefix> {
        let account = |prefix: &str| {
            let existing = site.jobs.accounts.iter().find(|account| account.prefix == prefix).cloned();
            existing.unwrap_or_else(|| SiteAccountPrefix {
                prefix: prefix.to_owned(),
                meaning: "A group's account.".to_owned(),
            })
        };
        self.accounts.split(',').map(str::trim).filter(|prefix| !prefix.is_empty()).map(account).collect()
    }
}

fn guess_area_kind(label: &str) -> StorageAreaKind {
    let label = label.to_lowercase();
    match () {
        () if label.contains("home") => StorageAreaKind::Home,
        () if label.contains("scratch") => StorageAreaKind::Scratch,
        () => StorageAreaKind::Project,
    }
}

fn parse_port(problems: &mut FormErrors, field: &'static str, text: &str) -> u16 {
    if let Ok(port @ 1..) = text.trim().parse() {
        return port;
    }
    problems.add(field, "Enter a port between 1 and 65535. If you're not sure, use 22.");
    22
}

fn parse_number(problems: &mut FormErrors, field: &'static str, text: &str, into: &mut u16) {
    match text.trim().parse() {
        Ok(value @ 1..) => *into = value,
        _ => problems.add(field, "Enter a whole number of at least 1."),
    }
}
