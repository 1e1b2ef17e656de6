use proptest::prelude::*;

use super::*;

fn lines(list: &[(&str, &str)]) -> Vec<RenderedScriptLine> {
    list.iter().map(|(text, key)| RenderedScriptLine::from_question(*text, key)).collect()
}

fn text(lines: &[RenderedScriptLine]) -> String {
    lines.iter().fold(String::new(), |text, line| text + &line.text + "\n")
}

const FIRST: &[(&str, &str)] = &[
    ("#!/bin/bash", "top"),
    ("#SBATCH --time=01:00:00", "time"),
    ("#SBATCH --mem=4G", "memory"),
    ("python train.py", "script"),
];

#[test]
fn what_a_person_wrote_stays_and_the_rest_follows_the_form() {
    let first = lines(FIRST);
    let own = text(&first).replace("--mem=4G", "--mem=7G") + "echo done\n";
    let now = lines(&[FIRST[0], ("#SBATCH --time=02:00:00", "time"), FIRST[2], FIRST[3]]);
    let edited = merge_edits(&text(&first), &own, &now, &[]);
    assert_eq!(edited.script(), "#!/bin/bash\n#SBATCH --time=02:00:00\n#SBATCH --mem=7G\npython train.py\necho done\n");
    let keys: Vec<&[String]> = edited.changes.iter().map(|change| change.keys.as_slice()).collect();
    assert_eq!(keys, [&["memory".to_owned()][..], &[]]);
    assert_eq!(edited.changes[0].generated, ["#SBATCH --mem=4G"]);
    assert_eq!((edited.changes[0].first_line, edited.changes[1].first_line), (3, 5));
    // Reverting the first change leaves the second.
    let back = merge_edits(&text(&now), &edited.script(), &now, &[0]);
    assert!(back.script().contains("--mem=4G") && back.script().ends_with("echo done\n"));
    assert_eq!(back.changes.len(), 1);
}

#[test]
fn a_line_that_both_change_stays_as_the_person_wrote_it_and_says_so() {
    let first = lines(FIRST);
    let own = text(&first).replace("--mem=4G", "--mem=7G");
    let now = lines(&[FIRST[0], FIRST[1], ("#SBATCH --mem=9G", "memory"), FIRST[3]]);
    let edited = merge_edits(&text(&first), &own, &now, &[]);
    assert!(edited.script().contains("--mem=7G") && !edited.script().contains("9G"));
    assert_eq!(edited.changes[0].generated, ["#SBATCH --mem=9G"]);
}

#[test]
fn what_a_person_deleted_stays_deleted() {
    let first = lines(FIRST);
    let own = text(&first).replace("#SBATCH --mem=4G\n", "");
    let edited = merge_edits(&text(&first), &own, &first, &[]);
    assert_eq!(edited.script(), own);
    assert_eq!(edited.changes[0].keys, ["memory"]);
    let back = merge_edits(&text(&first), &own, &first, &[0]);
    assert_eq!((back.script(), back.changes.len()), (text(&first), 0));
}

#[test]
fn no_change_is_none() {
    let first = lines(FIRST);
    let edited = merge_edits(&text(&first), &text(&first).replace('\n', "\r\n"), &first, &[]);
    assert_eq!((edited.script(), edited.changes.len()), (text(&first), 0));
}

proptest! {
    /// As long as the form doesn't change, the script is exactly what the person wrote.
    #[test]
    fn nothing_is_overwritten(base in "([ab]\n){0,8}", own in "([abc]\n){0,8}") {
        let now: Vec<RenderedScriptLine> = base.lines().map(RenderedScriptLine::plain).collect();
        prop_assert_eq!(merge_edits(&base, &own, &now, &[]).script(), own);
    }

    /// Without edits, the script is exactly what the form generates.
    #[test]
    fn nothing_is_kept_that_nobody_wrote(base in "([ab]\n){0,8}", now in "([abc]\n){0,8}") {
        let lines: Vec<RenderedScriptLine> = now.lines().map(RenderedScriptLine::plain).collect();
        prop_assert_eq!(merge_edits(&base, &base, &lines, &[]).script(), now);
    }

    #[test]
    fn any_mix_is_survived(base in "([abc]\n){0,8}", own in "([abc]\n){0,8}", now in "([abc]\n){0,8}") {
        let lines: Vec<RenderedScriptLine> = now.lines().map(RenderedScriptLine::plain).collect();
        let edited = merge_edits(&base, &own, &lines, &[]);
        for change in &edited.changes {
            prop_assert!(change.first_line >= 1 && change.first_line <= edited.lines.len() + 1);
        }
    }
}

#[test]
fn very_long_scripts_are_taken_as_they_are() {
    let base = "a\n".repeat(4000);
    let own = "b\n".repeat(4000);
    let now: Vec<RenderedScriptLine> = base.lines().map(RenderedScriptLine::plain).collect();
    assert_eq!(merge_edits(&base, &own, &now, &[]).script(), own);
    assert_eq!(merge_edits(&base, &own, &now, &[0]).script(), base);
}
