use std::fmt::Write as _;

use super::*;

fn file(name: &str, text: &str) -> AdminRecipeFile {
    AdminRecipeFile { name: name.into(), text: text.into() }
}

#[test]
fn every_shipped_file_can_be_used() {
    let catalog = RecipeCatalog::shipped();
    assert_eq!(catalog.rejected, []);
    assert!(!catalog.recipes.is_empty());
}

#[test]
fn a_wrong_file_is_told_and_the_others_stay() {
    let count = RecipeCatalog::shipped().recipes.len();
    let head = "name = 'x'\ntitle = 'X'\nsummary = 'S.'\n";
    let cases = [
        (format!("{head}colour = 'red'\n"), 4, "unknown field"),
        (format!("{head}script = '''\necho \"{{{{ a }}}}\"\n'''\n"), 5, "inside quotes"),
        (format!("{head}script = 'echo {{{{ nobody }}}}'\n"), 4, "no question has"),
        (format!("{head}use = ['nothing']\n"), 4, "no block"),
        (
            format!(
                "{head}[[questions]]\nkey = 'a'\nkind = 'switch'\nlabel = 'A'\nshow_when = {{ b = [true] }}\n\
                 [[questions]]\nkey = 'b'\nkind = 'switch'\nlabel = 'B'\nshow_when = {{ a = [true] }}\n"
            ),
            0,
            "depends on itself",
        ),
        ("not toml at all".to_owned(), 1, ""),
    ];
    for (text, line, words) in cases {
        let catalog = RecipeCatalog::with_files(&[file("mine.toml", &text)]);
        assert_eq!(catalog.recipes.len(), count);
        let [fault] = catalog.rejected.as_slice() else { panic!("{:?}", catalog.rejected) };
        assert_eq!(fault.file, "mine.toml");
        assert!(fault.error.problem.contains(words), "{words}: {}", fault.error);
        if line > 0 {
            assert_eq!(fault.error.line, line, "{}", fault.error);
        }
    }
    let catalog = RecipeCatalog::with_files(&[file("mine.toml", &format!("{head}script = 'echo'\n"))]);
    assert_eq!((catalog.recipes.len(), catalog.rejected.len()), (count + 1, 0));
}

/// Conditions that depend on each other in many ways must not take exponential time.
#[test]
fn dense_conditions_are_looked_at_once() {
    let mut text = String::from("name = 'x'\ntitle = 'X'\nsummary = 'S.'\nscript = 'true'\n");
    for n in 0..60 {
        let all: Vec<String> = (0..n).map(|other| format!("q{other} = [true]")).collect();
        let all = all.join(", ");
        text.push_str("[[questions]]\nkind = 'switch'\nlabel = 'Q'\n");
        writeln!(text, "key = 'q{n}'\nshow_when = {{ {all} }}").unwrap();
    }
    assert_eq!(RecipeCatalog::with_files(&[file("mine.toml", &text)]).rejected, []);
    let many = (0..300).fold(String::from("name = 'x'\ntitle = 'X'\nsummary = 'S.'\n"), |text, n| {
        format!("{text}[[questions]]\nkey = 'q{n}'\nkind = 'switch'\nlabel = 'Q'\n")
    });
    assert!(RecipeCatalog::with_files(&[file("mine.toml", &many)]).rejected[0].error.problem.contains("more than 200"));
}
