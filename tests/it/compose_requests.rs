//! What a form requests of Slurm on the real cluster: the partition, and the options that an earlier job was submitted
//! with.

use crate::compose::{OK, filled, make_ok, on_cluster, send, submitted};
use crate::queue::{cancel, connected};

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
