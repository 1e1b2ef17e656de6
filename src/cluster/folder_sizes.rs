//! What takes the space in a folder: its largest subfolders by size and by number of files, and files that the centre
//! will delete soon. Measured on the cluster at the lowest priority, within limits of time and output. Names are bytes
//! that travel on standard input and come back NUL-terminated.

mod report;

use std::sync::Arc;
use std::time::Duration;

pub use self::report::{AgingFile, AgingFiles, FolderSizeReport, MeasuredFolder};
use crate::domain::RemotePath;
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

/// A little more than the limits of the script's parts together.
const MEASURE_DEADLINE: Duration = Duration::from_mins(10);
/// Files are listed this many days before the centre deletes them.
pub const PURGE_WARNING_DAYS: u16 = 14;
/// The limit of each part of the output, as the script applies it.
const MAX_SECTION_BYTES: usize = 1_500_000;
/// The number that the script puts before a note, so that it is sorted before all sizes.
const NOTE_NUMBER: &[u8] = b"99999999999999999999";

/// `$1` is the folder, `$2` the age in days that files must exceed to be listed (negative: none are). It prints records
/// that end with NUL: headings without a number, and numbers followed by a path. Sizes are what quotas count: blocks on
/// the disk. Each part has its own limit of time; what it found by then counts. `xargs` hands over the arguments, so
/// that they can contain any byte.
const MEASURE_SCRIPT: &str = "d=$1; n=$2; export LC_ALL=C; i=; \
if command -v ionice >/dev/null 2>&1; then i='ionice -t -c 3'; fi; k=99999999999999999999; \
g() { s=$1; shift; timeout $s nice -n 19 $i \"$@\" 2>/dev/null; \
case $? in 0) ;; 124) printf '%s\\ttime\\0' $k;; *) printf '%s\\tdenied\\0' $k;; esac; }; \
if [ ! -d \"$d\" ]; then printf 'missing\\0'; exit 0; fi; \
if [ ! -r \"$d\" ] || [ ! -x \"$d\" ]; then printf 'denied\\0'; exit 0; fi; \
printf 'sizes\\0'; g 300 du -0 -k -x -D --max-depth=2 -- \"$d\" | sort -z -k1,1nr | head -c 1500000; \
printf '\\0files\\0'; g 120 du -0 --inodes -x -D --max-depth=2 -- \"$d\" | sort -z -k1,1nr | head -c 1500000; \
if [ \"$n\" -ge 0 ]; then k=0; printf '\\0old\\0'; \
g 120 find -H \"$d\" -xdev -type f -atime +\"$n\" -mtime +\"$n\" -printf '%A@\\t%T@\\t%s\\t%p\\0' \
| sort -z -k1,1n | head -c 1500000; fi; printf '\\0end\\0'";

/// Why a folder could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FolderSizeError {
    #[error("This folder doesn't exist.")]
    NotFound,
    #[error("You don't have permission to read this folder.")]
    PermissionDenied,
    /// Not even the first subfolder was finished.
    #[error("Measuring took longer than 5 minutes and was stopped. Try again when the cluster's disks are less busy.")]
    TooSlow,
    #[error("The cluster didn't report any sizes. Try again later.")]
    NoSizes,
    #[error(transparent)]
    Run(#[from] RunCommandError),
}

/// Measures a folder. `purge_days`: after how many days without use the centre deletes files there.
pub async fn measure(
    connection: &Arc<ClusterConnection>,
    folder: &RemotePath,
    purge_days: Option<u16>,
) -> Result<FolderSizeReport, FolderSizeError> {
    let command = RemoteCommand::new("xargs")
        .args(["-0", "-r", "-n", "2", "sh", "-c", MEASURE_SCRIPT, "sh"])
        .input(measure_input(folder, purge_days))
        .with_deadline(MEASURE_DEADLINE);
    let output = connection.run(command, CallUrgency::Background).await?;
    FolderSizeReport::parse(folder, purge_days.map(aging_after), &output.stdout)
}

/// From which age files are listed, in days.
const fn aging_after(purge_days: u16) -> u16 {
    purge_days.saturating_sub(PURGE_WARNING_DAYS)
}

fn measure_input(folder: &RemotePath, purge_days: Option<u16>) -> Vec<u8> {
    // `find` counts whole days: +45 means 46 days or more.
    let age = purge_days.map_or(-1, |days| (i32::from(aging_after(days)) - 1).max(0));
    let mut input = folder.as_bytes().to_vec();
    input.extend(format!("\0{age}\0").bytes());
    input
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::ssh::RemoteCommandMode;

    /// Runs the script on this machine.
    fn measure_here(folder: &Path, purge_days: Option<u16>) -> Result<FolderSizeReport, FolderSizeError> {
        let folder = RemotePath::parse(folder.as_os_str().as_bytes()).unwrap();
        let mut child = Command::new("xargs")
            .args(["-0", "-r", "-n", "2", "sh", "-c", MEASURE_SCRIPT, "sh"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&measure_input(&folder, purge_days)).unwrap();
        let output = child.wait_with_output().unwrap();
        FolderSizeReport::parse(&folder, purge_days.map(aging_after), &output.stdout)
    }

    fn name(bytes: &[u8]) -> &std::ffi::OsStr {
        std::ffi::OsStr::from_bytes(bytes)
    }

    #[test]
    fn folders_with_any_name_are_measured() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join(name(b"-rf \n\xff $(id)"));
        let hostile: [&[u8]; 5] = [b"a\nb", b"\xff\xfe", b"<b>\t9", b"99\t", b"-x 'q' \\"];
        for (number, one) in hostile.iter().enumerate() {
            let inner = top.join(name(one)).join(name(b"in\nside"));
            std::fs::create_dir_all(&inner).unwrap();
            std::fs::write(inner.join("data"), vec![1; 200_000 * (number + 1)]).unwrap();
        }
        std::fs::write(top.join("loose"), vec![1; 50_000]).unwrap();
        std::os::unix::fs::symlink("/usr", top.join("link")).unwrap();
        let report = measure_here(&top, None).unwrap();
        let path = RemotePath::parse(top.as_os_str().as_bytes()).unwrap();
        for (number, one) in hostile.iter().enumerate() {
            let parent = path.join(&crate::domain::RemoteName::parse(one).unwrap());
            let found = report.folders.iter().find(|folder| folder.path == parent).unwrap();
            let expected = 200_000 * (number as u64 + 1);
            assert!(found.bytes >= expected && found.bytes < expected + 100_000, "{found:?}");
            assert_eq!(found.files, Some(3), "the folder, the one in it, and its file");
            assert!(report.folders.iter().any(|inner| inner.path.parent().as_ref() == Some(&parent)));
        }
        assert_eq!(report.folders.len(), 10, "{report:#?}");
        assert!(report.total_bytes.unwrap() >= 3_050_000 && report.total_bytes.unwrap() < 4_000_000);
        assert_eq!(report.total_files, Some(18));
        assert!(!report.is_partial && !report.has_unreadable && report.aging.is_none());
        assert!(report.folders.is_sorted_by_key(|folder| std::cmp::Reverse(folder.bytes)));
    }

    #[test]
    fn a_link_to_the_folder_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("real/sub")).unwrap();
        std::fs::write(dir.path().join("real/sub/data"), vec![1; 100_000]).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("real", &link).unwrap();
        let report = measure_here(&link, Some(60)).unwrap();
        assert!(report.folders[0].path.to_string().ends_with("/link/sub") && report.folders[0].bytes >= 100_000);
        assert_eq!(report.aging, Some(AgingFiles { after_days: 46, ..AgingFiles::default() }));
    }

    #[test]
    fn old_files_are_listed_before_they_are_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let day = Duration::from_hours(24);
        let write = |file: &[u8], days: u32| {
            let path = dir.path().join(name(file));
            std::fs::write(&path, b"12345").unwrap();
            let at = std::fs::metadata(&path).unwrap().modified().unwrap() - day * days;
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_times(std::fs::FileTimes::new().set_accessed(at).set_modified(at)).unwrap();
        };
        write(b"new", 45);
        write(b"old\n\xff", 47);
        write(b"older", 300);
        let aging = measure_here(dir.path(), Some(60)).unwrap().aging.unwrap();
        let names: Vec<_> = aging.files.iter().map(|file| file.path.name().unwrap().as_bytes().to_vec()).collect();
        assert_eq!(names, [b"older".to_vec(), b"old\n\xff".to_vec()], "the oldest first");
        assert_eq!((aging.files[0].bytes, aging.has_more, aging.is_partial), (5, false, false));
        assert!(aging.files[0].last_used < aging.files[1].last_used);
        assert_eq!(measure_here(dir.path(), Some(7)).unwrap().aging.unwrap().files.len(), 3, "at least a day old");
    }

    #[test]
    fn folders_that_are_not_there() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(measure_here(&dir.path().join("none"), None), Err(FolderSizeError::NotFound));
        std::fs::write(dir.path().join("file"), b"").unwrap();
        assert_eq!(measure_here(&dir.path().join("file"), None), Err(FolderSizeError::NotFound));
    }

    #[test]
    fn script_survives_every_shell() {
        let command = RemoteCommand::new("xargs").args(["-0", "-r", "-n", "2", "sh", "-c", MEASURE_SCRIPT, "sh"]);
        let line = command.to_command_line(&RemoteCommandMode::Bare).unwrap();
        for shell in ["/bin/sh", "/bin/bash", "/bin/tcsh", "/usr/bin/fish"] {
            if !Path::new(shell).exists() {
                continue;
            }
            let dir = tempfile::tempdir().unwrap();
            let folder = RemotePath::parse(dir.path().as_os_str().as_bytes()).unwrap();
            let mut child =
                Command::new(shell).args(["-c", &line]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(&measure_input(&folder, Some(60))).unwrap();
            let output = child.wait_with_output().unwrap().stdout;
            let output = output.strip_prefix(b"::portolan::\n").unwrap();
            let report = FolderSizeReport::parse(&folder, Some(46), output).unwrap();
            assert_eq!((report.folders.len(), report.total_files), (0, Some(1)), "{shell}");
        }
    }
}
