use super::*;

const TODAY: Day = Day(20_773);

fn area(label: &str, used: u64, limit: u64) -> StorageQuota {
    StorageQuota { label: label.into(), used_bytes: used, limit_bytes: Some(limit), ..StorageQuota::default() }
}

#[test]
fn full_places_are_told() {
    let told = |area: &StorageQuota| storage_alert(area, "Harbour", "key", TODAY, 90);
    assert_eq!(told(&area("/project (project def-x)", 899, 1000)), None);
    let news = told(&area("/project (project def-x)", 905, 1000)).unwrap();
    assert_eq!(news.dedup_key, "storage:key:/project (project def-x):2026-11");
    assert_eq!(news.text, "/project (project def-x) on Harbour is nearly full: 91% of its space is used.");
    let early = storage_alert(&area("/project", 55, 100), "Harbour", "key", TODAY, 50).unwrap();
    assert_eq!(early.dedup_key, "storage:key:/project:2026-11:50", "told again from another percentage");
    assert_eq!(early.text, "/project on Harbour is filling up: 55% of its space is used.");
    let files = StorageQuota { files: Some(95), files_limit: Some(100), ..area("/project", 1, 1000) };
    assert!(told(&files).unwrap().text.contains("95% of its file limit"));
    assert_eq!(told(&StorageQuota { limit_bytes: None, ..area("/project", u64::MAX, 0) }), None);
    assert_eq!(told(&area("/project", u64::MAX, 0)), None);
    let hostile = told(&area(&format!("\u{202e}{}", "<b>".repeat(500)), 1, 1)).unwrap();
    assert!(!hostile.text.contains('\u{202e}') && hostile.text.chars().count() < 200);
}

#[test]
fn used_parts_read_well_below_and_above_all() {
    let whose = ("def-lab".to_owned(), "Fir".to_owned());
    let told = |part| describe_used_part(part, (100.0, "core hours"), TODAY, &whose);
    assert_eq!(told(0.86), "def-lab has used 86% of the 100 core hours granted on Fir until 16 Nov 2026.");
    assert_eq!(told(1.0), "def-lab has used 100% of the 100 core hours granted on Fir until 16 Nov 2026.");
    assert_eq!(told(8.71), "def-lab has used 871 core hours on Fir, more than the 100 granted until 16 Nov 2026.");
}

#[test]
fn ones_own_places_are_not_the_groups() {
    let accounts = BTreeSet::from(["nn9999k", "def-smith"]);
    for (label, is_theirs) in [
        ("/project (project def-other)", true),
        ("/cluster/projects/nn9999k", true),
        ("/nearline (group def-smith)", true),
        ("/home (user ada)", false),
        ("/cluster/home/ada", false),
        ("/scratch (user ada)", false),
        ("/cluster/work/nn9999kk", false),
    ] {
        assert_eq!(belongs_to_group(&area(label, 1, 1), &accounts), is_theirs, "{label}");
    }
}

#[test]
fn failing_in_numbers_is_told() {
    let totals = |jobs, failed, timed_out, memory_out| UsageTotals {
        jobs,
        failed,
        timed_out,
        memory_out,
        ..UsageTotals::default()
    };
    let told = |totals: &UsageTotals| failing_jobs_alert("Bob", "bob", "Harbour", "key", TODAY, totals, 50);
    assert_eq!(told(&totals(9, 9, 0, 0)), None, "too few");
    assert_eq!(told(&totals(10, 5, 0, 0)), None, "only half");
    let news = told(&totals(12, 3, 2, 2)).unwrap();
    assert_eq!(news.dedup_key, "failing:key:bob:20773");
    assert_eq!(
        news.text,
        "7 of 12 jobs by Bob that ended on Harbour on 16 Nov 2026 were unsuccessful. Bob may need help."
    );
}

#[test]
fn other_thresholds_of_failing_jobs() {
    let totals = UsageTotals { jobs: 10, failed: 3, ..UsageTotals::default() };
    let told = |percent| failing_jobs_alert("Bob", "bob", "Harbour", "key", TODAY, &totals, percent);
    assert!(told(20).is_some() && told(30).is_none(), "more than that percentage");
}

#[test]
fn percentages_come_back_or_are_the_usual_ones() {
    let choice = |kind, percent| UsageAlertChoice { kind, percent };
    assert_eq!(UsageAlertChoice::from_row("quota", None), Some(choice(UsageAlertKind::Quota, 80)));
    assert_eq!(UsageAlertChoice::from_row("storage", Some(50)), Some(choice(UsageAlertKind::Storage, 50)));
    assert_eq!(UsageAlertChoice::from_row("runs-out", None), Some(choice(UsageAlertKind::RunsOut, 0)));
    assert_eq!(UsageAlertChoice::from_row("burn", None), None);
}

#[test]
fn words_come_back() {
    for alert in UsageAlertKind::ALL {
        assert_eq!(UsageAlertKind::parse(alert.as_str()), Some(alert));
    }
}
