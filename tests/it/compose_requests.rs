//! What a form requests of Slurm on the real cluster: the partition, and the options that an earlier job was submitted
//! with.

use crate::compose::{OK, filled, make_ok, on_cluster, send, submitted};
use crate::queue::{cancel, connected, row, submit, wait_for_list};
use crate::support::TestApp;

const PYTHON: &str = "/compose/key/python-script";

/// The site's file says nothing of partitions: what the cluster showed decides, unless the person does.
#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_job_goes_to_a_partition_that_has_the_gpu() {
    let (_portal, _, carol) = connected("carol").await;
    make_ok();
    let form = carol.get(PYTHON).await;
    let offered = form.attributes("select[name='a.job_type'] option", "value");
    for name in ["", "cpu", "gpu", "debug"] {
        assert!(offered.iter().any(|value| value == name), "{name:?} in {offered:?}");
    }
    let mut fields = filled(
        &form,
        &[
            ("a.script", OK),
            ("a.job_name", "by-gpu"),
            ("a.gpus", "1"),
            ("a.gpu_model", "t4"),
            ("a.time", "5m"),
            ("a.memory", "100 MB"),
        ],
    );
    let script = send(&carol, &format!("{PYTHON}/preview"), &fields).await;
    assert!(script.text().contains("#SBATCH --partition=gpu<"), "{}", script.text());
    let job = submitted(&carol, PYTHON, &fields).await;
    let shown = on_cluster("carol", &format!("scontrol -o show job {job}"));
    assert!(shown.contains(" Partition=gpu "), "{shown}");
    cancel("carol", &job);
    // What the person chooses, as the suggestions for an earlier start do, reaches the script.
    fields.push(("take".to_owned(), "job_type=debug".to_owned()));
    let applied = send(&carol, &format!("{PYTHON}/edit"), &fields).await;
    assert!(applied.text().contains("#SBATCH --partition=debug<"), "{}", applied.text());
    let chosen = applied.attributes("select[name='a.job_type'] option[selected]", "value");
    assert_eq!(chosen, ["debug"]);
}

/// What was typed after `sbatch` in a terminal is in the form, together with the options of the script.
#[tokio::test(flavor = "multi_thread")]
async fn options_of_the_command_line_come_back() {
    let (_portal, _, tessa) = connected("tessa").await;
    let typed = ["-p", "gpu", "--gpus=t4:1", "-Ht7", "-J", "by hand", "--mem", "150M", "-o/dev/null", "--nice=50"];
    let typed: Vec<&str> = typed.into_iter().chain(["--comment=note"]).collect();
    let job = submit("tessa", "#SBATCH --time=3 --cpus-per-task=2", &typed);
    wait_for_list(&tessa, "/jobs", "listed", |list| !row(list, &job).is_empty()).await;
    let again = format!("/jobs/key/{job}/again");
    // The accounting stores the command line a moment after the job is in the queue.
    let form = wait_for_list(&tessa, &again, "the command line is known", |form| {
        form.text().contains("Options from the command line")
    })
    .await;
    let fields = filled(&form, &[]);
    let value = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, text)| text.as_str());
    for (name, expected) in [
        ("a.job_name", "by hand"),
        ("a.time", "00:07:00"),
        ("a.cores", "2"),
        ("a.memory", "150M"),
        ("a.gpus", "1"),
        ("a.gpu_model", "t4"),
        ("a.job_type", "gpu"),
    ] {
        assert_eq!(value(name), Some(expected), "{name} in {fields:?}");
    }
    let other: Vec<&str> = value("a.options").unwrap_or_default().lines().collect();
    for option in ["--hold", "--output=/dev/null", "--nice=50"] {
        assert!(other.contains(&option), "{option} in {other:?}");
    }
    let notice = form.select_text("main");
    assert!(notice.contains("Left out, because the portal can't set them: --comment."), "{notice}");
    let panel = send(&tessa, "/compose/key/own-script/preview", &fields).await;
    for line in ["--partition=gpu", "--gpus-per-node=t4:1", "--time=00:07:00", "--nice=50", "--hold"] {
        assert!(panel.text().contains(&format!("#SBATCH {line}<")), "{line} in {}", panel.text());
    }
    assert!(!panel.text().contains("--time=3"), "the command line counts more: {}", panel.text());
    cancel("tessa", &job);
}

#[tokio::test]
async fn forms_ask_no_more_than_a_recipe_needs() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("key").await;
    alice.name_user("key", "alice").await;
    let names = async |recipe: &str| {
        let form = alice.get(&format!("/compose/key/{recipe}")).await;
        assert_eq!(form.status, 200, "{recipe}");
        form.attributes("#compose [name]", "name")
    };
    let code = names("get-code").await;
    assert!(code.iter().any(|name| name == "a.time"), "{code:?}");
    for name in ["a.cores", "a.memory", "a.gpus", "a.gpu_model"] {
        assert!(!code.iter().any(|known| known == name), "{name} in {code:?}");
    }
    let many = names("pytorch-many").await;
    let swept: Vec<&String> = many.iter().filter(|name| name.starts_with("s.")).collect();
    assert!(swept.iter().any(|name| *name == "s.arguments"), "{swept:?}");
    assert!(!swept.iter().any(|name| ["s.script", "s.code_folder"].contains(&name.as_str())), "{swept:?}");
    assert!(names("sweep").await.iter().any(|name| name == "a.nodes"));
}
