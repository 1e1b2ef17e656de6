use std::sync::Arc;

use super::*;
use crate::clock::UnixTime;
use crate::cluster::DiscoveredFacts;
use crate::domain::GroupId;
use crate::store::usage::UsageDayReadRow;
use crate::usage::AccountUsage;
use crate::usage::daily_totals::DayUsageBreakdown;
use crate::usage::group_usage::{GroupAccountContext, GroupMemberName};

const TODAY: Day = Day(20_773);

/// Days ago, and who used how many hours in which job type.
type OneDay<'a> = (i64, &'a [(&'a str, &'a str, u64)]);

fn sums(hours: u64, jobs: u64) -> UsageTotals {
    UsageTotals { core_s: hours * 3600, jobs, done: jobs, ..UsageTotals::default() }
}

fn usage_of(days: &[OneDay]) -> Arc<AccountUsage> {
    let mut usage = AccountUsage::default();
    for (back, rows) in days {
        let rows = rows.iter().map(|(user, kind, hours)| ((*user).to_owned(), (*kind).to_owned(), sums(*hours, 1)));
        let totals = DayUsageBreakdown { rows: rows.collect(), jobs: Vec::new() };
        let day = TODAY.plus(-back);
        let read = UsageDayReadRow { day, read_at: UnixTime(1), is_final: true, is_cut: false };
        usage = usage.with_day(read, &totals);
    }
    Arc::new(usage)
}

fn view(leads: bool, usage: Arc<AccountUsage>) -> GroupUsage {
    let site = crate::sites::presets()[0].clone();
    let facts = GroupAccountContext {
        cluster: ClusterId(1),
        slug: "key".into(),
        title: "Harbour".into(),
        account: "def-smith".into(),
        slurm_names: vec!["def-smith".into()],
        site: Arc::new(site),
        discovered: Arc::new(DiscoveredFacts::default()),
        own_user: Some("alice".into()),
        is_narrow: false,
        sources: Vec::new(),
        all_sources: Vec::new(),
    };
    let account = GroupAccountUsage {
        details: Arc::new(facts),
        usage: vec![usage],
        is_connected: true,
        today: TODAY,
        progress: (1, 1),
        problem: String::new(),
        problem_output: String::new(),
        read_at: None,
    };
    let person = |id: i64, name: &str| GroupMemberName { id: PersonId(id), name: name.into() };
    let people = HashMap::from([
        ((ClusterId(1), "alice".to_owned()), person(1, "Alice")),
        ((ClusterId(1), "bob".to_owned()), person(2, "Bob")),
        ((ClusterId(2), "gone".to_owned()), person(2, "Bob")),
    ]);
    GroupUsage {
        group: GroupId(1),
        is_leader: leads,
        viewer: PersonId(1),
        accounts: vec![account],
        people: Arc::new(people),
        user_names: Arc::default(),
    }
}

fn choice(from: i64, step: ChartStep) -> FiguresSelection {
    FiguresSelection { from: TODAY.plus(-from), until: TODAY, step, measure: UsageMeasure::Cores, account: None }
}

#[test]
fn by_person_sort_and_day() {
    let days: &[OneDay] = &[
        (0, &[("alice", "train", 1), ("bob", "fit", 5)]),
        (1, &[("gone", "fit", 2)]),
        (9, &[("alice", "train", 100)]),
    ];
    let view = view(true, usage_of(days));
    let week = compute_figures(&view, &choice(6, ChartStep::Day));
    assert_eq!(week.totals.core_s, 8 * 3600);
    let names: Vec<_> = week.members.iter().map(|one| (one.name.as_str(), one.is_in_group)).collect();
    assert_eq!(names, [("Bob", true), ("gone", false), ("Alice", true)], "a name elsewhere is no one here");
    assert_eq!(week.members[2].colour, Some(0), "the colour is that of all that is known");
    assert_eq!(week.kinds[0].name, "fit");
    assert_eq!((week.bars.len(), week.missing), (7, 5));
    assert!((week.bars[6].total - 6.0).abs() < 1e-9 && (week.bars[6].parts[0] - 5.0).abs() < 1e-9);
    let all = compute_figures(&view, &choice(30, ChartStep::Month));
    assert_eq!(all.bars.len(), 2);
    assert_eq!(all.totals.core_s, 108 * 3600);
    assert_eq!(compute_figures(&view, &choice(9, ChartStep::Week)).bars.len(), 3, "a Saturday, a week, a Monday");
    let weeks = compute_figures(&view, &choice(9, ChartStep::Week));
    let days: Vec<_> = weeks.bars.iter().map(|bar| (bar.until.0 - bar.from.0 + 1, bar.missing)).collect();
    assert_eq!(days, [(2, 1), (7, 6), (1, 0)], "no more days than are looked at");
    // Another account of which nothing was read: the days are the same.
    let mut two = view.clone();
    two.accounts.push(GroupAccountUsage { usage: vec![usage_of(&[])], ..two.accounts[0].clone() });
    let both = compute_figures(&two, &choice(9, ChartStep::Week));
    assert_eq!((both.missing, both.bars[0].missing), (10, 2), "each day once");
    let none = FiguresSelection { account: Some(("key".into(), "rrg-x".into())), ..choice(9, ChartStep::Day) };
    assert!(compute_figures(&view, &none).totals.is_empty());
}

#[test]
fn members_see_themselves_and_one_sum() {
    // Even where names were kept, because the viewer was once a PI.
    let days: &[OneDay] = &[(0, &[("alice", "train", 1), ("bob", "fit", 5), ("", "", 2)])];
    let week = compute_figures(&view(false, usage_of(days)), &choice(6, ChartStep::Day));
    let names: Vec<_> = week.members.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["Everyone else", "You"]);
    assert_eq!(week.members[0].totals.core_s, 7 * 3600);
}

#[test]
fn odd_choices_are_survived() {
    let view = view(true, usage_of(&[]));
    let backwards = FiguresSelection { from: TODAY, until: TODAY.plus(-5), ..choice(0, ChartStep::Day) };
    for step in ChartStep::ALL {
        assert!(compute_figures(&view, &FiguresSelection { step, ..backwards.clone() }).bars.is_empty());
    }
    assert_eq!(compute_figures(&view, &choice(5000, ChartStep::Day)).bars.len(), MAX_BARS);
}

#[test]
fn figures_are_kept_while_all_they_are_made_of_stays_the_same() {
    let kept = FiguresCache::default();
    let usage = usage_of(&[(1, &[("alice", "fit", 3), ("bob", "train", 4)])]);
    let choice = choice(30, ChartStep::Day);
    let first = kept.get_or_compute(&view(true, usage.clone()), &choice);
    let same = kept.get_or_compute(&view(true, usage.clone()), &choice);
    assert!(Arc::ptr_eq(&first, &same), "equal names and the same ledger");

    let differs = |other: GroupUsage, choice: &FiguresSelection| {
        let found = kept.get_or_compute(&other, choice);
        assert_eq!(*found, compute_figures(&other, choice), "never those of another view");
        !Arc::ptr_eq(&found, &kept.get_or_compute(&view(true, usage.clone()), choice))
    };
    assert!(differs(view(false, usage.clone()), &choice), "names are not shown to members");
    assert!(differs(view(true, usage_of(&[(1, &[("alice", "fit", 3)])])), &choice), "read anew");
    let mut other = view(true, usage.clone());
    other.people = Arc::new(HashMap::new());
    assert!(differs(other, &choice), "someone left");
    let mut other = view(true, usage.clone());
    other.accounts[0].today = TODAY.plus(1);
    assert!(differs(other, &choice), "midnight");
    let mut other = view(true, usage.clone());
    other.viewer = PersonId(2);
    assert!(differs(other, &choice), "another viewer");
    let mut other = view(true, usage.clone());
    other.accounts.clear();
    assert!(differs(other, &choice), "the account was taken away");

    for back in 0..200 {
        let choice = FiguresSelection { from: TODAY.plus(-back), ..choice.clone() };
        kept.get_or_compute(&view(true, usage.clone()), &choice);
    }
    assert!(kept.len() <= 64, "it does not grow without end");
}
