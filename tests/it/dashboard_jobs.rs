//! Boards on the real cluster: jobs that make their environment from nothing, serve a real `TensorBoard` or `MLflow` to the
//! portal and to nobody else, mend what is broken, and end when they are told to.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::Arc;

use portolan::cluster::output_file::{self, OutputFilePosition, OutputFileResult};
use portolan::dashboards::handshake::{DashboardSecret, authenticate};
use portolan::dashboards::job::{LaunchPlan, build_request, render_script};
use portolan::dashboards::job_report::{
    DashboardEndpoint, DashboardReport, DashboardStage, MAX_REPORT_LEN, REPORT_FILE,
};
use portolan::dashboards::{DashboardKind, read_only};
use portolan::jobs::submissions::SubmissionState;
use portolan::sites::{self, Site, SiteLookupResult};
use portolan::ssh::{CallUrgency, ClusterConnection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::queue::{cancel, connected};
use crate::support::cluster::Cluster;
use crate::support::wait::wait_for;
use crate::support::{TestApp, snapshots_in};

/// Whose boards these are. Nobody else's test makes environments, which takes a minute.
const OWNER: &str = "carol";
const BASE: &str = "/home/carol/.portolan";

fn demo() -> &'static Site {
    match sites::find_site("demo") {
        SiteLookupResult::Site(site) => site,
        other => panic!("{other:?}"),
    }
}

fn exec(user: &str, command: &str) -> Output {
    Cluster::get().script(&["exec", "--as", user, "bash", "-c", command])
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// The owner's portal and connection.
struct Story {
    portal: TestApp,
    line: Arc<ClusterConnection>,
    kind: DashboardKind,
    places: Vec<String>,
}

/// One run of a board.
struct Run {
    folder: String,
    job: u64,
}

impl Story {
    /// A portal for the owner, whose training has left something to look at.
    async fn begin(kind: DashboardKind) -> Self {
        let (portal, _, _) = connected(OWNER).await;
        let line = portal.connection(OWNER, "key").await;
        let at = format!("/scratch/{OWNER}/boards test/{kind}");
        let train = format!(
            "rm -rf '{at}' {BASE}/env/{kind}-* {BASE}/boards/{kind}-*; source /etc/profile; module load python scipy-stack; \
             cd /tmp; for seed in 1 2; do python3 /project/examples/train.py --epochs 6 --seed $seed \
             --logdir '{at}/a,b:'$seed/moons --mlruns '{at}/ml#runs' || true; done; find '{at}' -type f | wc -l"
        );
        let trained = exec(OWNER, &train);
        assert!(said(&trained).contains("epoch   6"), "{}", said(&trained));
        let places = match kind {
            DashboardKind::TensorBoard => vec![format!("{at}/a,b:1"), format!("{at}/a,b:2")],
            DashboardKind::Mlflow => vec![format!("{at}/ml#runs")],
        };
        Self { portal, line, kind, places }
    }

    fn script(&self, folder: &str) -> String {
        let request = build_request(self.kind, 30, None, None, demo());
        let places = &self.places;
        let plan = LaunchPlan { kind: self.kind, places, folder, base: BASE, site: demo(), request };
        // A dead job's lock is taken over soon.
        let text = render_script(&plan).unwrap();
        assert!(text.contains("\nstale_after=60\n"));
        text.replace("\nstale_after=60\n", "\nstale_after=8\n")
    }

    /// Hands a run over, as the portal does.
    async fn start(&self, name: &str) -> Run {
        let folder = format!("{BASE}/boards/{}-{name}", self.kind);
        let mut order = self.portal.order(OWNER, "key", &self.script(&folder)).await;
        self.kind.job_name().clone_into(&mut order.job_name);
        order.folders = vec![folder.clone()];
        let one = self.portal.settled(self.portal.submit(&order).await).await;
        assert_eq!(one.state, SubmissionState::Accepted, "{one:?}");
        Run { folder, job: u64::try_from(one.number.unwrap()).unwrap() }
    }

    async fn file(&self, run: &Run, name: &str) -> Vec<u8> {
        let path = format!("{}/{name}", run.folder);
        let most = u32::try_from(MAX_REPORT_LEN).unwrap();
        match output_file::read_output_file(&self.line, &path, OutputFilePosition::End, most, CallUrgency::Interactive)
            .await
            .unwrap()
        {
            OutputFileResult::Chunk(piece) => piece.bytes,
            _ => Vec::new(),
        }
    }

    async fn log(&self, run: &Run) -> String {
        let bytes = self.file(run, &format!("job-{}.out", run.job)).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until a run has told of a stage.
    async fn wait(&self, run: &Run, what: &str, holds: impl Fn(&DashboardStage) -> bool) -> DashboardReport {
        wait_for(what, async || {
            let report = DashboardReport::parse(&self.file(run, REPORT_FILE).await).ok();
            match report {
                Some(report) if holds(&report.stage) => Ok(report),
                Some(DashboardReport { stage: DashboardStage::Failed, message, .. }) => {
                    panic!("{message}\n{}", self.log(run).await)
                }
                _ => Err(self.log(run).await),
            }
        })
        .await
    }

    async fn ready(&self, run: &Run) -> DashboardEndpoint {
        let report = self.wait(run, "ready", |stage| matches!(stage, DashboardStage::Ready(_))).await;
        assert!(report.versions.contains_key(self.kind.as_str()), "{report:?}");
        match report.stage {
            DashboardStage::Ready(door) => door,
            other => panic!("{other:?}"),
        }
    }

    /// Stops runs as people do, and waits until they have said goodbye.
    async fn stop(&self, runs: &[&Run]) {
        let jobs: Vec<String> = runs.iter().map(|run| run.job.to_string()).collect();
        cancel(OWNER, &jobs.join(" "));
        for run in runs {
            self.wait(run, "ended", |stage| matches!(stage, DashboardStage::Ended)).await;
        }
    }

    /// A connection to a board through the owner's own, ready for HTTP.
    async fn dial(&self, node: &str, door: &DashboardEndpoint) -> UnixStream {
        let path = self.line.forward("board-1", node, door.port).await.unwrap();
        let mut stream = UnixStream::connect(path).await.unwrap();
        authenticate(&mut stream, &door.secret, portolan::entropy::random_bytes().unwrap()).await.unwrap();
        stream
    }

    /// What a board answers through the owner's connection.
    async fn ask(&self, node: &str, door: &DashboardEndpoint, request: &str) -> String {
        let mut stream = self.dial(node, door).await;
        let text = request.replacen('\n', " HTTP/1.0\nHost: localhost\n", 1).replace('\n', "\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        String::from_utf8_lossy(&all).into_owned()
    }
}

/// The node that Slurm says a job runs on.
fn node(run: &Run) -> String {
    let told = exec(OWNER, &format!("squeue -h -j {} -o %N", run.job));
    said(&told).trim().to_owned()
}

/// Another person of the cluster, on the board's own node, gets nothing of it.
fn nobody_else_gets_in(run: &Run, node: &str, door: &DashboardEndpoint, secret: &str) {
    let code = format!(
        "import socket, subprocess\n\
         for words in (b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n', b'PORTOLAN1 ' + b'0' * 64 + b'\\n' + b'1' * 64 + b'\\n'):\n\
        \x20   s = socket.create_connection(('{node}', {port}), 5)\n\
        \x20   s.sendall(words)\n\
        \x20   got = b''\n\
        \x20   try:\n\
        \x20       while True:\n\
        \x20           piece = s.recv(4096)\n\
        \x20           if not piece: break\n\
        \x20           got += piece\n\
        \x20   except ConnectionError: pass\n\
        \x20   print('GOT', len(got), b'HTTP' in got)\n\
         print(subprocess.run(['cat', '{folder}/state.json'], capture_output=True, text=True).stderr)\n\
         print(subprocess.run(['ps', '-eo', 'args'], capture_output=True, text=True).stdout)\n\
         print(subprocess.run('cat /proc/[0-9]*/environ', shell=True, capture_output=True, text=True, errors='replace').stdout)\n",
        port = door.port,
        folder = run.folder,
    );
    let told = Cluster::get().script(&[
        "exec",
        "--as",
        "bob",
        "srun",
        "-w",
        node,
        "--mem=100",
        "-t",
        "2",
        "python3",
        "-c",
        &code,
    ]);
    let told = said(&told);
    // The one who knows how to begin gets the board's own proof, which is worth nothing to him, and no HTTP.
    assert!(told.contains("GOT 0 False\nGOT 130 False\n"), "{told}");
    assert!(told.contains("Permission denied") && told.contains("server.py plan.json"), "{told}");
    assert!(!told.contains(secret), "the secret is in a command line or an environment");
}

/// The secret as the file has it; only root and its owner can look.
fn secret_of(run: &Run) -> String {
    let told = exec(OWNER, &format!("cat {}/state.json; stat -c %a {0} {0}/state.json", run.folder));
    let text = said(&told);
    assert!(text.ends_with("700\n600\n"), "{text}");
    let value: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let secret = value["secret"].as_str().unwrap().to_owned();
    assert!(DashboardSecret::from_hex(&secret).is_some());
    secret
}

/// A board listens on one port, and none of its processes on another.
fn listens_once(door: &DashboardEndpoint) {
    let told = Cluster::get().script(&["exec", "ss", "-ltnpH"]);
    let all = said(&told);
    let mine = all.lines().find(|line| line.contains(&format!(":{} ", door.port)));
    let mine = mine.unwrap_or_else(|| panic!("{all}"));
    assert!(!mine.contains("0.0.0.0:") || mine.contains("127.77."), "{mine}");
    let pid = mine.split("pid=").nth(1).unwrap().split(',').next().unwrap();
    let same = all.lines().filter(|line| line.contains(&format!("pid={pid},"))).count();
    assert_eq!(same, 1, "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tensorboard_job_installs_serves_and_stops() {
    let story = Story::begin(DashboardKind::TensorBoard).await;
    // Someone's power failed: half an environment, a draft of one, and the lock of a job that is no more.
    let probe = story.script(&format!("{BASE}/boards/tensorboard-a"));
    let name = probe.lines().find_map(|line| line.strip_prefix("name=")).unwrap();
    let half = format!(
        "cd {BASE}/env 2>/dev/null || {{ mkdir -p {BASE}/env && cd {BASE}/env; }}; e={name}-$(uname -m); \
         mkdir -p $e/bin $e.new-1/lib $e.lock; echo 'exit 1' > $e/bin/python; echo 1 > $e.lock/beat"
    );
    assert!(exec(OWNER, &half).status.success());
    let (one, two) = tokio::join!(story.start("a"), story.start("b"));
    let (door, other) = (story.ready(&one).await, story.ready(&two).await);
    let logs = story.log(&one).await + &story.log(&two).await;
    assert_eq!(logs.matches("The environment is ready.").count(), 1, "{logs}");
    let left = said(&exec(OWNER, &format!("ls {BASE}/env | grep tensorboard")));
    assert_eq!(left.lines().count(), 1, "{left}");
    assert_ne!(secret_of(&one), secret_of(&two));

    let node_one = node(&one);
    let runs = story.ask(&node_one, &door, "GET /data/runs\n\n").await;
    assert!(runs.contains("200 OK") && runs.contains("a_b_1/moons"), "{runs}");
    let tags = story.ask(&node_one, &door, "GET /data/plugin/scalars/tags\n\n").await;
    assert!(tags.contains("loss/train") && tags.contains("accuracy"), "{tags}");
    assert!(read_only::is_allowed(DashboardKind::TensorBoard, "GET", "/data/plugin/scalars/tags"));
    let page = story.ask(&node(&two), &other, "GET /\n\n").await;
    assert!(page.contains("<title>TensorBoard</title>"), "{page}");
    // The other run's secret opens nothing here, and a way that was closed leads nowhere.
    let path = story.line.forward("board-2", &node_one, door.port).await.unwrap();
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let error = authenticate(&mut stream, &other.secret, [3; 32]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    story.line.close_forward("board-2", &node_one, door.port).await.unwrap();
    story.line.close_forward("board-2", &node_one, door.port).await.unwrap();
    assert!(UnixStream::connect(&path).await.is_err() && !path.exists());
    nobody_else_gets_in(&one, &node_one, &door, &secret_of(&one));
    listens_once(&door);
    assert!(!logs.contains(&secret_of(&one)));
    story.stop(&[&one, &two]).await;
    // Nobody answers any more, and that is noticed.
    let path = story.line.forward("board-1", &node_one, door.port).await.unwrap();
    let mut stream = UnixStream::connect(&path).await.unwrap();
    assert!(authenticate(&mut stream, &door.secret, [4; 32]).await.is_err());

    // A cleaner has passed: some of the files are gone.
    assert!(
        exec(OWNER, &format!("rm -r {BASE}/env/tensorboard-*/lib/python*/site-packages/werkzeug")).status.success()
    );
    let three = story.start("c").await;
    let door = story.ready(&three).await;
    let log = story.log(&three).await;
    assert!(log.contains("The environment is broken. Rebuilding it."), "{log}");
    let runs = story.ask(&node(&three), &door, "GET /data/runs\n\n").await;
    assert!(runs.contains("a_b_2/moons"), "{runs}");
    // The same folder at the same time tomorrow: an environment that is good is used as it is.
    let four = story.start("d").await;
    story.ready(&four).await;
    assert!(!story.log(&four).await.contains("Building"), "{}", story.log(&four).await);
    story.stop(&[&three, &four]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mlflow_job_installs_serves_and_stops() {
    let story = Story::begin(DashboardKind::Mlflow).await;
    let run = story.start("a").await;
    let door = story.ready(&run).await;
    let node = node(&run);
    let page = story.ask(&node, &door, "GET /\n\n").await;
    assert!(page.contains("<title>MLflow</title>"), "{page}");
    let search = "POST /ajax-api/2.0/mlflow/runs/search\nContent-Type: application/json\nContent-Length: 24\n\n{\"experiment_ids\":[\"1\"]}";
    let runs = story.ask(&node, &door, search).await;
    let body: serde_json::Value = serde_json::from_str(runs.split_once("\r\n\r\n").unwrap().1).unwrap();
    let found = body["runs"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{body}");
    assert_eq!(found[0]["info"]["run_name"], "moons");
    assert!(found[0]["data"]["metrics"].to_string().contains("loss_test"), "{body}");
    let id = found[0]["info"]["run_id"].as_str().unwrap();
    let weights = story.ask(&node, &door, &format!("GET /get-artifact?path=weights.txt&run_id={id}\n\n")).await;
    assert!(weights.contains("200 OK") && weights.contains("[["), "{weights}");
    nobody_else_gets_in(&run, &node, &door, &secret_of(&run));
    listens_once(&door);
    story.stop(&[&run]).await;
}

fn script_at(kind: DashboardKind, site: &Site) -> String {
    let places = ["/scratch/a b/it's".to_owned()];
    let request = build_request(kind, 60, Some("def-smith"), None, site);
    let (folder, base) = ("/h/.portolan/boards/a", "/h/.portolan");
    render_script(&LaunchPlan { kind, places: &places, folder, base, site, request }).unwrap()
}

/// The scripts word for word: one where a wheelhouse has the packages, one where they come from the network.
#[test]
fn dashboard_scripts_read_as_recorded() {
    let wheelhouse = sites::presets().iter().find(|site| site.jobs.wheelhouse).unwrap();
    let network = sites::presets().iter().find(|site| !site.jobs.wheelhouse).unwrap();
    let _settings = snapshots_in("dashboard_jobs");
    for (kind, site) in [(DashboardKind::TensorBoard, wheelhouse), (DashboardKind::Mlflow, network)] {
        insta::assert_snapshot!(kind.to_string(), without_files(&script_at(kind, site)));
    }
}

/// Without the text of the files that it writes, which are files of ours.
fn without_files(script: &str) -> String {
    let mut is_inside = false;
    let mut kept = String::new();
    for line in script.lines() {
        is_inside &= line != "END_OF_THE_FILE";
        if !is_inside {
            kept.extend([line, "\n"]);
        }
        is_inside |= line.ends_with("<<'END_OF_THE_FILE'");
    }
    kept
}

/// Every script that a site's preset gives is good bash. Few of them differ in anything but names and numbers.
#[test]
fn dashboard_scripts_of_every_site_are_valid_bash() {
    let folder = tempfile::tempdir().unwrap();
    let mut different = BTreeMap::new();
    for site in sites::presets() {
        for kind in DashboardKind::ALL {
            let name = format!("{kind}-{}", site.name.as_str());
            let text = script_at(kind, site);
            assert!(text.starts_with("#!/bin/bash\n#SBATCH --job-name=dashboard-"), "{text}");
            std::fs::write(folder.path().join(&name), text).unwrap();
            let jobs = &site.jobs;
            different.insert((jobs.wheelhouse, jobs.containers_only, jobs.proxy.is_some()), name);
        }
    }
    let read = "for script in *; do bash -n \"$script\" || exit 1; done";
    let done = Command::new("bash").args(["-c", read]).current_dir(folder.path()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let done = Command::new("shellcheck")
        .args(["--severity=warning", "--exclude=SC1090,SC1091", "--format=gcc"])
        .args(different.values())
        .current_dir(folder.path())
        .output()
        .expect("shellcheck is installed by script/test");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
