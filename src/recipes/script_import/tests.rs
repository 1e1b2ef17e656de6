use proptest::prelude::*;

use super::*;

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
    for bad in ["--wrap=x", "--parsable", "rm -rf", "", "--a=1 --b=2", "--Bad"] {
        assert_eq!(parse_option(bad), None, "{bad}");
    }
}

#[test]
fn gpus_in_all_their_forms() {
    let read = |option: &str, value: &str, nodes| {
        read_gpus(option, value, nodes)
            .map(|all| all.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" "))
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

    /// What we write, we read.
    #[test]
    fn what_is_written_comes_back(name in "[^\\p{Cc}]{1,20}") {
        let request = JobRequest { name: Some(name.clone()), ..JobRequest::default() };
        let line = request.directives(crate::sites::GpuOption::Gpus)[0].to_line();
        prop_assert_eq!(parse_directives(&format!("#!/bin/sh\n{line}\n")), [("--job-name".to_owned(), Some(name))]);
    }
}
