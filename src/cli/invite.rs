//! `portolan invite`: an invitation link from the portal's own machine.

use clap::Args;

use super::open_existing;
use super::user::{RoleArg, group_named};
use crate::auth::activity::Actor;
use crate::auth::links::INVITATION_DAYS_MOST;
use crate::config::Config;
use crate::domain::Label;

#[derive(Debug, Args)]
pub(super) struct InviteArgs {
    /// The group they are invited into; it is created if it does not exist.
    #[arg(long)]
    group: Label,
    /// What they will be in the group.
    #[arg(long, value_enum, default_value_t = RoleArg::Member)]
    role: RoleArg,
    /// Who it is for: a note for the list of invitations.
    #[arg(long = "for", value_name = "WHO")]
    label: Option<Label>,
    /// Days the link works.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(i64).range(1..=INVITATION_DAYS_MOST))]
    days: i64,
}

pub(super) async fn run(config: Config, args: InviteArgs) -> anyhow::Result<()> {
    let app = open_existing(config).await?;
    let group = group_named(&app, &args.group).await?;
    let label = args.label.as_ref().map_or("", Label::as_str);
    let token = app
        .auth
        .invite(&Actor::command_line(), (group, args.role.into()), label, args.days)
        .await?;
    say!("{}", app.config.portal.public_url.join(&format!("/join/{}", token.as_str())));
    eprintln!("The link works once, for {} days.", args.days);
    Ok(())
}
