//! Tables that sort by any column, waste in the chosen unit, breakdowns, and the comparison with the period before.

use portolan::usage::daily_totals::{DayUsageBreakdown, UsageRunDay};
use portolan::usage::{BreakdownSums, UsageBreakdown, UsageJobOutcome, UsageTotals};

use super::{TODAY, World, line, sum, sums, world};
use crate::accessibility::audit;
use crate::support::Page;
use crate::support::browser::Browser;

/// Names of jobs, or of rows, in the order in which a page shows them.
fn names(page: &Page, table: &str) -> Vec<String> {
    page.select_all(&format!("{table} tbody tr:not(.use-total) .use-name > .cell-title"))
}

/// The link in a column's heading.
fn heading(page: &Page, table: &str, label: &str) -> String {
    let labels = page.select_all(&format!("{table} thead .sort-link"));
    let place = labels.iter().position(|one| one.replace('\n', " ").ends_with(label));
    let place = place.unwrap_or_else(|| panic!("{label} is not in {labels:?}"));
    page.attributes(&format!("{table} thead .sort-link"), "href").swap_remove(place)
}

/// Two jobs: one holds many cores, the other many GPUs. One more was lost with its node.
async fn with_two_jobs(world: &World) {
    world.choose(&["key/def-one"]).await;
    let wide = UsageRunDay {
        cores: 64,
        gpus: "t4:1".into(),
        partition: "cpu".into(),
        ..line(1, TODAY, ("pia", "wide", 2, UsageJobOutcome::Done))
    };
    let trained =
        UsageRunDay { gpus: "v100:4,t4:2".into(), ..line(2, TODAY, ("max", "gpus", 2, UsageJobOutcome::Failed)) };
    let interrupted =
        UsageRunDay { gpus: String::new(), ..line(3, TODAY, ("max", "node", 1, UsageJobOutcome::NodeFailed)) };
    let mut rows = Vec::new();
    for (job, gpu_count) in [(&wide, 1), (&trained, 6), (&interrupted, 0)] {
        let (core_s, gpu_s) = (job.seconds * job.cores, job.seconds * gpu_count);
        let lost = |seconds: u64| if job.outcome.is_lost() { seconds } else { 0 };
        let mut sums = UsageTotals {
            core_s,
            gpu_s,
            gpus: Vec::new(),
            lost_core_s: lost(core_s),
            lost_gpu_s: lost(gpu_s),
            partitions: UsageBreakdown::default(),
            ..sums(1, job.outcome)
        };
        sums.partitions.add(&BreakdownSums { name: job.partition.clone(), core_s, gpu_s, jobs: 1 });
        sums.add_gpus(if gpu_count == 1 { "t4" } else { "v100" }, gpu_s);
        rows.push((job.user.clone(), job.kind.clone(), sums));
    }
    let sheet = DayUsageBreakdown { rows, jobs: vec![wide, trained, interrupted] };
    world.put_sheet(world.owner(), TODAY, &sheet).await;
}

#[tokio::test]
async fn jobs_behind_a_gpu_figure_are_sorted_by_gpu_hours() {
    let world = world().await;
    with_two_jobs(&world).await;
    let jobs = |page: &Page| page.select_all("tbody .use-name .cell-sub:nth-child(2)");
    let page = world.pi.get(&world.url("usage")).await;
    let behind_gpus = world.pi.get(&page.attribute(".fact a[href*='with=gpus']", "href")).await;
    assert_eq!(jobs(&behind_gpus), ["gpus", "wide"]);
    let said = behind_gpus.select_text("main .split p");
    assert!(said.contains("Sorted by GPU hours, highest first"), "{said}");
    assert!(behind_gpus.text().contains("aria-sort=\"descending\""));
    let in_gpus = world.pi.get(&world.url("usage/jobs?show=gpus")).await;
    assert_eq!(jobs(&in_gpus), ["gpus", "wide", "node"], "the page shows GPU hours");
    let all = world.pi.get(&world.url("usage/jobs")).await;
    assert_eq!(jobs(&all), ["wide", "gpus", "node"], "by core hours otherwise");

    // Every column sorts, both ways, on the page and in the file alike.
    let labels = all.select_all("thead .sort-link");
    assert_eq!(labels.len(), all.select_all("thead th").len(), "{labels:?}");
    for (place, label) in labels.iter().enumerate() {
        let first = all.attributes("thead .sort-link", "href").swap_remove(place);
        let page = world.pi.get(&first).await;
        assert_eq!(page.attributes("thead [aria-sort]", "aria-sort").len(), 1, "{label}");
        let back = page.attributes("thead .sort-link", "href").swap_remove(place);
        assert_ne!(back, first, "{label}: the other way round");
        let other = world.pi.get(&back).await;
        assert_eq!((jobs(&page).len(), jobs(&other).len()), (3, 3), "{label}");
        let file = world.pi.get(&page.attribute("a[href*='jobs.csv']", "href")).await;
        let first_row = file.text().lines().nth(1).unwrap().to_owned();
        assert!(first_row.contains(&format!("\"{}\"", jobs(&page)[0])), "{label}: {first_row}");
    }
    let by_job = world.pi.get(&heading(&all, ".use-jobs", "Job")).await;
    assert_eq!(jobs(&by_job), ["wide", "gpus", "node"]);
    let by_run_time = world.pi.get(&world.url("usage/jobs?sort=jobs.run-time-asc")).await;
    assert_eq!(jobs(&by_run_time)[0], "node");
    for odd in ["jobs.x-asc", "members.gpus-desc", "jobs.over-requested-asc", "%3Cb%3E", "jobs.cores"] {
        let page = world.pi.get(&world.url(&format!("usage/jobs?sort={odd}"))).await;
        assert_eq!((page.status, jobs(&page)), (200, jobs(&all)), "{odd}");
    }
}

#[tokio::test]
async fn tables_of_usage_sort_by_any_column() {
    let world = world().await;
    with_two_jobs(&world).await;
    let page = world.pi.get(&world.url("usage")).await;
    let members = "#use-members";
    assert_eq!(names(&page, members), ["pia", "max"], "by core hours");
    let by_gpus = world.pi.get(&heading(&page, members, "GPU hours")).await;
    assert_eq!(names(&by_gpus, members), ["max", "pia"]);
    assert_eq!(by_gpus.attribute("#use-members [aria-sort]", "aria-sort"), "descending");
    let turned = world.pi.get(&heading(&by_gpus, members, "GPU hours")).await;
    assert_eq!(names(&turned, members), ["pia", "max"]);
    assert_eq!(turned.attribute("#use-members [aria-sort]", "aria-sort"), "ascending");
    // What renews itself keeps the order, and a folded table that is sorted stays open.
    let part = world.pi.get(&by_gpus.attribute("#use", "hx-get")).await;
    assert_eq!(names(&part, members), ["max", "pia"]);
    let kinds = world.pi.get(&heading(&page, "#use-kinds", "Job type")).await;
    assert_eq!(names(&kinds, "#use-kinds"), ["gpus", "node", "wide"]);
    assert_eq!(kinds.attributes("#use details[open]", "id"), ["use-kinds"]);
    for table in ["#use-members", "#use-kinds", "#use-partition", "#use-qos", "#use-gpu", "#use-time"] {
        let columns = page.select_all(&format!("{table} thead th")).len();
        let links = page.attributes(&format!("{table} thead .sort-link"), "href");
        assert!(columns > 1 && links.len() == columns, "{table}: {columns} {links:?}");
        for link in links {
            let sorted = world.pi.get(&link).await;
            assert_eq!(sorted.status, 200, "{link}");
            assert_eq!(sorted.attributes(&format!("{table} [aria-sort]"), "aria-sort").len(), 1, "{link}");
        }
    }
}

#[tokio::test]
async fn waste_follows_the_unit_and_node_failures_are_apart() {
    let world = world().await;
    with_two_jobs(&world).await;
    let cells = async |show: &str, label: &str| {
        let page = world.pi.get(&world.url(&format!("usage?show={show}"))).await;
        page.select_all(&format!("#use-members [data-label='{label}']")).pop().unwrap()
    };
    let cores = cells("cores", "Wasted core hours").await;
    assert!(cores.starts_with("12") && cores.contains("1 failed · 1 lost to a node failure · 12 GPU hours"), "{cores}");
    let gpus = cells("gpus", "Wasted GPU hours").await;
    assert!(gpus.starts_with("12") && gpus.contains("12 core hours"), "{gpus}");
    let page = world.pi.get(&world.url("usage")).await;
    let wait = page.select_all("[aria-labelledby=figures-title] .fact-value").pop().unwrap();
    assert!(wait.starts_with("about "), "the median is approximate: {wait}");
    let csv = world.pi.get(&world.url("usage/members.csv")).await;
    let head = csv.text().lines().next().unwrap().to_owned();
    let place = |name: &str| head.trim_matches('"').split("\",\"").position(|one| one == name).unwrap();
    assert!((sum(&csv, place("failed")) - 1.0).abs() < 1e-9 && (sum(&csv, place("node failed")) - 1.0).abs() < 1e-9);
    let lost = world.pi.get(&world.url("usage/jobs?outcome=node-failed")).await;
    assert_eq!(lost.select_all("[data-label=Outcome]"), ["Node failed"]);
    assert!(world.pi.get(&world.url("usage/jobs?outcome=failed")).await.text().contains("1 job, "));
}

#[tokio::test]
async fn usage_is_broken_down_by_partition_qos_and_gpu_model() {
    let world = world().await;
    with_two_jobs(&world).await;
    let page = world.pi.get(&world.url("usage")).await;
    assert_eq!(names(&page, "#use-partition"), ["cpu", "gpu"]);
    assert_eq!(names(&page, "#use-gpu"), ["v100", "t4"]);
    let cores = page.select_all("#use-partition [data-label='Core hours']");
    assert_eq!(cores, ["128", "12"]);
    let in_cpu = world.pi.get(&page.attribute("#use-partition tbody a", "href")).await;
    assert_eq!(in_cpu.select_all("tbody .use-name .cell-sub:nth-child(2)"), ["wide"]);
    assert!(in_cpu.select_text("main").contains("partition cpu"));
    let with_t4 = world.pi.get(&world.url("usage/jobs?gpu=t4")).await;
    assert_eq!(with_t4.select_all("tbody .use-name .cell-sub:nth-child(2)"), ["gpus", "wide"]);
    assert!(world.pi.get(&world.url("usage/jobs?qos=nothing")).await.text().contains("No matching jobs"));
    // What is not known by QOS is said, and everything adds up.
    assert!(page.select_text("#use-qos").contains("Unknown"), "{}", page.select_text("#use-qos"));
    let csv = world.pi.get(&world.url("usage/breakdown.csv")).await;
    let of = |kind: &str| -> f64 {
        let rows = csv.text().lines().filter(|row| row.starts_with(&format!("\"{kind}\"")));
        rows.map(|row| row.split("\",\"").nth(2).unwrap().parse::<f64>().unwrap()).sum()
    };
    assert!((of("Partition") - 140.0).abs() < 0.01 && (of("QOS") - 140.0).abs() < 0.01, "{}", csv.text());
    // A member's own connection tells sums only: no links to other people's jobs.
    assert!(world.member.get(&world.url("usage/breakdown.csv")).await.status == 200);
    assert_eq!(world.other.get(&world.url("usage/breakdown.csv")).await.status, 403);
}

#[tokio::test]
async fn a_period_is_compared_with_the_one_before() {
    let world = world().await;
    world.fill().await;
    let compared = world.pi.get(&world.url("usage?period=2026-10-01..2026-10-07")).await.select_text("#use-before");
    assert!(
        compared.starts_with("Compared with the 7 days before (24 Sep 2026 to 30 Sep 2026): core hours "),
        "{compared}"
    );
    assert!(compared.contains("jobs ended unchanged (35)"), "{compared}");
    let unread = world.pi.get(&world.url("usage?period=90d")).await.select_text("#use-before");
    assert!(unread.starts_with("No comparison with the 90 days before"), "{unread}");
}

#[tokio::test]
async fn members_and_groups_sort_as_well() {
    let world = world().await;
    let page = world.pi.get(&world.url("members")).await;
    let members = |page: &Page| page.select_all("[aria-labelledby=people-title] .cell-title");
    let by_name = world.pi.get(&heading(&page, "[aria-labelledby=people-title]", "Name")).await;
    assert!(members(&by_name)[0].starts_with("max"), "{:?}", members(&by_name));
    let turned = world.pi.get(&heading(&by_name, "[aria-labelledby=people-title]", "Name")).await;
    assert!(members(&turned)[0].starts_with("pia"), "{:?}", members(&turned));
    let page = world.admin.get("/groups").await;
    let groups = |page: &Page| page.select_all("tbody .cell-title");
    let by_members = world.admin.get(&heading(&page, "main", "Members")).await;
    assert_eq!(groups(&by_members), ["Smith Lab", "Jones Lab"]);
    let turned = world.admin.get(&heading(&by_members, "main", "Members")).await;
    assert_eq!(groups(&turned), ["Jones Lab", "Smith Lab"]);
}

/// A PI sorts a table by selecting a heading, wide and on a phone, and the chart leaves out whoever used nothing.
async fn sort_in_browser(width: u32) {
    let world = world().await;
    with_two_jobs(&world).await;
    let browser = Browser::open(&world.portal.url, width).await;
    browser.sign_in("pia").await;
    browser.go(&world.url("usage")).await;
    browser.wait_for_text("By member").await;
    let first = "return document.querySelector('#use-members tbody .cell-title').innerText.trim()";
    assert_eq!(browser.run(first).await, "pia");
    let press = "[...document.querySelectorAll('#use-members thead .sort-link')] \
        .find((link) => link.innerText.startsWith('GPU hours')).click()";
    browser.run(press).await;
    crate::support::wait::wait_until("the table is sorted", async || browser.run(first).await == "max").await;
    audit(&browser, "a sorted table").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pi_sorts_a_table_on_a_desk() {
    sort_in_browser(1280).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pi_sorts_a_table_on_a_phone() {
    sort_in_browser(390).await;
}
