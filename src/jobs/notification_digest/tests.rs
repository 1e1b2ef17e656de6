use super::job_words::MAX_NAME_CHARS;
use super::*;
use crate::domain::NotificationId;

fn notification(id: i64, kind: &str, number: i64, task: i64, name: &str, state: &str) -> Notification {
    Notification {
        id: NotificationId(id),
        kind: kind.to_owned(),
        at: UnixTime(10_000 + id),
        is_read: false,
        number,
        task,
        name: name.to_owned(),
        state: state.to_owned(),
        slug: "fir".to_owned(),
        cluster: "Fir".to_owned(),
        dashboard_id: None,
        group_id: None,
        text: String::new(),
    }
}

fn texts(tidings: &[NotificationDigest]) -> Vec<String> {
    tidings.iter().map(NotificationDigest::text).collect()
}

#[test]
fn the_tasks_of_an_array_are_one_line() {
    let mut all: Vec<Notification> =
        (0..11).map(|task| notification(task, "ended", 7, task, "sweep", "COMPLETED")).collect();
    all.push(notification(11, "ended", 7, 11, "sweep", "TIMEOUT"));
    all.push(notification(12, "started", 8, -1, "align", "RUNNING"));
    all.reverse();
    let list = build_digests(&all);
    assert_eq!(texts(&list), ["align started", "12 tasks of sweep ended: 11 completed, 1 failed"]);
    assert_eq!((list[1].href.as_str(), list[1].look), ("/jobs/fir/7", "failed"));
}

#[test]
fn jobs_of_one_name_that_are_far_apart_are_not_folded() {
    let mut all =
        vec![notification(2, "ended", 8, -1, "a", "COMPLETED"), notification(1, "ended", 7, -1, "a", "COMPLETED")];
    assert_eq!(build_digests(&all).len(), 1);
    all[0].at = UnixTime(100_000);
    assert_eq!(build_digests(&all).len(), 2);
}

#[test]
fn the_events_of_a_job_are_one_line_with_the_latest() {
    let mut all = vec![
        notification(3, "ended", 7, -1, "align", "FAILED"),
        notification(2, "started", 7, -1, "align", "RUNNING"),
        notification(1, "never", 7, -1, "align", "PENDING"),
    ];
    all[0].at = UnixTime(900_000);
    all[0].is_read = true;
    let list = build_digests(&all);
    assert_eq!(texts(&list), ["align failed"], "however long it ran");
    assert_eq!((list[0].at, list[0].is_read), (UnixTime(900_000), false), "new as long as one of them is");
    all.reverse();
    assert_eq!(texts(&build_digests(&all)), ["align failed"], "in whatever order they come");
    let restarted = [notification(4, "started", 7, -1, "align", "RUNNING"), all[2].clone()];
    assert_eq!(texts(&build_digests(&restarted)), ["align started"]);
}

#[test]
fn an_array_is_one_line_with_counts_whatever_its_tasks_do() {
    let mut all: Vec<Notification> =
        (0..20).map(|task| notification(task, "started", 7, task, "sweep", "RUNNING")).collect();
    assert_eq!(texts(&build_digests(&all)), ["20 tasks of sweep started"]);
    for task in 0..15 {
        let state = if task == 3 { "FAILED" } else { "COMPLETED" };
        let ended = notification(20 + task, "ended", 7, task, "sweep", state);
        all.push(Notification { at: UnixTime(10_000 + task * 7200), ..ended });
    }
    all.reverse();
    let list = build_digests(&all);
    assert_eq!(texts(&list), ["sweep: 15 tasks ended (14 completed, 1 failed), 5 tasks started"]);
    assert_eq!((list[0].href.as_str(), list[0].look), ("/jobs/fir/7", "failed"));
    let good =
        [notification(2, "ended", 7, 0, "sweep", "COMPLETED"), notification(1, "started", 7, 1, "sweep", "RUNNING")];
    let list = build_digests(&good);
    assert_eq!(texts(&list), ["sweep: 1 task ended (1 completed), 1 task started"]);
    assert_eq!((list[0].kind, list[0].look), (NotificationKind::Ended, "running"));
    let stuck = [notification(2, "never", 7, 0, "sweep", "PENDING"), good[0].clone()];
    assert_eq!(build_digests(&stuck).len(), 1);
}

#[test]
fn a_summary_has_one_line_for_each_kind() {
    let mut all: Vec<Notification> =
        (0..12).map(|id| notification(id, "ended", id, -1, &format!("job {id}"), "COMPLETED")).collect();
    all.extend((12..14).map(|id| notification(id, "ended", id, -1, "other", "FAILED")));
    all.push(notification(14, "never", 99, -1, "stuck", "PENDING"));
    all.push(notification(15, "started", 5, 3, "sweep", "RUNNING"));
    assert_eq!(
        texts(&summarize(&all)),
        ["stuck can't start as submitted", "14 jobs ended: 12 completed, 2 failed", "sweep started"]
    );
    assert_eq!(summarize(&all)[2].href, "/jobs/fir/5_3");
}

#[test]
fn single_ends_in_words() {
    for (state, words) in [
        ("COMPLETED", "x completed"),
        ("OUT_OF_MEMORY", "x ran out of memory"),
        ("TIMEOUT", "x timed out"),
        ("UNKNOWN", "x ended with an unknown outcome"),
    ] {
        assert_eq!(texts(&build_digests(&[notification(1, "ended", 1, -1, "x", state)])), [words]);
    }
    let off = Notification { slug: String::new(), ..notification(1, "webhook-off", 0, -1, "", "") };
    assert_eq!(build_digests(&[off])[0].href, "/account/notifications");
}

#[test]
fn names_are_cut_and_cleaned() {
    let long = "ä".repeat(500);
    let text = build_digests(&[notification(1, "started", 1, -1, &long, "RUNNING")])[0].text();
    assert_eq!(text, format!("{}… started", "ä".repeat(MAX_NAME_CHARS)));
    let tricky = build_digests(&[notification(1, "started", 1, -1, "\u{202e}evil\u{0}", "RUNNING")])[0].text();
    assert_eq!(tricky, "evil started");
    assert!(build_digests(&[notification(1, "started", 1, -1, "", "RUNNING")])[0].text().contains("Unnamed job"));
}

#[test]
fn kinds_are_read_from_their_list() {
    assert_eq!(
        NotificationKind::parse_list("started,nonsense, ended"),
        [NotificationKind::Ended, NotificationKind::Started]
    );
    assert_eq!(NotificationKind::parse_list(""), []);
    assert_eq!(NotificationKind::parse_list(&NotificationKind::default_list()).len(), 3);
    assert_eq!(NotificationKind::parse_list("webhook-off"), [], "that is never sent");
    assert_eq!(NotificationKind::parse_list("group"), [NotificationKind::Group]);
}

#[test]
fn sentences_about_groups_stay_apart() {
    let about = |id: i64, text: &str| Notification {
        group_id: Some(crate::domain::GroupId(4)),
        text: text.to_owned(),
        slug: String::new(),
        cluster: String::new(),
        ..notification(id, "group", 0, -1, "", "")
    };
    let all = [about(2, "80% is used\u{202e}."), about(1, &"x".repeat(9000))];
    for lines in [build_digests(&all), summarize(&all)] {
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].text().as_str(), lines[0].look), ("80% is used.", "warning"));
        assert_eq!((lines[0].href.as_str(), lines[0].name.as_str()), ("/groups/4/usage", ""));
        assert_eq!(lines[1].text().chars().count(), MAX_SENTENCE_CHARS);
    }
    assert!(!NotificationKind::Group.is_selectable(), "always shown");
}
