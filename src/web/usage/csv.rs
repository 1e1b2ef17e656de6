//! The tables of a group's use as files for other programs. Their sums are those of the page.

use super::super::Answer;
use super::super::csv::{download, line};
use super::super::extract::{Context, Me, Path, Query};
use super::rows::kind_name;
use super::search::{Found, MOST_JOBS, Stretch, find};
use super::words::exact;
use super::{Ask, Pairs, Sight, note_names, sight};
use crate::auth::Permission;
use crate::domain::GroupId;
use crate::error::AppError;
use crate::usage::{Measure, Sums, Unit, hours};

/// What follows the first column of tables of sums.
const COLUMNS: [&str; 21] = [
    "core hours",
    "GPU hours",
    "site unit hours",
    "GPU hours by model",
    "jobs ended",
    "done",
    "failed",
    "out of time",
    "out of memory",
    "cancelled",
    "median wait s",
    "core hours measured",
    "core hours used of them",
    "GB hours measured",
    "GB hours used of them",
    "GPU hours measured",
    "GPU hours used of them",
    "core hours in jobs that did not end well",
    "GPU hours in jobs that did not end well",
    "core hours that could have been asked for less",
    "GB hours that could have been asked for less",
];

fn cells(sums: &Sums) -> Vec<String> {
    let of = |seconds: u64| exact(hours(seconds));
    let memory = |mb_s: u64| exact(hours(mb_s) / 1024.0);
    let models = sums.gpus.iter().map(|(model, seconds)| format!("{model} {}", of(*seconds)));
    vec![
        of(sums.core_s),
        of(sums.gpu_s),
        exact(Measure::Site.hours(sums)),
        models.collect::<Vec<_>>().join("; "),
        sums.jobs.to_string(),
        sums.done.to_string(),
        sums.failed.to_string(),
        sums.timed_out.to_string(),
        sums.memory_out.to_string(),
        sums.cancelled.to_string(),
        sums.waits.median().map(|wait| wait.to_string()).unwrap_or_default(),
        of(sums.held_core_s),
        of(sums.used_core_s),
        memory(sums.held_mb_s),
        memory(sums.used_mb_s),
        of(sums.held_gpu_s),
        of(sums.used_gpu_s),
        of(sums.lost_core_s),
        of(sums.lost_gpu_s),
        of(sums.spare_core_s),
        memory(sums.spare_mb_s),
    ]
}

fn table<'a>(first: &str, rows: impl Iterator<Item = (&'a str, &'a Sums)>) -> String {
    let head: Vec<&str> = std::iter::once(first).chain(COLUMNS).collect();
    let mut text = line(&head);
    for (name, sums) in rows {
        let mut row = vec![name.to_owned()];
        row.extend(cells(sums));
        text.push_str(&line(&row));
    }
    text
}

/// What every file begins with: rights, figures, and the note that names were seen.
async fn begin(
    context: &Context,
    me: &Me,
    group: GroupId,
    pairs: Pairs,
) -> Result<(Sight, Ask), AppError> {
    let (sight, ask) = sight(context, me, group, pairs).await?;
    note_names(context, me, &sight.view).await?;
    Ok((sight, ask))
}

/// A file's name.
fn name(sight: &Sight, what: &str) -> String {
    let choice = &sight.looked.choice;
    format!("group-{}-{what}-{}-{}.csv", sight.group.id, choice.from, choice.until)
}

/// By person.
pub async fn members(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = begin(&context, &me, group, pairs).await?;
    let figures = &sight.figures;
    let rows = figures.members.iter().map(|one| (one.name.as_str(), &one.sums));
    Ok(download(&name(&sight, "members"), table("member", rows)))
}

/// By account.
pub async fn accounts(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = begin(&context, &me, group, pairs).await?;
    let names: Vec<String> =
        sight.figures.accounts.iter().map(|one| format!("{}/{}", one.slug, one.account)).collect();
    let sums = sight.figures.accounts.iter().map(|one| &one.sums);
    let rows = names.iter().map(String::as_str).zip(sums);
    Ok(download(&name(&sight, "accounts"), table("account", rows)))
}

/// What was granted, and what was used of it.
pub async fn allocations(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = sight(&context, &me, group, pairs).await?;
    let mut text = line(&[
        "cluster",
        "account",
        "unit",
        "granted",
        "used",
        "first day",
        "last day",
        "days not read yet",
    ]);
    for one in &sight.allocations {
        let Some(account) = sight.view.account_of(one) else { continue };
        let Some(unit) = Unit::from_word(&one.unit) else { continue };
        let found = account.heading(one, unit, account.today);
        text.push_str(&line(&[
            account.facts.slug.clone(),
            one.account.clone(),
            one.unit.clone(),
            exact(one.amount),
            exact(unit.from_hours(found.used)),
            one.begins().to_string(),
            one.ends().to_string(),
            account.unread(one.begins(), one.ends()).to_string(),
        ]));
    }
    Ok(download(&format!("group-{group}-allocations.csv"), text))
}

/// By sort of job.
pub async fn kinds(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = begin(&context, &me, group, pairs).await?;
    let figures = &sight.figures;
    let rows = figures.kinds.iter().map(|one| (kind_name(&one.name), &one.sums));
    Ok(download(&name(&sight, "kinds"), table("sort of job", rows)))
}

/// By day, week or month, a column for each person, in what is drawn.
pub async fn days(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = begin(&context, &me, group, pairs).await?;
    let figures = &sight.figures;
    let unit = super::words::measure(sight.looked.choice.measure, sight.looked.unit);
    let mut head = vec!["from".to_owned(), "until".to_owned(), format!("{unit} in all")];
    head.extend(figures.members.iter().map(|one| one.name.clone()));
    head.push("days not read yet".to_owned());
    let mut text = line(&head);
    for bar in &figures.bars {
        let mut row = vec![bar.from.to_string(), bar.until.to_string(), exact(bar.total)];
        row.extend(bar.parts.iter().map(|part| exact(*part)));
        row.push(bar.missing.to_string());
        text.push_str(&line(&row));
    }
    Ok(download(&name(&sight, "days"), text))
}

/// The jobs behind a figure.
pub async fn jobs(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let (sight, ask) = begin(&context, &me, group, pairs).await?;
    let found = find(&context, &me, &sight, &ask, Stretch { skip: 0, most: MOST_JOBS }).await?;
    Ok(download(&name(&sight, "jobs"), jobs_table(&found)))
}

fn jobs_table(found: &Found) -> String {
    let mut text = line(&[
        "cluster",
        "account",
        "job",
        "member",
        "user",
        "sort of job",
        "outcome",
        "began",
        "core hours in this time",
        "GPU hours in this time",
        "seconds in this time",
        "seconds in all",
        "seconds waited",
        "cores",
        "memory MB",
        "GPUs",
        "processor seconds used",
        "memory MB used",
        "core hours that could be asked less",
    ]);
    for job in &found.jobs {
        let known = |number: i64| if number < 0 { String::new() } else { number.to_string() };
        let row = &job.row;
        text.push_str(&line(&[
            job.slug.clone(),
            job.account.clone(),
            job.id.clone(),
            job.member.clone(),
            job.user.clone(),
            job.kind.clone(),
            job.outcome.word().to_owned(),
            job.began.iso(),
            exact(hours(job.core_s)),
            exact(hours(job.gpu_s)),
            row.seconds.to_string(),
            row.elapsed_s.to_string(),
            row.wait_s.to_string(),
            row.cores.to_string(),
            row.memory_mb.to_string(),
            row.gpus.clone(),
            known(row.cpu_s),
            known(row.rss_mb),
            exact(hours(job.spare_s)),
        ]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_the_head_and_hold_no_formulas() {
        let mut sums = Sums { core_s: 5400, jobs: 2, done: 1, ..Sums::default() };
        sums.add_gpus("v100", 1800);
        let text = table("member", [("=cmd()", &sums), ("Bob", &Sums::default())].into_iter());
        let mut lines = text.lines();
        let head = lines.next().unwrap().matches("\",\"").count();
        for row in lines {
            assert_eq!(row.matches("\",\"").count(), head);
        }
        assert!(text.contains("\"'=cmd()\",\"1.5000\",\"0.0000\""), "{text}");
        assert!(text.contains("\"v100 0.5000\""), "{text}");
    }
}
