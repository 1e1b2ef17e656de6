use proptest::prelude::*;
use proptest::{collection, option};

use super::*;
use crate::recipes::request::{ArrayRequest, JobDependency, SbatchDirective};
use crate::sites::GpuSbatchOption;

fn said(script: &str) -> Vec<String> {
    let one = |(option, value): SbatchOption| match value {
        Some(value) => format!("{option}={value}"),
        None => option,
    };
    parse_directives(script).into_iter().map(one).collect()
}

#[test]
fn every_way_of_writing_an_option_is_read() {
    let script = "#!/bin/bash\n#SBATCH --time=3:00:00 --mem 16G # a note\n#SBATCH -A def-x -c4\n\n# words\n\
                  #SBATCH --job-name=\"my job\" --exclusive\n#SBATCH -J 'it''s'\n##SBATCH --qos=no\n#SBATCHX --qos=no\n\
                  #SBATCH --comment=gone --parsable\necho hi\n#SBATCH --account=too-late\n";
    assert_eq!(
        said(script),
        [
            "--time=3:00:00",
            "--mem=16G",
            "--account=def-x",
            "--cpus-per-task=4",
            "--job-name=my job",
            "--exclusive",
            "--job-name=its",
        ]
    );
    let rest = strip_directives(script);
    assert!(rest.starts_with("#!/bin/bash\n\n# words\n##SBATCH"), "{rest}");
    assert!(rest.contains("echo hi\n#SBATCH --account=too-late"));
}

#[test]
fn single_options() {
    assert_eq!(parse_option("--nice=100"), Some(("--nice".into(), Some("100".into()))));
    assert_eq!(parse_option("-C a100"), Some(("--constraint".into(), Some("a100".into()))));
    assert_eq!(parse_option("--export=ALL,X=1"), Some(("--export".into(), Some("ALL,X=1".into()))));
    assert_eq!(parse_option("--export-f=x"), None);
    for bad in ["--wrap=x", "--parsable", "rm -rf", "", "--a=1 --b=2", "--Bad"] {
        assert_eq!(parse_option(bad), None, "{bad}");
    }
}

#[test]
fn the_command_line_counts_more_than_the_script() {
    let mut options = parse_directives("#SBATCH --mem=4G --gres=gpu:2 --time=5\n#SBATCH --gres=tmp:9G --nice=1\n");
    let typed = |option: &str, value: &str| (option.to_owned(), Some(value.to_owned()));
    override_options(&mut options, &[typed("--mem-per-cpu", "1G"), typed("--gpus", "1"), typed("--nice", "2")]);
    let left: Vec<String> = options.iter().map(format_option).collect();
    assert_eq!(left, ["--time=5", "--gres=tmp:9G", "--mem-per-cpu=1G", "--gpus=1", "--nice=2"]);
}

#[test]
fn gpus_in_all_their_forms() {
    let read = |option: &str, value: &str, nodes| {
        let script = format!("#!/bin/sh\n#SBATCH {option}={value} --nodes={nodes}\n");
        let GpuRequest { model, count } = read_request(&script).gpus?;
        Some(model.map_or_else(|| count.to_string(), |model| format!("{count} {model}")))
    };
    assert_eq!(read("--gres", "gpu:h100:2", 1).as_deref(), Some("2 h100"));
    assert_eq!(read("--gres", "gpu", 1).as_deref(), Some("1"));
    assert_eq!(read("--gres", "gpu:3", 1).as_deref(), Some("3"));
    assert_eq!(read("--gpus-per-node", "a100:4", 2).as_deref(), Some("4 a100"));
    assert_eq!(read("--gpus", "8", 2).as_deref(), Some("4"));
    assert_eq!(read("--gpus", "3", 2), None);
    assert_eq!(read("--gres", "localscratch:20G", 1), None);
}

proptest! {
    #[test]
    fn any_script_is_survived(text in "(#SBATCH [-=a-zA-Z0-9\"' \\\\]{0,30}\n){0,4}\\PC{0,40}") {
        let _ = parse_directives(&text);
        let _ = strip_directives(&text);
        let _ = parse_option(&text);
    }

    /// Whatever we write, we can read back.
    #[test]
    fn every_request_that_is_written_reads_back_equal(request in any_request()) {
        for option in [GpuSbatchOption::GpusPerNode, GpuSbatchOption::Gpus, GpuSbatchOption::Gres] {
            let lines = request.directives(option);
            let lines: Vec<String> = lines.iter().map(SbatchDirective::to_line).collect();
            let script = format!("#!/bin/sh\n{}\n", lines.join("\n"));
            prop_assert_eq!(&read_request(&script), &request, "{}", script);
        }
    }
}

fn any_request() -> impl Strategy<Value = JobRequest> {
    let text = || option::of("[^\\p{Cc}]{0,20}");
    let number = || option::of(0..10_000_u32);
    let memory = (0..3, 0..10_000_000_u64).prop_map(|(per, mb)| match per {
        0 => MemoryRequest::PerNode(mb),
        1 => MemoryRequest::PerCore(mb),
        _ => MemoryRequest::PerGpu(mb),
    });
    let gpus = (option::of("[a-z][a-z0-9_.-]{0,9}"), 0..100_u32).prop_map(|(model, count)| GpuRequest { model, count });
    let array = ("[0-9,:-]{1,9}", number()).prop_map(|(tasks, at_once)| ArrayRequest { tasks, at_once });
    let dependency = (any::<u64>(), any::<bool>()).prop_map(|(job, must_succeed)| JobDependency { job, must_succeed });
    let others = collection::vec(
        (prop_oneof![Just("--nice"), Just("--constraint"), Just("--new-option")], text())
            .prop_map(|(option, value)| (option.to_owned(), value)),
        0..3,
    );
    let texts = (text(), text(), text(), text(), text(), text());
    let numbers = (option::of(any::<u32>()), number(), number(), number(), number(), number());
    let parts =
        (option::of(memory), option::of(gpus), option::of(array), option::of(dependency), any::<bool>(), others);
    (texts, numbers, parts).prop_map(|(texts, numbers, parts)| {
        let (name, account, partition, qos, folder, output) = texts;
        let (minutes, nodes, tasks, tasks_per_node, cores, warn_s) = numbers;
        let (memory, gpus, array, dependency, mail, other_options) = parts;
        JobRequest {
            name,
            account,
            partition,
            qos,
            minutes,
            nodes,
            tasks,
            tasks_per_node,
            cores,
            memory,
            gpus,
            array,
            dependency,
            folder,
            output,
            warn_s,
            mail,
            other_options,
        }
    })
}
