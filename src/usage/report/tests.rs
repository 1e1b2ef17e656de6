use crate::usage::GroupAccountUsage;
use crate::usage::forecast;
use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::cluster::DiscoveredFacts;
use crate::domain::{ClusterId, GroupId, PersonId};
use crate::store::usage::UsageDayReadRow;
use crate::usage::daily_totals::DayUsageBreakdown;
use crate::usage::group_usage::{GroupAccountContext, GroupMemberName};
use crate::usage::{AccountUsage, UsageTotals};

const TODAY: Day = Day(20_773);

fn sums(hours: u64) -> UsageTotals {
    UsageTotals { core_s: hours * 3600, jobs: 2, done: 1, failed: 1, lost_core_s: 1800, ..UsageTotals::default() }
}

/// A view with the people `u0`, `u1` …, each with so many hours on each of the last days.
fn view(days: i64, hours: &[u64], kinds: usize) -> GroupUsage {
    let mut usage = AccountUsage::default();
    for back in 0..days {
        let mut rows = Vec::new();
        for (user, hours) in hours.iter().enumerate() {
            for kind in 0..kinds {
                rows.push((format!("u{user}"), format!("kind {kind}"), sums(*hours)));
            }
        }
        let read = UsageDayReadRow { day: TODAY.plus(-back), read_at: UnixTime(1), is_final: true, is_cut: back == 0 };
        usage = usage.with_day(read, &DayUsageBreakdown { rows, jobs: Vec::new() });
    }
    let facts = GroupAccountContext {
        cluster: ClusterId(1),
        slug: "key".into(),
        title: "Harbour".into(),
        account: "def-<b>".into(),
        slurm_names: vec!["def".into()],
        site: Arc::new(crate::sites::presets()[0].clone()),
        discovered: Arc::new(DiscoveredFacts::default()),
        own_user: None,
        is_narrow: false,
        sources: Vec::new(),
        all_sources: Vec::new(),
    };
    let account = GroupAccountUsage {
        details: Arc::new(facts),
        usage: vec![Arc::new(usage)],
        is_connected: true,
        today: TODAY,
        progress: (1, 1),
        problem: String::new(),
        problem_output: String::new(),
        read_at: None,
    };
    let ada = GroupMemberName { id: PersonId(7), name: format!("Ada\u{202e}{}", "x".repeat(90)) };
    GroupUsage {
        group: GroupId(1),
        is_leader: true,
        viewer: PersonId(9),
        accounts: vec![account],
        people: Arc::new(HashMap::from([((ClusterId(1), "u0".to_owned()), ada)])),
        user_names: Arc::default(),
    }
}

fn report(view: &GroupUsage) -> UsageReport {
    report_of(view, ReportPeriod::month(TODAY.month()), UsageMeasure::Cores)
}

fn report_of(view: &GroupUsage, period: ReportPeriod, measure: UsageMeasure) -> UsageReport {
    UsageReport::build(view, ReportInputs { group: "Lab", period, measure, allocations: &[], now: UnixTime(5) })
}

#[test]
fn a_renewal_year_adds_up_and_is_compared_with_the_year_before() {
    let view = view(800, &[3, 1], 1);
    let (from, until) = (TODAY.plus(-400), TODAY.plus(-36));
    let period = ReportPeriod::days(from, until).unwrap();
    let made = report_of(&view, period, UsageMeasure::Gpus);
    assert_eq!((made.title.as_str(), made.month.as_str()), ("Lab: 12 Oct 2025 to 11 Oct 2026", ""));
    assert_eq!(
        (made.measure.as_str(), made.query().as_str()),
        ("GPU hours", "month=days&first=2025-10-12&last=2026-10-11&show=gpus")
    );
    assert!((made.totals.core_hours - 4.0 * 365.0).abs() < 1e-9);
    assert!(made.is_weekly && (53..=54).contains(&made.bars.len()), "{} bars", made.bars.len());
    assert!(
        made.comparison.contains("the 365 days before") && made.comparison.contains("core hours unchanged"),
        "{}",
        made.comparison
    );
    assert!(!made.is_incomplete());
    let unread = report_of(&view, ReportPeriod::days(from.plus(-365), until.plus(-365)).unwrap(), UsageMeasure::Cores);
    assert!(unread.comparison.starts_with("No comparison"), "{}", unread.comparison);
}

#[test]
fn a_month_adds_up() {
    let made = report(&view(10, &[3, 1], 2));
    assert_eq!((made.title.as_str(), made.month.as_str()), ("Lab: November 2026", "2026-11"));
    assert!((made.totals.core_hours - 80.0).abs() < 1e-9);
    assert_eq!((made.totals.jobs, made.totals.success), (80, Some(0.5)));
    let of_all: f64 = made.members.iter().map(|one| one.core_hours).sum();
    let of_kinds: f64 = made.kinds.iter().map(|one| one.core_hours).sum();
    let of_bars: f64 = made.bars.iter().map(ReportChartDay::total).sum();
    for sum in [of_all, of_kinds, of_bars] {
        assert!((sum - 80.0).abs() < 1e-9, "{sum}");
    }
    for breakdown in &made.breakdowns {
        let total = breakdown.total().unwrap();
        assert!((total.core_hours - 80.0).abs() < 1e-9 || !breakdown.has_cores, "{}", breakdown.title);
        assert!(total.jobs == 80 || !breakdown.has_cores, "{}", breakdown.title);
    }
    assert_eq!(made.bars.len(), 30, "the whole month");
    assert!(made.bars[0].is_missing && !made.bars[15].is_missing && !made.bars[29].is_missing);
    let name = &made.members[0].name;
    assert!(name.starts_with("Adax") && name.ends_with('…') && name.chars().count() == 61);
    assert_eq!(made.members[1].detail, "", "nothing about the portal itself");
    assert_eq!(made.notes.len(), 3, "{:?}", made.notes);
    let text = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<UsageReport>(&text).unwrap(), made);
}

#[test]
fn an_account_that_was_not_read_has_no_zeros() {
    let mut two = view(10, &[3, 1], 2);
    two.accounts.push(GroupAccountUsage { usage: Vec::new(), ..two.accounts[0].clone() });
    let made = report(&two);
    assert_eq!(made.accounts.iter().map(|row| row.is_unread).collect::<Vec<_>>(), [false, true]);
    // Nothing is missing of days to come.
    let later = ReportPeriod::days(TODAY.plus(5), TODAY.plus(9)).unwrap();
    assert!(report_of(&two, later, UsageMeasure::Cores).accounts.iter().all(|row| !row.is_unread));
}

#[test]
fn many_people_and_kinds_are_few_rows() {
    let many: Vec<u64> = (1..=60).collect();
    let made = report(&view(3, &many, 20));
    assert_eq!(made.kinds.len(), MAX_KIND_ROWS + 1);
    assert_eq!(made.kinds[MAX_KIND_ROWS].name, "5 other job types");
    assert_eq!(made.members.len(), MAX_MEMBER_ROWS + 1);
    assert_eq!(made.series.len(), COLOUR_COUNT + 1);
    assert_eq!(made.series[COLOUR_COUNT], "52 others");
    let of_all: f64 = made.members.iter().map(|one| one.core_hours).sum();
    assert!((of_all - made.totals.core_hours).abs() < 1e-6);
}

#[test]
fn nothing_gives_a_report_as_well() {
    let mut empty = view(0, &[], 0);
    assert_eq!(report(&empty).members, []);
    assert!(report(&empty).is_unread(), "no day was read, so nothing is 0");
    assert!(!report(&view(10, &[], 0)).is_unread() && !report(&view(1, &[3], 1)).is_unread());
    empty.accounts.clear();
    let made = report(&empty);
    assert!(made.notes[0].contains("No accounts selected"), "{:?}", made.notes);
    assert_eq!(serde_json::from_str::<UsageReport>("{}").unwrap(), UsageReport::default());
}

#[test]
fn amounts_and_headings() {
    let days: Vec<(Day, f64)> = (0..60).rev().map(|back| (TODAY.plus(-back), 10.0)).collect();
    let say = |granted: f64, ends: i64| {
        let found = forecast::forecast_allocation(&days, granted, TODAY.plus(-49), TODAY.plus(ends), TODAY);
        formatting::forecast_sentence(&found, 0, TODAY.plus(ends), TODAY)
    };
    assert!(say(2000.0, 50).contains("50% of the allocation by"), "{}", say(2000.0, 50));
    assert!(say(700.0, 50).contains("It would run out around"), "{}", say(700.0, 50));
    assert_eq!(say(100.0, 50), "Usage exceeds the allocation.");
    assert_eq!(say(1000.0, 0), "The period has ended.");
}
