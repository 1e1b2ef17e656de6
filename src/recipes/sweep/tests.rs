use proptest::prelude::*;

use super::*;

#[test]
fn lists_and_ranges() {
    let cases: &[(&str, &[&str])] = &[
        ("0.1, 0.01 ,0.001", &["0.1", "0.01", "0.001"]),
        ("1..5", &["1", "2", "3", "4", "5"]),
        ("5..3", &["5", "4", "3"]),
        ("0..1 step 0.25", &["0", "0.25", "0.5", "0.75", "1"]),
        ("0..0.3 step 0.1", &["0", "0.1", "0.2", "0.3"]),
        ("1e-4..1e-1 log 4", &["1e-4", "0.001", "0.01", "0.1"]),
        ("adam, 'a, b', \"\"", &["adam", "a, b", ""]),
        ("one\ntwo, three", &["one", "two", "three"]),
        ("v1..v2", &["v1..v2"]),
        ("$(id), `x`", &["$(id)", "`x`"]),
    ];
    for (text, wanted) in cases {
        assert_eq!(parse_values(text).unwrap(), *wanted, "{text}");
    }
    for bad in ["", " , ", "1..10 step 0", "1..10 step -1", "0..1 log 3", "1..2 every 3", "'a"] {
        assert!(parse_values(bad).is_err(), "{bad}");
    }
    assert!(parse_values("1..1000000").unwrap_err().contains("at most 100000"));
    assert!(parse_values("0..1 step 1e-300").is_err());
}

fn sweep(how: SweepMode) -> Sweep {
    Sweep { axes: parse_parameters("lr = 0.1, 0.01, 0.001\nbatch = 16, 32, 64, 128").unwrap(), how }
}

#[test]
fn a_grid_has_every_pair_once() {
    let grid = sweep(SweepMode::Grid);
    assert_eq!(grid.count_points(), Ok(12));
    assert_eq!(grid.label(0), "lr=0.1 batch=16");
    assert_eq!(grid.label(5), "lr=0.01 batch=32");
    assert_eq!(grid.label(11), "lr=0.001 batch=128");
    assert!(sweep(SweepMode::Zip).count_points().unwrap_err().contains("lr has 3, batch has 4"));
    let large = Sweep { axes: parse_parameters("a = 1..1000\nb = 1..1000").unwrap(), how: SweepMode::Grid };
    assert!(large.count_points().is_err());
}

/// Arguments are several words each: tasks get them as an array.
#[test]
fn values_of_several_words() {
    let axis = SweepAxis {
        name: "arguments".into(),
        values: vec!["--lr 0.1".into(), "--name 'a b' '$(id)'".into(), "1,2".into()],
        words: vec!["--lr 0.1".into(), "--name 'a b' '$(id)'".into(), "1,2".into()],
        has_several_words: true,
        key: Some("arguments".into()),
    };
    let mut sweep = Sweep { axes: parse_parameters("seed = 5, 6").unwrap(), how: SweepMode::Grid };
    sweep.axes.push(axis);
    let lines: Vec<String> = sweep.script_lines().into_iter().map(|line| line.text).collect();
    let script = format!("{}\nprintf '%s|' \"$seed\" \"${{arguments[@]}}\"\n", lines.join("\n"));
    for (task, expected) in [(0, "5|--lr|0.1|"), (1, "5|--name|a b|$(id)|"), (5, "6|1,2|")] {
        let done = std::process::Command::new("bash")
            .args(["-c", &script])
            .env("SLURM_ARRAY_TASK_ID", task.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        assert_eq!(said.lines().last(), Some(expected), "{said}");
    }
    assert!(lines.contains(&"export seed".to_owned()), "{lines:?}");
}

#[test]
fn names_are_small_and_known_once() {
    for bad in ["LR = 1", "1a = 2", "path-x = 3", "a = 1\na = 2", "just words", "a b = 1"] {
        assert!(parse_parameters(bad).is_err(), "{bad}");
    }
}

/// The values that a task of the script sees.
fn found(sweep: &Sweep, task: usize) -> String {
    let lines: Vec<String> = sweep.script_lines().into_iter().map(|line| line.text).collect();
    let names: Vec<String> = sweep.axes.iter().map(|axis| format!("\"${}\"", axis.name)).collect();
    let script = format!("{} >/dev/null\nprintf '%s\\0' {}\n", lines.join("\n"), names.join(" "));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, script.as_bytes()).unwrap();
    let done = std::process::Command::new("bash")
        .arg(file.path())
        .env("SLURM_ARRAY_TASK_ID", task.to_string())
        .output()
        .unwrap();
    String::from_utf8(done.stdout).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// The script finds the same point as the table on the page.
    #[test]
    fn bash_and_the_table_agree(
        a in proptest::collection::vec("[^\\p{Cc}\u{2028}\u{2029}]{0,12}", 1..5),
        b in proptest::collection::vec("[a-z$'\" ]{0,6}", 1..5),
        pick in 0_usize..100,
        zipped in any::<bool>(),
    ) {
        let length = a.len().min(b.len());
        let (a, b, how) = if zipped {
            (a[..length].to_vec(), b[..length].to_vec(), SweepMode::Zip)
        } else {
            (a, b, SweepMode::Grid)
        };
        let sweep = Sweep { axes: vec![SweepAxis::new("a", a), SweepAxis::new("b", b)], how };
        let task = pick % sweep.len();
        let wanted: String = sweep.point(task).iter().fold(String::new(), |text, (_, value)| text + value + "\0");
        prop_assert_eq!(found(&sweep, task), wanted);
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,40}") {
        let _ = parse_values(&text);
        let _ = parse_parameters(&text);
    }
}
