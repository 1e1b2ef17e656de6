//! Checks a site's values: lengths, ranges, and values that must match. Names the first invalid one.

use std::fmt::Display;

use super::{
    InternetAccess, Site, SiteAutomationHosts, SiteCommandShell, SiteDashboardResources, SiteError, SiteJobRules,
    SiteKeyRegistration, SiteLoginFactor, SiteLoginServer, SiteRateLimits, SiteStorageArea, SiteUsageAccounting,
};
use crate::text::is_hidden;

type SiteValidationResult = Result<(), SiteError>;

/// In characters.
const MAX_SENTENCE: usize = 400;
const MAX_TITLE: usize = 80;
const MAX_LIST: usize = 40;

pub(super) fn check_site(site: &Site) -> SiteValidationResult {
    check_line("title", &site.title, MAX_TITLE)?;
    check_optional_line("operator", site.operator.as_ref(), 160)?;
    check_sentences("notes", &site.notes)?;
    check_login(&site.login)?;
    check_keys(&site.keys, &site.login)?;
    site.automation.as_ref().map_or(Ok(()), check_automation)?;
    check_limits(site.limits)?;
    check_shell(&site.shell)?;
    check_each("storage.areas", &site.storage.areas, check_area)?;
    check_jobs(&site.jobs)?;
    check_dashboards(&site.dashboards, &site.jobs)?;
    check_units(&site.units)?;
    check_each("uncertain", &site.uncertain, |at, uncertain| {
        let name = uncertain.field.replace(['.', '_'], "");
        require(
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase()),
            &format!("{at}.field"),
            "name a field of this file, such as jobs.max_hours.",
        )?;
        check_line(&format!("{at}.why"), &uncertain.why, MAX_SENTENCE)
    })
}

fn check_login(login: &SiteLoginServer) -> SiteValidationResult {
    check_range("login.port", login.port, 1, u16::MAX)?;
    if let Some(jump) = &login.jump {
        check_range("login.jump.port", jump.port, 1, u16::MAX)?;
    }
    check_list_len("login.also", login.also.len())?;
    check_list_len("login.fingerprints", login.fingerprints.len())?;
    check_optional_line("login.region", login.region.as_ref(), MAX_SENTENCE)?;
    if let Some(grace) = login.grace_s {
        check_range("login.grace_s", grace, 10, 3600)?;
    }
    check_each("login.accepts", &login.accepts, |at, factors| {
        let once = factors.iter().enumerate().all(|(n, factor)| !factors[..n].contains(factor));
        require(
            !factors.is_empty() && once,
            at,
            "list what the server asks for (key, password, code or duo), each at most once.",
        )
    })
}

fn check_keys(keys: &SiteKeyRegistration, login: &SiteLoginServer) -> SiteValidationResult {
    check_optional_line("keys.page_name", keys.page_name.as_ref(), MAX_TITLE)?;
    check_optional_line("keys.user_name", keys.user_name.as_ref(), MAX_TITLE)?;
    check_optional_line("keys.delay", keys.delay.as_ref(), MAX_SENTENCE)?;
    check_optional_line("keys.why_not", keys.why_not.as_ref(), MAX_SENTENCE)?;
    check_sentences("keys.steps", &keys.steps)?;
    require(matches!(keys.steps.len(), 0 | 2..=5), "keys.steps", "enter two to five short sentences, or none.")?;
    require(keys.opens.0 != keys.why_not.is_some(), "keys.why_not", "set this if keys.opens is false, and only then.")?;
    require(
        keys.opens.0 == login.preferred_factors().contains(&SiteLoginFactor::Key),
        "keys.opens",
        "the first entry of login.accepts must include key if keys.opens is true, and only then.",
    )
}

fn check_automation(automation: &SiteAutomationHosts) -> SiteValidationResult {
    require(!automation.hosts.is_empty(), "automation.hosts", "name at least one host.")?;
    check_list_len("automation.hosts", automation.hosts.len())?;
    check_list_len("automation.fingerprints", automation.fingerprints.len())?;
    check_optional_line("automation.support", automation.support.as_ref(), 160)?;
    check_sentences("automation.forbids", &automation.forbids)?;
    check_sentences("automation.notes", &automation.notes)?;
    check_each("automation.wrappers", &automation.wrappers, |at, wrapper| {
        check_path(&format!("{at}.path"), &wrapper.path)?;
        check_line(&format!("{at}.allows"), &wrapper.allows, MAX_SENTENCE)
    })
}

fn check_limits(limits: SiteRateLimits) -> SiteValidationResult {
    check_range("limits.calls_per_minute", limits.calls_per_minute, 1, 600)?;
    check_range("limits.queue_every_s", limits.queue_every_s, 2, 3600)?;
    check_range("limits.idle_minutes", limits.idle_minutes, 1, 1440)?;
    check_range("limits.connects_per_hour", limits.connects_per_hour, 1, 3600)?;
    check_range("limits.sessions", limits.sessions, 1, 8)?;
    check_range("limits.submit_spacing_s", limits.submit_spacing_s, 0, 600)
}

fn check_shell(shell: &SiteCommandShell) -> SiteValidationResult {
    let Some(prepare) = &shell.prepare else {
        return Ok(());
    };
    // Both run in everyone's login shell: only what the centre itself has installed may be named.
    if let Some(file) = &prepare.source {
        check_path("shell.prepare.source", file)?;
        require(
            INSTALLED_FOLDERS.iter().any(|folder| file.starts_with(folder)),
            "shell.prepare.source",
            "name a file installed by the centre under /etc, /usr, /opt, /cvmfs, /cluster, /apps or /sw.",
        )?;
    }
    check_word("shell.prepare.module", &prepare.module)?;
    require(
        prepare.module.starts_with(|c: char| c.is_ascii_alphanumeric()),
        "shell.prepare.module",
        "enter the name of a module, not a path.",
    )
}

/// Where a centre installs software for everyone; ordinary users cannot write there.
const INSTALLED_FOLDERS: &[&str] = &["/etc/", "/usr/", "/opt/", "/cvmfs/", "/cluster/", "/apps/", "/sw/"];

fn check_area(at: &str, area: &SiteStorageArea) -> SiteValidationResult {
    check_line(&format!("{at}.label"), &area.label, MAX_TITLE)?;
    check_path(&format!("{at}.path"), &area.path)?;
    check_line(&format!("{at}.purpose"), &area.purpose, MAX_SENTENCE)?;
    check_optional_line(&format!("{at}.room"), area.room.as_ref(), 120)?;
    check_optional_line(&format!("{at}.purge"), area.purge.as_ref(), MAX_SENTENCE)?;
    check_optional_range(&format!("{at}.purge_days"), area.purge_days, 1, 3650)?;
    require(
        area.purge_days.is_none() || area.purge.is_some(),
        &format!("{at}.purge"),
        "say in a sentence when files are deleted if purge_days is set.",
    )
}

fn check_jobs(jobs: &SiteJobRules) -> SiteValidationResult {
    check_each("jobs.account_suffixes", &jobs.account_suffixes, |at, suffix| check_word(at, suffix))?;
    check_optional_range("jobs.max_hours", jobs.max_hours, 1, 24 * 366)?;
    check_optional_range("jobs.min_minutes", jobs.min_minutes, 1, 24 * 60)?;
    for (field, most) in
        [("jobs.max_jobs", jobs.max_jobs), ("jobs.max_running", jobs.max_running), ("jobs.max_array", jobs.max_array)]
    {
        check_optional_range(field, most, 1, 10_000_000)?;
    }
    check_optional_range("jobs.memory_default_mb", jobs.memory_default_mb, 1, 10_000_000)?;
    check_optional_line("jobs.memory_note", jobs.memory_note.as_ref(), MAX_SENTENCE)?;
    check_optional_line("jobs.internet_note", jobs.internet_note.as_ref(), MAX_SENTENCE)?;
    check_optional_line("jobs.tmpdir_note", jobs.tmpdir_note.as_ref(), MAX_SENTENCE)?;
    if let Some(proxy) = &jobs.proxy {
        let host = proxy.strip_prefix("http://").unwrap_or_default().trim_end_matches('/');
        require(
            host.parse::<super::SiteHost>().is_ok() && jobs.internet == InternetAccess::Proxy,
            "jobs.proxy",
            "enter a URL such as http://proxy.example.org:3128/, and set jobs.internet to \"proxy\".",
        )?;
    }
    if let Some(variable) = &jobs.tmpdir {
        require(is_variable(variable), "jobs.tmpdir", "enter a variable such as $SLURM_TMPDIR.")?;
    }
    check_list_len("jobs.modules", jobs.modules.len())?;
    for (purpose, names) in &jobs.modules {
        check_word("jobs.modules", purpose)?;
        for name in names.split(' ') {
            check_word(&format!("jobs.modules.{purpose}"), name)?;
        }
    }
    check_each("jobs.accounts", &jobs.accounts, |at, account| {
        check_word(&format!("{at}.prefix"), &account.prefix)?;
        check_line(&format!("{at}.meaning"), &account.meaning, MAX_SENTENCE)
    })?;
    check_each("jobs.gpus", &jobs.gpus, |at, gpu| {
        check_word(&format!("{at}.name"), &gpu.name)?;
        check_line(&format!("{at}.label"), &gpu.label, MAX_TITLE)?;
        check_optional_range(&format!("{at}.per_node"), gpu.per_node, 1, 64)?;
        check_optional_range(&format!("{at}.memory_gb"), gpu.memory_gb, 1, 2000)?;
        check_optional_range(&format!("{at}.cores"), gpu.cores, 1, 1024)?;
        check_optional_range(&format!("{at}.node_memory_gb"), gpu.node_memory_gb, 1, 20_000)?;
        check_words(at, [("partition", &gpu.partition), ("processor", &gpu.processor)])
    })?;
    check_each("jobs.slices", &jobs.slices, |at, slice| {
        check_word(&format!("{at}.name"), &slice.name)?;
        check_line(&format!("{at}.label"), &slice.label, MAX_TITLE)?;
        check_optional_range(&format!("{at}.cores"), slice.cores, 1, 1024)?;
        check_optional_range(&format!("{at}.node_memory_gb"), slice.node_memory_gb, 1, 20_000)
    })?;
    check_each("jobs.types", &jobs.types, |at, kind| {
        check_word(&format!("{at}.name"), &kind.name)?;
        check_line(&format!("{at}.label"), &kind.label, MAX_SENTENCE)?;
        check_optional_range(&format!("{at}.max_minutes"), kind.max_minutes, 1, 60 * 24 * 366)?;
        check_optional_range(&format!("{at}.min_nodes"), kind.min_nodes, 1, 100_000)?;
        check_optional_range(&format!("{at}.max_nodes"), kind.max_nodes, kind.min_nodes.unwrap_or(1), 100_000)?;
        check_optional_range(&format!("{at}.max_jobs"), kind.max_jobs, 1, 1_000_000)?;
        check_words(at, [("partition", &kind.partition), ("qos", &kind.qos)])
    })?;
    check_unique("jobs.gpus", jobs.gpus.iter().map(|gpu| &gpu.name).chain(jobs.slices.iter().map(|s| &s.name)))?;
    check_unique("jobs.types", jobs.types.iter().map(|kind| &kind.name))
}

fn check_dashboards(dashboards: &SiteDashboardResources, jobs: &SiteJobRules) -> SiteValidationResult {
    check_range("dashboards.cores", dashboards.cores, 1, 64)?;
    check_range("dashboards.memory_mb", dashboards.memory_mb, 256, 1_000_000)?;
    check_optional_line("dashboards.note", dashboards.note.as_ref(), MAX_SENTENCE)?;
    if let Some(name) = &dashboards.job_type {
        require(
            jobs.types.iter().any(|kind| kind.name == *name),
            "dashboards.job_type",
            "enter a name listed under jobs.types.",
        )?;
    }
    if let Some(name) = &dashboards.gpu {
        let mut known = jobs.gpus.iter().map(|gpu| &gpu.name);
        let slices = &mut jobs.slices.iter().map(|slice| &slice.name);
        require(
            known.any(|gpu| gpu == name) || slices.any(|slice| slice == name),
            "dashboards.gpu",
            "enter a name listed under jobs.gpus or jobs.slices.",
        )?;
    }
    Ok(())
}

fn check_units(units: &SiteUsageAccounting) -> SiteValidationResult {
    check_optional_line("units.name", units.name.as_ref(), MAX_TITLE)?;
    check_optional_line("units.explanation", units.explanation.as_ref(), MAX_SENTENCE)?;
    check_each("units.factors", &units.factors, |at, factor| {
        check_word(&format!("{at}.name"), &factor.name)?;
        require(
            factor.value > 0.0 && factor.value <= 100_000.0,
            &format!("{at}.value"),
            "enter a number greater than 0 and at most 100000.",
        )
    })
}

fn require(fine: bool, field: &str, advice: &str) -> SiteValidationResult {
    if fine {
        return Ok(());
    }
    Err(SiteError::InvalidValue { field: field.to_owned(), advice: advice.to_owned() })
}

/// One line of text that people read.
fn check_line(field: &str, text: &str, max: usize) -> SiteValidationResult {
    let fine = !text.trim().is_empty() && text.chars().count() <= max;
    require(fine, field, &format!("enter one line of at most {max} characters."))?;
    let plain = !text.chars().any(is_hidden);
    require(plain, field, "remove line breaks and invisible characters.")
}

fn check_optional_line(field: &str, text: Option<&String>, max: usize) -> SiteValidationResult {
    text.map_or(Ok(()), |text| check_line(field, text, max))
}

fn check_sentences(field: &str, texts: &[String]) -> SiteValidationResult {
    check_each(field, texts, |at, text| check_line(at, text, MAX_SENTENCE))
}

/// Checks the length of a list, and each item in it.
fn check_each<T>(field: &str, list: &[T], check: impl Fn(&str, &T) -> SiteValidationResult) -> SiteValidationResult {
    check_list_len(field, list.len())?;
    list.iter().enumerate().try_for_each(|(n, thing)| check(&format!("{field}[{n}]"), thing))
}

fn check_list_len(field: &str, len: usize) -> SiteValidationResult {
    require(len <= MAX_LIST, field, &format!("list at most {MAX_LIST} items."))
}

/// A name that goes into scripts: it contains nothing that a shell interprets.
fn check_word(field: &str, text: &str) -> SiteValidationResult {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-/+".contains(c);
    let fine = !text.is_empty() && text.len() <= 80 && !text.starts_with('-') && text.chars().all(good);
    require(fine, field, "use letters, digits, dots, dashes, underscores, slashes and plus signs only.")
}

fn check_words<const N: usize>(at: &str, texts: [(&str, &Option<String>); N]) -> SiteValidationResult {
    texts
        .iter()
        .try_for_each(|(name, text)| text.as_ref().map_or(Ok(()), |text| check_word(&format!("{at}.{name}"), text)))
}

/// A path that goes into scripts. It may begin with a variable and contain `{project}`.
fn check_path(field: &str, text: &str) -> SiteValidationResult {
    let (start, rest) = text.split_once('/').unwrap_or((text, ""));
    let start_fine = start.is_empty() || start == "~" || is_variable(start);
    let rest = rest.replace("{project}", "").replace("$USER", "");
    let good = |c: char| c.is_ascii_alphanumeric() || "._-/+".contains(c);
    let fine = !text.is_empty()
        && text.len() <= 200
        && start_fine
        && rest.chars().all(good)
        && !rest.split('/').any(|part| part == "..");
    require(fine, field, "enter a path that starts with /, ~ or a variable such as $SCRATCH; it may contain {project}.")
}

fn is_variable(text: &str) -> bool {
    text.strip_prefix('$').is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.len() <= 40
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

fn check_range<T: PartialOrd + Display + Copy>(field: &str, value: T, least: T, most: T) -> SiteValidationResult {
    let fine = (least..=most).contains(&value);
    require(fine, field, &format!("enter a number from {least} to {most}."))
}

fn check_optional_range<T: PartialOrd + Display + Copy>(
    field: &str,
    value: Option<T>,
    least: T,
    most: T,
) -> SiteValidationResult {
    value.map_or(Ok(()), |value| check_range(field, value, least, most))
}

fn check_unique<'a>(field: &str, names: impl Iterator<Item = &'a String>) -> SiteValidationResult {
    let mut earlier = Vec::new();
    for name in names {
        require(!earlier.contains(&name), field, &format!("list {name} only once."))?;
        earlier.push(name);
    }
    Ok(())
}
