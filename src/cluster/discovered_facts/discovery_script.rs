//! One short script that explores a person's login environment, and the parser of its output.

use std::net::IpAddr;

use super::{DiscoveredFacts, DiscoveredUserFolder, FolderKind, MAX_LIST_LEN};
use crate::slurm::text::is_name;
use crate::text;

/// The programs to look for: Slurm's own, those of centres, and what recipes need.
macro_rules! tools {
    () => {
        "squeue sbatch sacct sshare sinfo scontrol sacctmgr sprio sreport seff \
         diskusage_report dusage cost projects lumi-workspaces quota lfs \
         module apptainer singularity python3 virtualenv avail_wheels tensorboard mlflow nvidia-smi"
    };
}

/// Run as `bash -l -c SCRIPT`, or `sh -c SCRIPT` where there is no bash. One line without single quotes, backslashes
/// and exclamation marks, so that it survives quoting for any login shell. It prints `name<TAB>value` lines: quick
/// and certain facts first, folders (whose disks may be slow) last, then `end`. The empty line at the start ends a
/// greeting that the profile printed.
///
/// The entries of `~/project` and `~/projects` are the groups that a person belongs to; only a `~/project` that is
/// itself a link is a group's folder.
pub const DISCOVERY_SCRIPT: &str = concat!(
    "set +euf; unset IFS; echo; ",
    "p() { printf \"%s\t%.4000s\" \"$1\" \"$2\"; echo; }; ",
    "p host \"$(uname -n)\"; p user \"$(id -un 2>/dev/null)\"; p home \"$HOME\"; p shell \"$SHELL\"; ",
    "p PATH \"$PATH\"; p LD_LIBRARY_PATH \"$LD_LIBRARY_PATH\"; p SLURM_CONF \"$SLURM_CONF\"; ",
    "p LANG \"$LANG\"; p CC_CLUSTER \"$CC_CLUSTER\"; p SSH_CONNECTION \"$SSH_CONNECTION\"; ",
    "for t in ",
    tools!(),
    "; do if command -v $t >/dev/null 2>&1; then p tool $t; fi; done; ",
    "d() { m=r; if [ -w \"$2\" ]; then m=w; fi; ",
    "p dir \"$1\t$m\t$2\t$(command cd -P -- \"$2\" 2>/dev/null && pwd -P)\"; }; ",
    "v() { if [ -d \"$2\" ]; then d $1 \"$2\"; elif [ -n \"$2\" ]; then p gone \"$1\t$2\"; fi; }; ",
    "l() { if [ -d \"$2\" ]; then d $1 \"$2\"; fi; }; ",
    "n=0; g() { for f in \"$HOME/$1\"/*; do if [ $n -lt 20 ] && [ -d \"$f\" ] && [ -x \"$f\" ]; ",
    "then n=$((n+1)); d group \"$f\"; fi; done; }; ",
    "v HOME \"$HOME\"; v SCRATCH \"$SCRATCH\"; v PROJECT \"$PROJECT\"; v USERWORK \"$USERWORK\"; ",
    "l scratch \"$HOME/scratch\"; l scratch \"$HOME/links/scratch\"; ",
    "g projects; if [ -h \"$HOME/project\" ]; then l project \"$HOME/project\"; else g project; fi; ",
    "g links/projects; echo end"
);

/// Variables that later commands need to find and run what the person can.
const FORWARDED_VARIABLES: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "SLURM_CONF", "LANG"];
/// The limit for search paths; the script cuts there, too.
const MAX_SEARCH_PATH_LEN: usize = 4000;
/// Everything else is a word or a path.
const MAX_VALUE_LEN: usize = 400;
const MAX_LINES: usize = 2000;

/// A folder as the script reports it: what it was looked for as, and its path before and after following links.
struct UserFolderLine<'a> {
    source: &'a str,
    writable: bool,
    path: &'a str,
    real_path: &'a str,
}

impl DiscoveredFacts {
    /// Takes over what the script printed. Skips other lines, such as a greeting. Returns whether there was any
    /// output of the script.
    pub(super) fn read_discovery_output(&mut self, text: &str) -> bool {
        let mut seen = Vec::new();
        let mut ended = false;
        for line in text.lines().take(MAX_LINES) {
            ended |= line.trim_end() == "end";
            match line.split_once('\t') {
                Some(("dir", value)) if seen.len() < MAX_LIST_LEN => {
                    seen.extend(UserFolderLine::parse(value));
                }
                Some(("gone", value)) => self.report_missing_folder(value),
                Some((name, value)) => self.set_fact(name, value),
                None => {}
            }
        }
        self.folders = folders_to_show(&seen);
        let something = self.home.is_some() || !self.env.is_empty();
        if something && !ended {
            self.missing.push("The search was cut short, so some folders may be missing.".to_owned());
        }
        something
    }

    fn set_fact(&mut self, name: &str, value: &str) {
        let word = text::sanitize(value, MAX_VALUE_LEN);
        let word = (!word.is_empty()).then_some(word);
        match name {
            "host" => self.host = word,
            "user" => self.user = word.filter(|user| is_name(user)),
            "home" => self.home = Some(value.to_owned()).filter(|path| is_usable_path(path)),
            "shell" => self.shell = word,
            "CC_CLUSTER" => self.cc_cluster = word,
            "SSH_CONNECTION" => self.our_address = parse_client_address(value),
            "tool" => {
                let known = |word: &String| tools!().split_whitespace().any(|tool| tool == word);
                let new = word.filter(|word| known(word) && !self.tools.contains(word));
                self.tools.extend(new);
            }
            "PATH" | "LD_LIBRARY_PATH" => self.add_env(name, clean_search_path(value)),
            // A truncated value would mean something else.
            _ if value.chars().count() > MAX_VALUE_LEN => {}
            _ => self.add_env(name, word.unwrap_or_default()),
        }
    }

    fn add_env(&mut self, name: &str, value: String) {
        if FORWARDED_VARIABLES.contains(&name) && !value.is_empty() {
            self.env.insert(name.to_owned(), value);
        }
    }

    fn report_missing_folder(&mut self, value: &str) {
        if let Some((name @ ("HOME" | "SCRATCH" | "PROJECT" | "USERWORK"), path)) = value.split_once('\t')
            && !self.missing.iter().any(|sentence| sentence.starts_with(name))
        {
            let path = text::sanitize(path, MAX_VALUE_LEN);
            self.missing.push(format!("{name} is set to {path}, but that folder doesn't exist."));
        }
    }
}

impl<'a> UserFolderLine<'a> {
    fn parse(value: &'a str) -> Option<Self> {
        let mut fields = value.splitn(4, '\t');
        let (what, mode, path) = (fields.next()?, fields.next()?, fields.next()?);
        // If the link could not be resolved, the original path has to do.
        let real = fields.next().filter(|real| is_usable_path(real)).unwrap_or(path);
        is_usable_path(path).then_some(Self { source: what, writable: mode == "w", path, real_path: real })
    }

    fn kind(&self) -> Option<FolderKind> {
        Some(match self.source {
            "HOME" => FolderKind::Home,
            "SCRATCH" | "scratch" => FolderKind::Scratch,
            "PROJECT" | "project" | "group" => FolderKind::Project,
            "USERWORK" => FolderKind::Work,
            _ => return None,
        })
    }
}

/// The folders worth showing, each once. Paths from variables are kept as the centre writes them; links in the home
/// folder are resolved, because some centres refuse jobs whose folder begins with `/home`. Folders that really are
/// inside the home folder belong to the person (`~/projects/thesis`) and are not listed separately.
fn folders_to_show(lines: &[UserFolderLine<'_>]) -> Vec<DiscoveredUserFolder> {
    let homes: Vec<&str> = lines.iter().filter(|s| s.source == "HOME").flat_map(|s| [s.path, s.real_path]).collect();
    let at_home = |path: &str| homes.iter().any(|home| is_below(path, home));
    let has_groups = lines.iter().any(|s| s.source == "group" && !at_home(s.real_path));
    let mut folders: Vec<(&str, DiscoveredUserFolder)> = Vec::new();
    for line in lines {
        let Some(label) = line.kind() else { continue };
        let own = match line.source {
            "HOME" | "SCRATCH" | "USERWORK" => false,
            // If it only contains links to the groups' folders, those are enough.
            "PROJECT" => has_groups && at_home(line.real_path),
            _ => at_home(line.real_path),
        };
        if own {
            continue;
        }
        let group = line.path.rsplit('/').next().filter(|_| line.source == "group");
        let group = group.filter(|group| is_name(group)).map(str::to_owned);
        if let Some((_, folder)) = folders.iter_mut().find(|(real, _)| *real == line.real_path) {
            folder.group = folder.group.take().or(group);
        } else {
            let path = if at_home(line.path) { line.real_path } else { line.path };
            let folder = DiscoveredUserFolder { label, path: path.to_owned(), writable: line.writable, group };
            folders.push((line.real_path, folder));
        }
    }
    folders.into_iter().map(|(_, folder)| folder).collect()
}

/// An absolute path that can be shown and used unchanged: truncating or repairing it would name another folder.
fn is_usable_path(path: &str) -> bool {
    path.starts_with('/') && path.chars().count() <= MAX_VALUE_LEN && !path.contains(text::is_disruptive)
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder.trim_end_matches('/')).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}

/// The folders of a search path, without a truncated last one.
fn clean_search_path(value: &str) -> String {
    let value = text::sanitize(value, MAX_SEARCH_PATH_LEN);
    if value.chars().count() < MAX_SEARCH_PATH_LEN {
        return value;
    }
    value.rsplit_once(':').map(|(whole, _)| whole.to_owned()).unwrap_or_default()
}

/// The first word of `SSH_CONNECTION`: the address from which this connection comes.
fn parse_client_address(value: &str) -> Option<IpAddr> {
    let word = value.split_whitespace().next()?;
    let word = word.split_once('%').map_or(word, |(address, _zone)| address);
    word.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}
