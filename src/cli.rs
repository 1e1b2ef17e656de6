//! The command line: `serve`, and what an administrator does on the portal's own machine.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand};
use secrecy::SecretString;

use crate::app::{App, AppState};
use crate::clock::Clock;
use crate::config::Config;

/// Prints to standard output. Ignores a reader that closed the pipe.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod backup;
mod cluster;
mod doctor;
mod invite;
mod maintenance;
mod serve;
mod user;

/// Portolan: a web portal for your group's Slurm clusters.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct CliArgs {
    /// The configuration file. Without one, defaults and PORTOLAN_* variables are used.
    #[arg(long, global = true, env = "PORTOLAN_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Run the portal.
    Serve,
    /// Manage accounts: add, set password, disable, enable, list.
    #[command(subcommand)]
    User(user::UserSubcommand),
    /// Create an invitation link to a group.
    Invite(invite::InviteArgs),
    /// Manage clusters: add, change, list, export, remove.
    #[command(subcommand)]
    Cluster(cluster::ClusterSubcommand),
    /// Check this installation and explain what is wrong and how to fix it.
    Doctor(doctor::DoctorArgs),
    /// Write a consistent copy of the database, even while the portal is running.
    Backup(backup::BackupArgs),
    /// Restore a backup. The portal must be stopped.
    Restore(backup::RestoreArgs),
    /// Change the master key and re-encrypt every secret with the new one. The portal must be stopped.
    ///
    /// Passwords, one-time codes, recovery codes and SSH keys keep working. If the command is interrupted, the next
    /// start completes the change or says what to do.
    RotateMasterKey,
    /// Close the connections to clusters that a stopped portal left open for its next start.
    ///
    /// Use it before you reinstall or give away a machine. People then have to reconnect with their second factor.
    #[command(alias = "hang-up")]
    DisconnectAll,
}

/// Where a new password comes from.
#[derive(Debug, Args)]
struct PasswordSourceArgs {
    /// Read the password from the first line of standard input instead of asking twice on the terminal.
    #[arg(long)]
    password_stdin: bool,
}

/// Runs the chosen command.
pub fn run(cli: CliArgs) -> anyhow::Result<ExitCode> {
    forbid_core_dumps();
    restrict_umask();
    if let CliCommand::Doctor(args) = &cli.command {
        return build_runtime()?.block_on(doctor::run(cli.config.as_deref(), args));
    }
    let config = Config::load(cli.config.as_deref(), std::env::vars())?;
    let runtime = build_runtime()?;
    runtime.block_on(async {
        match cli.command {
            CliCommand::Serve => serve::run(config).await,
            CliCommand::User(command) => user::run(config, command).await,
            CliCommand::Invite(args) => invite::run(config, args).await,
            CliCommand::Cluster(command) => cluster::run(config, command).await,
            CliCommand::Backup(args) => backup::backup(config, args).await,
            CliCommand::Restore(args) => backup::restore(config, args).await,
            CliCommand::RotateMasterKey => maintenance::rotate_master_key(config).await,
            CliCommand::DisconnectAll => maintenance::close_connections(config).await,
            CliCommand::Doctor(_) => Ok(()),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn build_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("Couldn't start worker threads")
}

/// Memory holds keys and passwords: a crash must not write it to disk.
fn forbid_core_dumps() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
}

/// Everything that this program writes (database, key, backups) is private to its user.
fn restrict_umask() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Opens an existing installation: a command run without its settings must not create a new one.
async fn open_existing_app(config: Config) -> anyhow::Result<AppState> {
    require_installation(&config)?;
    open_app(config).await
}

fn require_installation(config: &Config) -> anyhow::Result<()> {
    let database = config.data_dir.join(crate::app::files::DATABASE);
    if !database.exists() {
        bail!(
            "There is no portal in {}. Specify its settings with --config FILE or PORTOLAN_DATA_DIR.",
            config.data_dir.display()
        );
    }
    Ok(())
}

/// Opens the installation, or creates it.
async fn open_app(config: Config) -> anyhow::Result<AppState> {
    App::open(config, Clock::system()).await
}

impl PasswordSourceArgs {
    fn read(&self) -> anyhow::Result<SecretString> {
        if self.password_stdin {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line)?;
            return Ok(SecretString::from(line.trim_end_matches(['\r', '\n']).to_owned()));
        }
        if !std::io::stdin().is_terminal() {
            bail!("There is no terminal to ask for the password. Pass it on standard input with --password-stdin.");
        }
        let first = rpassword::prompt_password("New password: ")?;
        let again = rpassword::prompt_password("Repeat password: ")?;
        if first != again {
            bail!("The two passwords don't match. Nothing was changed.");
        }
        Ok(SecretString::from(first))
    }
}
