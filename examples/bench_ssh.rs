//! Timings for `script/bench ssh`: the pool against the bare library and `ssh -S`, over one connection.
//! Usage: `bench_ssh HOST PORT USER PRIVATE-KEY-FILE HOST-KEYS-FILE PORTOLAN-PROGRAM`

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use openssh::{Session, Stdio};
use portolan::ssh::host_keys::HostKey;
use portolan::ssh::login::{self, LoginAttendance, SshLoginRequest};
use portolan::ssh::route::{ConnectionFolder, SshRoute, SshRouteHost};
use portolan::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RemoteCommandMode, key_import};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Rounds of one command each; the three methods take turns, so that a busy moment affects all of them.
const ROUNDS: usize = 300;
/// `ssh -S` is slow, so it runs in fewer rounds.
const PROCESS_EVERY: usize = 3;
/// Concurrent callers, and how many commands they run in total.
const CALLERS: usize = 32;
const COMMANDS: usize = 640;
/// Concurrent sessions, for the pool and for the bare library: servers allow ten.
const SESSIONS: usize = 8;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, host, port, user, key, host_keys, program] = arguments.as_slice() else {
        anyhow::bail!("usage: bench_ssh HOST PORT USER KEY HOST-KEYS PROGRAM")
    };
    let run = temporary_folder()?;
    let target = SshRouteHost {
        host: host.parse()?,
        port: port.parse()?,
        host_keys: std::fs::read_to_string(host_keys)?.lines().filter_map(HostKey::parse).collect(),
    };
    let route = SshRoute { name: "bench".parse()?, user: user.parse()?, target, jump: None, takes_password: false };
    let key = key_import::import(&std::fs::read_to_string(key)?, None)?;
    let request = SshLoginRequest {
        folder: ConnectionFolder::new(&run, "bench"),
        route,
        keys: vec![key],
        askpass_program: PathBuf::from(program),
        timeout: Duration::from_secs(30),
        attendance: LoginAttendance::Unattended,
        cancel: CancellationToken::new(),
    };
    let opened = login::log_in(request, drop).await.map_err(|failed| anyhow::anyhow!("{}", failed.failure))?;
    let control = opened.master.folder().control_socket();
    let connection = ClusterConnection::new(opened.master, RemoteCommandMode::Bare, SESSIONS, u32::MAX);
    let result = measure(&connection, &control).await;
    connection.master().close().await;
    std::fs::remove_dir_all(run)?;
    result
}

async fn measure(connection: &Arc<ClusterConnection>, control: &Path) -> anyhow::Result<()> {
    let bare = Arc::new(Session::resume_mux(control.into(), None));
    let text = command().to_command_line(&RemoteCommandMode::Bare)?;
    let (mut pooled, mut library, mut process) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        pooled.push(timed(connection.run(command(), CallUrgency::Interactive)).await?);
        library.push(timed(run_bare(&bare, &text)).await?);
        if round % PROCESS_EVERY == 0 {
            process.push(timed(run_process(control, &text)).await?);
        }
    }
    print_figure("pooled_vs_bare", ratio(&mut pooled, &mut library), "<= 1.15");
    print_figure("pooled_vs_ssh_process", ratio(&mut pooled, &mut process), "<= 0.75");

    // Three runs each, taking turns; the best of each counts.
    let (mut pool_best, mut bare_best) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        pool_best = pool_best.min(seconds(throughput_of_pool(connection)).await?);
        bare_best = bare_best.min(seconds(throughput_of_library(&bare, &text)).await?);
    }
    print_figure("throughput_32_vs_bare", bare_best / pool_best, ">= 0.9");

    let before = connection.call_budget().stats(Instant::now()).commands;
    let callers = (0..100).map(|_| {
        let connection = connection.clone();
        tokio::spawn(async move {
            connection.run_shared(RemoteCommand::new("squeue").arg("--me"), CallUrgency::Interactive).await
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let made = (connection.call_budget().stats(Instant::now()).commands - before) as f64;
    print_figure("commands_for_100_equal_reads", made, "<= 1");
    Ok(())
}

fn command() -> RemoteCommand {
    RemoteCommand::new("true")
}

async fn run_bare(session: &Arc<Session>, text: &str) -> anyhow::Result<()> {
    let mut command = session.clone().arc_raw_command(text);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().await?;
    anyhow::ensure!(output.status.success(), "the bare command failed");
    Ok(())
}

async fn run_process(control: &Path, text: &str) -> anyhow::Result<()> {
    let output = tokio::process::Command::new("ssh")
        .args(["-F", "none", "-o", "BatchMode=yes", "-S"])
        .arg(control)
        .args(["none", text])
        .stdin(std::process::Stdio::null())
        .output()
        .await?;
    anyhow::ensure!(output.status.success(), "ssh -S failed");
    Ok(())
}

async fn throughput_of_pool(connection: &Arc<ClusterConnection>) -> anyhow::Result<()> {
    in_parallel(async |_| {
        let output = connection.run(command(), CallUrgency::Interactive).await.context("the pool")?;
        anyhow::ensure!(output.code == 0);
        Ok(())
    })
    .await?;
    anyhow::ensure!(connection.session_limit() == SESSIONS, "the server refused a session");
    Ok(())
}

async fn throughput_of_library(session: &Arc<Session>, text: &str) -> anyhow::Result<()> {
    let slots = Semaphore::new(SESSIONS);
    in_parallel(async |_| {
        let _slot = slots.acquire().await?;
        // The server still counts a session for a moment after it ends; the library leaves retrying to the caller.
        while let Err(error) = run_bare(session, text).await {
            anyhow::ensure!(format!("{error:?}").contains("refused"), "{error:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    })
    .await
}

/// Runs all commands from the concurrent callers.
async fn in_parallel(run: impl AsyncFn(usize) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let callers = (0..CALLERS).map(|caller| {
        let run = &run;
        async move {
            for number in (caller..COMMANDS).step_by(CALLERS) {
                run(number).await?;
            }
            anyhow::Ok(())
        }
    });
    futures_util::future::try_join_all(callers).await?;
    Ok(())
}

async fn timed<T, E>(work: impl Future<Output = Result<T, E>>) -> Result<f64, E> {
    let started = Instant::now();
    work.await?;
    Ok(started.elapsed().as_secs_f64())
}

async fn seconds(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<f64> {
    timed(work).await
}

fn ratio(ours: &mut [f64], reference: &mut [f64]) -> f64 {
    median(ours) / median(reference)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn print_figure(figure: &str, value: f64, limit: &str) {
    println!("{figure} {value:.3} {limit}");
}

fn temporary_folder() -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let folder = std::env::temp_dir().join(format!("portolan-bench-{}", std::process::id()));
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}
