//! Terminals over a real sshd: what is typed and printed, sizes, and what is left behind when they end.

use std::sync::Arc;

use portolan::ssh::ClusterConnection;
use portolan::ssh::terminal::{self, TerminalEnd, TerminalInput, TerminalOutput, TerminalProgram, TerminalSize};

use crate::folders::with_alice;
use crate::support::cluster::Cluster;
use crate::support::connections::run;
use crate::support::wait::wait_for;

/// A terminal without a page around it.
struct Shell {
    output: TerminalOutput,
    input: TerminalInput,
    seen: String,
}

impl Shell {
    async fn open(line: &Arc<ClusterConnection>) -> Self {
        let size = TerminalSize::clamped(80, 24);
        let (output, input) = terminal::open(line, &TerminalProgram::LoginShell, size).await.unwrap();
        Self { output, input, seen: String::new() }
    }

    async fn type_line(&mut self, line: &str) {
        self.input.write(format!("{line}\r").as_bytes()).await.unwrap();
    }

    /// Reads until the text appears after what was read before.
    async fn read_until(&mut self, text: &str) {
        let mut buffer = vec![0; 64 * 1024];
        while !self.seen.contains(text) {
            let count = self.output.read(&mut buffer).await;
            assert!(count > 0, "ended before {text:?}: {}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        self.seen.clear();
    }
}

#[tokio::test]
async fn shell_answers_and_follows_the_size() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let mut shell = Shell::open(&line).await;
    shell.type_line("echo sum=$((40+2))").await;
    shell.read_until("sum=42").await;
    shell.type_line("echo size=$(stty size)").await;
    shell.read_until("size=24 80").await;
    for (cols, rows) in [(200, 60), (20, 10)] {
        shell.input.resize(TerminalSize::clamped(cols, rows));
        shell
            .type_line(&format!("until [ \"$(stty size)\" = '{rows} {cols}' ]; do sleep 0.1; done; echo now=$((1+1))"))
            .await;
        shell.read_until("now=2").await;
    }
    shell.type_line("exit 3").await;
    let mut rest = vec![0; 4096];
    while shell.output.read(&mut rest).await > 0 {}
    assert_eq!(shell.output.ended().await, TerminalEnd::Exited(Some(3)));
}

#[tokio::test]
async fn closing_a_terminal_ends_its_programs() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let mut shell = Shell::open(&line).await;
    shell.type_line("sleep 86399").await;
    let running = || Cluster::get().count_processes("sleep 86399");
    wait_for("the program", async || if running() == 1 { Ok(()) } else { Err(running().to_string()) }).await;
    drop(shell);
    wait_for("its end", async || if running() == 0 { Ok(()) } else { Err(running().to_string()) }).await;
}

#[tokio::test]
async fn program_that_prints_without_end_holds_up_nobody() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let mut shell = Shell::open(&line).await;
    shell.type_line("yes filler").await;
    shell.read_until("filler\r\nfiller").await;
    // Nobody reads now.
    for _ in 0..20 {
        assert_eq!(run(&line, "echo", &["well"]).await.unwrap().stdout_text(), "well\n");
    }
    shell.input.write(b"\x03").await.unwrap();
    shell.type_line("echo sum=$((40+2))").await;
    shell.read_until("sum=42").await;
}

#[tokio::test]
async fn large_paste_arrives_whole() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let mut shell = Shell::open(&line).await;
    shell.type_line("stty -echo; echo re''ady; wc -c").await;
    shell.read_until("ready\r\n").await;
    let text = format!("{}\r", "x".repeat(63)).repeat(16 * 1024);
    let (input, output) = (&mut shell.input, &mut shell.output);
    let writing = async {
        input.write(text.as_bytes()).await.unwrap();
        input.write(b"\x04").await.unwrap();
    };
    let mut buffer = vec![0; 4096];
    let mut seen = String::new();
    let reading = async {
        while !seen.contains("1048576") {
            let count = output.read(&mut buffer).await;
            assert!(count > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    tokio::join!(writing, reading);
}

#[tokio::test]
async fn terminals_take_half_of_the_sessions() {
    let (portal, _, _alice) = with_alice().await;
    let line = portal.connection("alice", "key").await;
    let mut open = Vec::new();
    let size = TerminalSize::clamped(80, 24);
    let refused = loop {
        match terminal::open(&line, &TerminalProgram::LoginShell, size).await {
            Ok(parts) => open.push(parts),
            Err(error) => break error,
        }
    };
    assert_eq!((open.len(), refused), (line.session_limit() / 2, terminal::OpenTerminalError::NoFreeSession));
    assert_eq!(run(&line, "echo", &["well"]).await.unwrap().stdout_text(), "well\n");
    open.pop();
    wait_for("a free session", async || {
        terminal::open(&line, &TerminalProgram::LoginShell, size).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
}
