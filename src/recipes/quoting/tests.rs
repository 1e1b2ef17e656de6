use std::io::Write as _;
use std::process::Command;

use proptest::prelude::*;

use super::*;

/// The arguments that bash passes to a program for these words.
fn received(words: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {words}\n");
    // A file, because that's how Slurm runs scripts, and an argument could not be this long.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(script.as_bytes()).unwrap();
    let output = Command::new("bash")
        .args(["--noprofile", "--norc"])
        .arg(file.path())
        .env_clear()
        .env("HOME", "/home/al ice")
        .env("SCRATCH", "/scratch/$x")
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

const HOSTILE: &[&str] = &[
    "'; rm -rf ~ #",
    "$(touch /tmp/portolan-was-here)",
    "`id`",
    "\\",
    "\\'",
    "%s %d %",
    "a b  c",
    "\"",
    "${HOME}",
    "$HOME",
    "!!",
    "*",
    "~",
    "{a,b}",
    "-rf",
    "ünïcödé 漢字 🦀",
    "a=b",
    "#SBATCH --account=other",
    "&& true",
    "<(id)",
];

#[test]
fn words_arrive_as_typed() {
    for text in HOSTILE.iter().copied().chain(["", "line\nbreak", "\n#SBATCH -A x", "tab\there"]) {
        assert_eq!(received(&quote_word(text)), [text]);
    }
    let long = "'$x".repeat(33_000);
    assert_eq!(received(&quote_word(&long)), [long.as_str()]);
}

#[test]
fn paths_expand_only_what_is_known() {
    let shown = |text: &str| parse_path(text, PathStartRule::Relative, &[]).unwrap().to_shell();
    assert_eq!(shown("$SCRATCH/data set/x"), "\"$SCRATCH\"'/data set/x'");
    assert_eq!(received(&shown("~/a b/$SCRATCH")), ["/home/al ice/a b//scratch/$x"]);
    assert_eq!(received(&shown("${HOME}x")), ["/home/al icex"]);
    assert_eq!(received(&shown("a$(id)`id`\\$HOME")), ["a$(id)`id`$HOME"]);
    assert_eq!(received(&shown("-rf")), ["./-rf"]);
    for bad in ["$PATH/x", "${LD_PRELOAD}", "a/../b", "..", "~root/x", "a\nb", "a\u{0}b"] {
        assert!(parse_path(bad, PathStartRule::Relative, &[]).is_err(), "{bad:?}");
    }
    assert!(parse_path("train.py", PathStartRule::Absolute, &[]).is_err());
    assert!(parse_path("$lr/x", PathStartRule::Absolute, &["lr".into()]).is_ok());
}

#[test]
fn arguments_are_split_and_nothing_in_them_runs() {
    let got = |text: &str| {
        let words = parse_arguments(text, &[]).unwrap();
        let words: Vec<String> = words.iter().map(ShellWord::to_shell).collect();
        received(&words.join(" "))
    };
    assert_eq!(got("--lr 0.1 --name 'a  b' \"it's $HOME\""), ["--lr", "0.1", "--name", "a  b", "it's /home/al ice"]);
    assert_eq!(got("a;b $(id) `id` | > & * ~/x a~"), {
        ["a;b", "$(id)", "`id`", "|", ">", "&", "*", "/home/al ice/x", "a~"]
    });
    assert_eq!(got("'$HOME' \\$HOME a\\ b \"\" ''"), ["$HOME", "$HOME", "a b", "", ""]);
    assert_eq!(got("one\ntwo\r\n three"), ["one", "two", "three"]);
    for bad in ["'open", "\"open", "$PATH", "a\u{1b}[0m", "'a\nb'"] {
        assert!(parse_arguments(bad, &[]).is_err(), "{bad:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_text_arrives_as_typed(texts in proptest::collection::vec("[^\0]{0,40}", 1..5)) {
        let words: Vec<String> = texts.iter().map(|text| quote_word(text)).collect();
        prop_assert_eq!(received(&words.join(" ")), texts);
    }

    #[test]
    fn any_path_is_literal_or_refused(text in "[^\0$~]{1,40}") {
        if let Ok(words) = parse_path(&text, PathStartRule::Relative, &[]) {
            let wanted = if text.starts_with('-') { format!("./{text}") } else { text.clone() };
            prop_assert_eq!(received(&words.to_shell()), [wanted]);
        }
    }

    #[test]
    fn any_arguments_run_nothing(text in "\\PC{0,60}") {
        if let Ok(words) = parse_arguments(&text, &[]) {
            let shell: Vec<String> = words.iter().map(ShellWord::to_shell).collect();
            prop_assert_eq!(received(&shell.join(" ")).len(), words.len().max(1));
        }
    }

    /// Arguments quoted for a shell parse back to the original text.
    #[test]
    fn quoted_arguments_come_back(texts in proptest::collection::vec("[^\0\\p{Cc}\u{2028}\u{2029}]{0,20}", 1..5)) {
        prop_assume!(texts.iter().all(|text| text.chars().all(is_allowed_char)));
        let line: Vec<String> = texts.iter().map(|text| format!("'{}'", text.replace('\'', r"'\''"))).collect();
        let words = parse_arguments(&line.join(" "), &[]).unwrap();
        let resolved: Vec<String> = words.iter().map(|w| w.resolve(&BTreeMap::new()).unwrap()).collect();
        prop_assert_eq!(resolved, texts);
    }
}
