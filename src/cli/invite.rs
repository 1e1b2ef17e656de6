//! `portolan invite`: an invitation link from the portal's own machine.

use clap::Args;

use super::open_existing_app;
use super::user::{GroupRoleArg, find_or_create_group};
use crate::auth::activity::Actor;
use crate::auth::one_time_links::MAX_INVITATION_DAYS;
use crate::config::Config;
use crate::domain::DisplayName;
use crate::format;

#[derive(Debug, Args)]
pub(super) struct InviteArgs {
    /// The group to invite them to; created if it doesn't exist.
    #[arg(long)]
    group: DisplayName,
    /// Their role in the group.
    #[arg(long, value_enum, default_value_t = GroupRoleArg::Member)]
    role: GroupRoleArg,
    /// A note for the list of invitations, such as who it's for.
    #[arg(long = "for", value_name = "WHO")]
    label: Option<DisplayName>,
    /// Days until the link expires.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(i64).range(1..=MAX_INVITATION_DAYS))]
    days: i64,
}

pub(super) async fn run(config: Config, args: InviteArgs) -> anyhow::Result<()> {
    let app = open_existing_app(config).await?;
    let group = find_or_create_group(&app, &args.group).await?;
    let label = args.label.as_ref().map_or("", DisplayName::as_str);
    let token = app.auth.create_invitation(&Actor::command_line(), (group, args.role.into()), label, args.days).await?;
    say!("{}", app.config.portal.public_url.join(&format!("/join/{}", token.as_str())));
    let days = format::count(args.days.unsigned_abs(), "day");
    eprintln!("The link works once and expires in {days}.");
    Ok(())
}
