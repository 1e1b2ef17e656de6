//! Whether a site's values are possible: lengths, ranges, and what must fit together. The first that is not is named.

use std::fmt::Display;

use super::clean::is_hidden;
use super::{
    Area, Boards, Internet, Jobs, Keys, Limits, Login, Proof, Robot, Shell, Site, SiteError, Units,
};

type Checked = Result<(), SiteError>;

/// Longest sentence, in characters.
const SENTENCE: usize = 400;
/// Longest name for people.
const TITLE: usize = 80;
/// Longest list of anything.
const LIST: usize = 40;

pub(super) fn site(site: &Site) -> Checked {
    line("title", &site.title, TITLE)?;
    optional("operator", site.operator.as_ref(), 160)?;
    sentences("notes", &site.notes)?;
    login(&site.login)?;
    keys(&site.keys, &site.login)?;
    site.robot.as_ref().map_or(Ok(()), robot)?;
    limits(site.limits)?;
    shell(&site.shell)?;
    each("storage.areas", &site.storage.areas, area)?;
    jobs(&site.jobs)?;
    boards(&site.boards, &site.jobs)?;
    units(&site.units)?;
    each("uncertain", &site.uncertain, |at, doubt| {
        let name = doubt.field.replace(['.', '_'], "");
        require(
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase()),
            &format!("{at}.field"),
            "name a field of this file, such as jobs.max_hours.",
        )?;
        line(&format!("{at}.why"), &doubt.why, SENTENCE)
    })
}

fn login(login: &Login) -> Checked {
    range("login.port", login.port, 1, u16::MAX)?;
    if let Some(jump) = &login.jump {
        range("login.jump.port", jump.port, 1, u16::MAX)?;
    }
    short("login.also", login.also.len())?;
    short("login.fingerprints", login.fingerprints.len())?;
    optional("login.region", login.region.as_ref(), SENTENCE)?;
    if let Some(grace) = login.grace_s {
        range("login.grace_s", grace, 10, 3600)?;
    }
    each("login.accepts", &login.accepts, |at, way| {
        let once = way.iter().enumerate().all(|(n, proof)| !way[..n].contains(proof));
        require(
            !way.is_empty() && once,
            at,
            "list what the server asks for, each once: key, password, code, duo.",
        )
    })
}

fn keys(keys: &Keys, login: &Login) -> Checked {
    optional("keys.page_name", keys.page_name.as_ref(), TITLE)?;
    optional("keys.user_name", keys.user_name.as_ref(), TITLE)?;
    optional("keys.delay", keys.delay.as_ref(), SENTENCE)?;
    optional("keys.why_not", keys.why_not.as_ref(), SENTENCE)?;
    sentences("keys.steps", &keys.steps)?;
    require(
        matches!(keys.steps.len(), 0 | 2..=5),
        "keys.steps",
        "give two to five short sentences, or none.",
    )?;
    require(
        keys.opens != keys.why_not.is_some(),
        "keys.why_not",
        "say why a key does not help exactly when keys.opens is false.",
    )?;
    require(
        keys.opens == login.way().contains(&Proof::Key),
        "keys.opens",
        "the first way of login.accepts must have a key in it exactly when keys.opens is true.",
    )
}

fn robot(robot: &Robot) -> Checked {
    require(!robot.hosts.is_empty(), "robot.hosts", "name at least one host.")?;
    short("robot.hosts", robot.hosts.len())?;
    short("robot.fingerprints", robot.fingerprints.len())?;
    optional("robot.support", robot.support.as_ref(), 160)?;
    sentences("robot.forbids", &robot.forbids)?;
    sentences("robot.notes", &robot.notes)?;
    each("robot.wrappers", &robot.wrappers, |at, wrapper| {
        path(&format!("{at}.path"), &wrapper.path)?;
        line(&format!("{at}.allows"), &wrapper.allows, SENTENCE)
    })
}

fn limits(limits: Limits) -> Checked {
    range("limits.calls_per_minute", limits.calls_per_minute, 1, 600)?;
    range("limits.queue_every_s", limits.queue_every_s, 2, 3600)?;
    range("limits.idle_minutes", limits.idle_minutes, 1, 1440)?;
    range("limits.connects_per_hour", limits.connects_per_hour, 1, 3600)?;
    range("limits.sessions", limits.sessions, 1, 8)?;
    range("limits.submit_spacing_s", limits.submit_spacing_s, 0, 600)
}

fn shell(shell: &Shell) -> Checked {
    let Some(prepare) = &shell.prepare else {
        return Ok(());
    };
    // Both are run in everyone's login shell: only what a centre itself has installed may be named.
    if let Some(file) = &prepare.source {
        path("shell.prepare.source", file)?;
        require(
            INSTALLED.iter().any(|folder| file.starts_with(folder)),
            "shell.prepare.source",
            "name a file that the centre has installed, below /etc, /usr, /opt, /cvmfs, /cluster, /apps or /sw.",
        )?;
    }
    word("shell.prepare.module", &prepare.module)?;
    require(
        prepare.module.starts_with(|c: char| c.is_ascii_alphanumeric()),
        "shell.prepare.module",
        "give the name of a module, not a path.",
    )
}

/// Where a centre installs what everyone may run; ordinary users cannot write there.
const INSTALLED: &[&str] = &["/etc/", "/usr/", "/opt/", "/cvmfs/", "/cluster/", "/apps/", "/sw/"];

fn area(at: &str, area: &Area) -> Checked {
    line(&format!("{at}.label"), &area.label, TITLE)?;
    path(&format!("{at}.path"), &area.path)?;
    line(&format!("{at}.purpose"), &area.purpose, SENTENCE)?;
    optional(&format!("{at}.room"), area.room.as_ref(), 120)?;
    optional(&format!("{at}.purge"), area.purge.as_ref(), SENTENCE)
}

fn jobs(jobs: &Jobs) -> Checked {
    each("jobs.account_suffixes", &jobs.account_suffixes, |at, suffix| word(at, suffix))?;
    maybe("jobs.max_hours", jobs.max_hours, 1, 24 * 366)?;
    maybe("jobs.min_minutes", jobs.min_minutes, 1, 24 * 60)?;
    for (field, most) in [
        ("jobs.max_jobs", jobs.max_jobs),
        ("jobs.max_running", jobs.max_running),
        ("jobs.max_array", jobs.max_array),
    ] {
        maybe(field, most, 1, 10_000_000)?;
    }
    maybe("jobs.memory_default_mb", jobs.memory_default_mb, 1, 10_000_000)?;
    optional("jobs.memory_note", jobs.memory_note.as_ref(), SENTENCE)?;
    optional("jobs.internet_note", jobs.internet_note.as_ref(), SENTENCE)?;
    optional("jobs.tmpdir_note", jobs.tmpdir_note.as_ref(), SENTENCE)?;
    if let Some(proxy) = &jobs.proxy {
        let host = proxy.strip_prefix("http://").unwrap_or_default().trim_end_matches('/');
        require(
            host.parse::<super::Host>().is_ok() && jobs.internet == Internet::Proxy,
            "jobs.proxy",
            "give an address such as http://proxy.example.org:3128/, and set jobs.internet to \"proxy\".",
        )?;
    }
    if let Some(variable) = &jobs.tmpdir {
        require(is_variable(variable), "jobs.tmpdir", "give a variable such as $SLURM_TMPDIR.")?;
    }
    short("jobs.modules", jobs.modules.len())?;
    for (purpose, names) in &jobs.modules {
        word("jobs.modules", purpose)?;
        for name in names.split(' ') {
            word(&format!("jobs.modules.{purpose}"), name)?;
        }
    }
    each("jobs.accounts", &jobs.accounts, |at, account| {
        word(&format!("{at}.prefix"), &account.prefix)?;
        line(&format!("{at}.meaning"), &account.meaning, SENTENCE)
    })?;
    each("jobs.gpus", &jobs.gpus, |at, gpu| {
        word(&format!("{at}.name"), &gpu.name)?;
        line(&format!("{at}.label"), &gpu.label, TITLE)?;
        maybe(&format!("{at}.per_node"), gpu.per_node, 1, 64)?;
        maybe(&format!("{at}.memory_gb"), gpu.memory_gb, 1, 2000)?;
        maybe(&format!("{at}.cores"), gpu.cores, 1, 1024)?;
        maybe(&format!("{at}.node_memory_gb"), gpu.node_memory_gb, 1, 20_000)?;
        words(at, [("partition", &gpu.partition), ("processor", &gpu.processor)])
    })?;
    each("jobs.slices", &jobs.slices, |at, slice| {
        word(&format!("{at}.name"), &slice.name)?;
        line(&format!("{at}.label"), &slice.label, TITLE)?;
        maybe(&format!("{at}.cores"), slice.cores, 1, 1024)?;
        maybe(&format!("{at}.node_memory_gb"), slice.node_memory_gb, 1, 20_000)
    })?;
    each("jobs.types", &jobs.types, |at, kind| {
        word(&format!("{at}.name"), &kind.name)?;
        line(&format!("{at}.label"), &kind.label, SENTENCE)?;
        maybe(&format!("{at}.max_minutes"), kind.max_minutes, 1, 60 * 24 * 366)?;
        maybe(&format!("{at}.min_nodes"), kind.min_nodes, 1, 100_000)?;
        maybe(&format!("{at}.max_nodes"), kind.max_nodes, kind.min_nodes.unwrap_or(1), 100_000)?;
        maybe(&format!("{at}.max_jobs"), kind.max_jobs, 1, 1_000_000)?;
        words(at, [("partition", &kind.partition), ("qos", &kind.qos)])
    })?;
    once(
        "jobs.gpus",
        jobs.gpus.iter().map(|gpu| &gpu.name).chain(jobs.slices.iter().map(|s| &s.name)),
    )?;
    once("jobs.types", jobs.types.iter().map(|kind| &kind.name))
}

fn boards(boards: &Boards, jobs: &Jobs) -> Checked {
    range("boards.cores", boards.cores, 1, 64)?;
    range("boards.memory_mb", boards.memory_mb, 256, 1_000_000)?;
    optional("boards.note", boards.note.as_ref(), SENTENCE)?;
    if let Some(name) = &boards.job_type {
        require(
            jobs.types.iter().any(|kind| kind.name == *name),
            "boards.job_type",
            "give a name that stands under jobs.types.",
        )?;
    }
    if let Some(name) = &boards.gpu {
        let mut known = jobs.gpus.iter().map(|gpu| &gpu.name);
        let slices = &mut jobs.slices.iter().map(|slice| &slice.name);
        require(
            known.any(|gpu| gpu == name) || slices.any(|slice| slice == name),
            "boards.gpu",
            "give a name that stands under jobs.gpus or jobs.slices.",
        )?;
    }
    Ok(())
}

fn units(units: &Units) -> Checked {
    optional("units.name", units.name.as_ref(), TITLE)?;
    optional("units.explanation", units.explanation.as_ref(), SENTENCE)?;
    each("units.factors", &units.factors, |at, factor| {
        word(&format!("{at}.name"), &factor.name)?;
        require(
            factor.value > 0.0 && factor.value <= 100_000.0,
            &format!("{at}.value"),
            "give a number above 0 and at most 100000.",
        )
    })
}

fn require(fine: bool, field: &str, advice: &str) -> Checked {
    if fine {
        return Ok(());
    }
    Err(SiteError::Value { field: field.to_owned(), advice: advice.to_owned() })
}

/// One line of text that people read.
fn line(field: &str, text: &str, max: usize) -> Checked {
    let fine = !text.trim().is_empty() && text.chars().count() <= max;
    require(fine, field, &format!("write one line of at most {max} characters."))?;
    let plain = !text.chars().any(is_hidden);
    require(plain, field, "remove line breaks and characters that cannot be seen.")
}

fn optional(field: &str, text: Option<&String>, max: usize) -> Checked {
    text.map_or(Ok(()), |text| line(field, text, max))
}

fn sentences(field: &str, texts: &[String]) -> Checked {
    each(field, texts, |at, text| line(at, text, SENTENCE))
}

/// A list that is not endless, and each thing in it.
fn each<T>(field: &str, list: &[T], check: impl Fn(&str, &T) -> Checked) -> Checked {
    short(field, list.len())?;
    list.iter().enumerate().try_for_each(|(n, thing)| check(&format!("{field}[{n}]"), thing))
}

fn short(field: &str, len: usize) -> Checked {
    require(len <= LIST, field, &format!("list at most {LIST}."))
}

/// A name that goes into scripts: nothing in it means anything to a shell.
fn word(field: &str, text: &str) -> Checked {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-/+".contains(c);
    let fine =
        !text.is_empty() && text.len() <= 80 && !text.starts_with('-') && text.chars().all(good);
    require(
        fine,
        field,
        "use letters, digits, dots, dashes, underscores, slashes and plus signs only.",
    )
}

fn words<const N: usize>(at: &str, texts: [(&str, &Option<String>); N]) -> Checked {
    texts.iter().try_for_each(|(name, text)| {
        text.as_ref().map_or(Ok(()), |text| word(&format!("{at}.{name}"), text))
    })
}

/// A path that goes into scripts. It may begin with a variable and hold `{project}`.
fn path(field: &str, text: &str) -> Checked {
    let (start, rest) = text.split_once('/').unwrap_or((text, ""));
    let start_fine = start.is_empty() || start == "~" || is_variable(start);
    let rest = rest.replace("{project}", "").replace("$USER", "");
    let good = |c: char| c.is_ascii_alphanumeric() || "._-/+".contains(c);
    let fine = !text.is_empty()
        && text.len() <= 200
        && start_fine
        && rest.chars().all(good)
        && !rest.split('/').any(|part| part == "..");
    require(
        fine,
        field,
        "give a path that begins with /, ~ or a variable such as $SCRATCH; it may hold {project}.",
    )
}

fn is_variable(text: &str) -> bool {
    text.strip_prefix('$').is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.len() <= 40
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

fn range<T: PartialOrd + Display + Copy>(field: &str, value: T, least: T, most: T) -> Checked {
    let fine = (least..=most).contains(&value);
    require(fine, field, &format!("give a number from {least} to {most}."))
}

fn maybe<T: PartialOrd + Display + Copy>(
    field: &str,
    value: Option<T>,
    least: T,
    most: T,
) -> Checked {
    value.map_or(Ok(()), |value| range(field, value, least, most))
}

fn once<'a>(field: &str, names: impl Iterator<Item = &'a String>) -> Checked {
    let mut seen = Vec::new();
    for name in names {
        require(!seen.contains(&name), field, &format!("name {name} once only."))?;
        seen.push(name);
    }
    Ok(())
}
