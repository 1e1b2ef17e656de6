//! Our own wrapper, run by bash with stand-ins for Slurm's programs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::*;

const ALLOWED: &str = "squeue --me -h -o %i|%T|%r
squeue --noheader --format=%i|%j --user=alice
sacct -P -n --format=JobID,State,ExitCode -S 2026-11-01T00:00:00 -j 123,124_5
sshare -l -A def-prof_gpu --parsable2 --noheader
sinfo -h -o %P|%a|%l|%D|%T|%c|%m|%G
sprio -h --job=5
sreport -P -n -t Hours cluster AccountUtilizationByUser start=2026-04-01
seff 123
sbatch --parsable --chdir=/scratch/alice/run --job-name=a_b --array=1-10%2 --export=ALL,X=1
scancel 123 124_7 --signal=TERM
scontrol show job 123
scontrol -o show nodes
scontrol show config
scontrol -o show partition
scontrol hold 123
scontrol release 123_4 5
scontrol requeue 9
sacctmgr -nP show assoc user=alice format=account,qos
sacctmgr show qos
diskusage_report
diskusage_report --per_user
dusage --no-colors
cost --details
projects
id -un
groups
echo ready
ls -la /scratch/alice
cat /scratch/alice/slurm-1.out
mkdir -p /scratch/alice/runs/a";

const REFUSED: &str = r#"bash
sh
rm x
/usr/bin/squeue
./squeue
FOO=1 sbatch
python3 x.py
env squeue
srun hostname
salloc
squeue; rm x
squeue;rm
squeue | sh
squeue|sh
squeue && rm x
squeue & rm x
squeue > x
squeue < x
echo $(rm x)
echo `rm x`
echo $HOME
echo ${HOME}
ls *
ls ?
ls [a-z]
ls {a,b}
ls ~
cat ../x
cat /a/../b
cat a/..
echo 'a b'
echo "a"
echo \a
echo !!
echo #x
echo é
cat
cat -
cat -A x
ls --color=auto x
mkdir x
mkdir -p
mkdir -p -m 777 x
mkdir -m 777 -p x
mkdir -pm777 x
squeue -i 1
squeue -hi1
squeue --iterate=1
squeue --it=1
sinfo -i5
sbatch --wrap=id
sbatch --wra=id
sbatch x.sh
sbatch -A def-x
scancel
scancel --user=alice
scancel -u alice
scancel --me
scancel -t RUNNING
scontrol
scontrol -o
scontrol shutdown
scontrol -o shutdown
scontrol reconfigure
scontrol update JobId=1 TimeLimit=1
scontrol hold
scontrol hold all
scontrol top 1
scontrol write batch_script 1
scontrol -M x shutdown
sacctmgr
sacctmgr -n
sacctmgr delete user alice
sacctmgr -i delete user alice
sacctmgr -n delete user show
sacctmgr modify user alice set x=1
seff
seff -h
seff 1 x"#;

/// A folder with stand-ins for every program, each printing its name and arguments, one per line, and then its input.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in SLURM_COMMANDS.iter().chain(OTHER_COMMANDS).copied().chain(["rm", "sh", "srun"]) {
            let path = folder.path().join(name);
            let body =
                format!("#!/bin/bash\nprintf '%s\\n' {name} \"$@\"\nIFS= read -r -d '' all\nprintf %s \"$all\"\n");
            fs::write(&path, body).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    fn command(&self, request: Option<&str>) -> Command {
        let mut command = Command::new("bash");
        command.arg(wrapper()).env_clear().current_dir(self.0.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.0.path().display()));
        if let Some(request) = request {
            command.env("SSH_ORIGINAL_COMMAND", request);
        }
        command
    }

    fn run(&self, request: Option<&str>, input: &str) -> Output {
        let given = self.0.path().join("input");
        fs::write(&given, input).unwrap();
        self.command(request).stdin(fs::File::open(given).unwrap()).output().unwrap()
    }
}

fn wrapper() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("automation/portolan-commands")
}

#[test]
fn the_wrapper_starts_what_is_on_its_list() {
    let bench = Bench::new();
    for request in ALLOWED.lines() {
        let output = bench.run(Some(request), "#!/bin/bash\nsrun true\n");
        let printed = String::from_utf8(output.stdout).unwrap();
        let expected = format!("{}\n#!/bin/bash\nsrun true\n", request.replace(' ', "\n"));
        assert_eq!(printed, expected, "{request}");
    }
}

#[test]
fn the_wrapper_refuses_everything_else() {
    let bench = Bench::new();
    let long = format!("rm {}", "a".repeat(5000));
    let special = ["", " ", "echo a\nrm x", "echo a\rrm x", "echo\tx", &long];
    for request in REFUSED.lines().chain(special) {
        let output = bench.run(Some(request), "");
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.starts_with("Command rejected by portolan-commands: "), "{request:?}: {printed}");
        assert!(printed.starts_with("Command rejected by portolan-commands: "), "{request:?}");
        assert_eq!(output.status.code(), Some(126), "{request:?}");
        assert!(printed.lines().count() == 1 && printed.len() < 260, "{request:?}: {printed}");
    }
    assert_eq!(bench.run(None, "rm x").status.code(), Some(126), "no terminal");
}

#[test]
fn the_wrapper_gives_file_transfer() {
    let folders = ["libexec/openssh", "lib/openssh", "lib/ssh", "libexec"];
    if !folders.iter().any(|folder| Path::new(&format!("/usr/{folder}/sftp-server")).exists()) {
        return;
    }
    let bench = Bench::new();
    for request in ["/usr/libexec/openssh/sftp-server", "internal-sftp", "/x/sftp-server -l INFO"] {
        let mut child = bench.command(Some(request)).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // SFTP's init message: five bytes follow, type 1, version 3. A server answers with type 2.
        child.stdin.as_mut().unwrap().write_all(&[0, 0, 0, 5, 1, 0, 0, 0, 3]).unwrap();
        let mut answer = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
        assert_eq!(answer[4], 2, "{request}");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn slurm_is_asked_in_its_own_format() {
    let bench = Bench::new();
    let show = bench.0.path().join("squeue");
    fs::write(&show, "#!/bin/bash\necho ${SQUEUE_FORMAT-none} $SLURM_TIME_FORMAT\n").unwrap();
    let output = bench.command(Some("squeue --me")).env("SQUEUE_FORMAT", "%.15i").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "none standard\n");
}

#[test]
fn the_list_is_the_wrappers_own() {
    let cases = WRAPPER_SCRIPT.split("\ncase $program in\n").nth(1).unwrap().split("\nesac\n").next().unwrap();
    let mut named: Vec<&str> = Vec::new();
    for line in cases.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        if let Some((names, _)) = line.trim().split_once(')') {
            named.extend(names.split('|').map(str::trim).filter(|n| !n.contains(['*', '#', '-', ' '])));
        }
    }
    let mut ours = [SLURM_COMMANDS, OTHER_COMMANDS].concat();
    named.sort_unstable();
    ours.sort_unstable();
    assert_eq!(named, ours);
}
