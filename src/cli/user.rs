//! `portolan user`: accounts from the portal's own machine.

use std::io::{BufRead as _, IsTerminal as _};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};

use super::{PasswordSourceArgs, open_app, open_existing_app};
use crate::app::AppState;
use crate::auth::AuthError;
use crate::auth::activity::Actor;
use crate::auth::one_time_links::SignUpDetails;
use crate::auth::people::{AccountDeletionPreview, PortalAccountState};
use crate::config::Config;
use crate::domain::{DisplayName, GroupId, GroupRole, SignInName};
use crate::format;
use crate::store;

#[derive(Debug, Subcommand)]
pub(super) enum UserSubcommand {
    /// Add an account.
    Add(AddUserArgs),
    /// Set a new password. Signs the account out everywhere and deletes its SSH keys.
    Passwd {
        /// Their user name.
        name: SignInName,
        #[command(flatten)]
        password: PasswordSourceArgs,
    },
    /// Disable an account and sign it out everywhere.
    Disable {
        /// Their user name.
        name: SignInName,
    },
    /// Enable an account again.
    Enable {
        /// Their user name.
        name: SignInName,
    },
    /// Turn off someone's second factor after they lost their phone and recovery codes.
    SecondFactorOff {
        /// Their user name.
        name: SignInName,
    },
    /// Make someone an administrator of the portal, or remove their rights with --revoke.
    Admin {
        /// Their user name.
        name: SignInName,
        /// Remove their administrator rights.
        #[arg(long)]
        revoke: bool,
    },
    /// Delete an account for good. First lists what is deleted and what is kept.
    Delete {
        /// Their user name.
        name: SignInName,
        /// Delete it without asking.
        #[arg(long)]
        yes: bool,
    },
    /// List all accounts.
    List,
}

#[derive(Debug, Args)]
pub(super) struct AddUserArgs {
    /// Their user name.
    name: SignInName,
    /// The name that others see (default: the user name).
    #[arg(long)]
    display_name: Option<DisplayName>,
    /// Make them an administrator of the portal.
    #[arg(long)]
    admin: bool,
    /// The group they belong to; created if it doesn't exist.
    #[arg(long)]
    group: Option<DisplayName>,
    /// Their role in the group.
    #[arg(long, value_enum, default_value_t = GroupRoleArg::Member, requires = "group")]
    role: GroupRoleArg,
    #[command(flatten)]
    password: PasswordSourceArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum GroupRoleArg {
    /// Leads the group.
    Pi,
    /// Belongs to the group.
    Member,
}

impl From<GroupRoleArg> for GroupRole {
    fn from(role: GroupRoleArg) -> Self {
        match role {
            GroupRoleArg::Pi => Self::Pi,
            GroupRoleArg::Member => Self::Member,
        }
    }
}

pub(super) async fn run(config: Config, command: UserSubcommand) -> anyhow::Result<()> {
    let actor = Actor::command_line();
    // Adding an account may create the installation; all other commands need an existing one.
    let app = match &command {
        UserSubcommand::Add(_) => open_app(config).await?,
        _ => open_existing_app(config).await?,
    };
    match command {
        UserSubcommand::Add(args) => add_user(&app, args).await?,
        UserSubcommand::Passwd { name, password } => {
            let person = find_person(&app, &name).await?;
            let password = password.read()?;
            let keys = store::keys::list_for_person(&mut *app.store.read().await?, person.id).await?;
            app.auth.set_password(&actor, &name, &password).await.context("The password couldn't be changed")?;
            say!("Changed the password of {name} and signed them out everywhere.");
            if !keys.is_empty() {
                say!("Deleted their SSH keys, because only the old password could decrypt them.");
            }
        }
        UserSubcommand::Disable { name } => {
            let person = find_person(&app, &name).await?;
            explain_last_admin(
                &name,
                app.auth.set_account_state(&actor, person.id, PortalAccountState::Disabled).await,
            )?;
            say!("Disabled {name} and signed them out everywhere.");
        }
        UserSubcommand::Enable { name } => {
            let person = find_person(&app, &name).await?;
            app.auth.set_account_state(&actor, person.id, PortalAccountState::Active).await?;
            say!("{name} can sign in again.");
        }
        UserSubcommand::SecondFactorOff { name } => {
            let person = find_person(&app, &name).await?;
            app.auth.remove_second_factor(&actor, person.id).await?;
            say!("Turned off the second factor of {name}. They can now sign in with just their password.");
        }
        UserSubcommand::Admin { name, revoke } => {
            let person = find_person(&app, &name).await?;
            explain_last_admin(&name, app.auth.set_admin(&actor, person.id, !revoke).await)?;
            say!("{name} is {} an administrator.", if revoke { "no longer" } else { "now" });
        }
        UserSubcommand::Delete { name, yes } => delete_user(&app, &name, yes).await?,
        UserSubcommand::List => list_users(&app).await?,
    }
    Ok(())
}

async fn add_user(app: &AppState, args: AddUserArgs) -> anyhow::Result<()> {
    let display_name = match args.display_name {
        Some(name) => name,
        None => args.name.as_str().parse()?,
    };
    let new = SignUpDetails { name: args.name, display_name, password: args.password.read()? };
    crate::auth::password::check_rules(&new.password, &new.name)?;
    if app.auth.find_person(&new.name).await.is_ok() {
        bail!("An account called {} already exists. Nothing was changed.", new.name);
    }
    let membership = match &args.group {
        Some(group) => Some((find_or_create_group(app, group).await?, args.role.into())),
        None => None,
    };
    match app.auth.add_account(&Actor::command_line(), &new, args.admin, membership).await {
        Err(AuthError::NameTaken) => {
            bail!("An account called {} already exists. Nothing was changed.", new.name)
        }
        other => other?,
    };
    say!("{} can now sign in at {}", new.name, app.config.portal.public_url);
    Ok(())
}

async fn delete_user(app: &AppState, name: &SignInName, is_confirmed: bool) -> anyhow::Result<()> {
    let id = find_person(app, name).await?.id;
    let preview = app.auth.preview_deletion(id).await?;
    if preview.is_last_admin {
        bail!("{}", last_admin_words(name));
    }
    if !preview.led_alone.is_empty() {
        let groups: Vec<&str> = preview.led_alone.iter().map(|group| group.name.as_str()).collect();
        bail!(
            "{name} is the only PI of {}. A group with members needs a PI: change another member to PI in the portal first. Nothing was changed.",
            groups.join(", ")
        );
    }
    say!("{}", deletion_words(&preview));
    if !is_confirmed && !confirm(&format!("Delete the account {name}?"))? {
        bail!("Nothing was changed.");
    }
    explain_last_admin(name, app.auth.delete_account(&Actor::command_line(), id).await)?;
    say!("Deleted the account {name}.");
    Ok(())
}

/// What deleting an account deletes and keeps, as the page in the portal says it.
fn deletion_words(preview: &AccountDeletionPreview) -> String {
    let AccountDeletionPreview { person, belongings, .. } = preview;
    let line = |before: &str, number: i64, noun: &str, after: &str| match u64::try_from(number).unwrap_or_default() {
        0 => String::new(),
        number => format!("- {before}{}{after}\n", format::count(number, noun)),
    };
    let keys = " on this portal. Public keys on clusters stay until someone removes them there";
    let theirs = [
        line("", belongings.ssh_keys, "SSH key", keys),
        line("user names and connections for ", belongings.clusters, "cluster", ". Open connections are closed"),
        line("", belongings.jobs, "job", " of job history, with scripts and notifications"),
        line("", belongings.dashboards, "dashboard", ""),
        line("", belongings.guest_links, "guest link", ""),
        line("", belongings.recipes, "recipe", " that no group uses"),
    ]
    .concat();
    format!(
        "Deleted:
- the account {} ({}), its password, second factor and sessions
{theirs}- group memberships, usage alerts, the notification webhook, and open invitations and reset links
Kept:
- the activity log, with this person's user name
- the usage of their groups, under their user name on the cluster
- group recipes and frozen reports they created
- jobs and files on the clusters. The portal can no longer cancel these jobs
This can't be undone. To stop them from signing in without deleting anything: portolan user disable {}",
        person.name, person.display_name, person.name,
    )
}

/// Asks on the terminal; anything but `y` or `yes` is a no.
fn confirm(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("There is no terminal to confirm on. To go ahead, run this again with --yes. Nothing was changed.");
    }
    eprint!("{question} [y/N] ");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Finds the group by name, or creates it.
pub(super) async fn find_or_create_group(app: &AppState, name: &DisplayName) -> anyhow::Result<GroupId> {
    let found = store::groups::find_by_name(&mut *app.store.read().await?, name).await?;
    if let Some(group) = found {
        return Ok(group);
    }
    let group = app.auth.add_group(&Actor::command_line(), name, None).await?;
    eprintln!("Created the group {name}.");
    Ok(group)
}

async fn find_person(app: &AppState, name: &SignInName) -> anyhow::Result<store::people::Person> {
    match app.auth.find_person(name).await {
        Err(AuthError::NotFound) => {
            bail!("There is no account called {name}. See: portolan user list")
        }
        other => Ok(other?),
    }
}

fn explain_last_admin(name: &SignInName, result: Result<(), AuthError>) -> anyhow::Result<()> {
    match result {
        Err(AuthError::LastAdmin) => bail!("{}", last_admin_words(name)),
        other => Ok(other?),
    }
}

fn last_admin_words(name: &SignInName) -> String {
    format!(
        "{name} is the last administrator who can sign in. First make someone else an administrator: portolan user admin NAME"
    )
}

async fn list_users(app: &AppState) -> anyhow::Result<()> {
    let people = store::people::list(&mut *app.store.read().await?).await?;
    if people.is_empty() {
        say!("There are no accounts yet. Start the portal and open the setup link from its log.");
        return Ok(());
    }
    say!("{:<20} {:<14} {:<13} {:<30} Groups", "Name", "Status", "2nd factor", "Display name");
    for listed in people {
        let person = &listed.person;
        let state = match (person.is_disabled, person.is_admin) {
            (true, _) => "disabled",
            (false, true) => "administrator",
            (false, false) => "active",
        };
        let factor = if person.has_totp { "on" } else { "off" };
        say!("{:<20} {:<14} {:<13} {:<30} {}", person.name, state, factor, person.display_name, listed.groups);
    }
    Ok(())
}
