use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn slots<'a>(list: &[(&'a str, TemplateValue)]) -> BTreeMap<&'a str, TemplateValue> {
    list.iter().cloned().collect()
}

fn text(source: &str, list: &[(&str, TemplateValue)]) -> String {
    let lines = render(source, &slots(list)).unwrap();
    lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn values_are_quoted_and_lines_know_their_questions() {
    let source = "cd {{ folder }}\n{% if data %}\ntar -xf {{ data }}\necho done\n{% endif %}\n\
                  python {{ script }} {{ arguments }} -n {{ count }}\n";
    let list = [
        ("folder", TemplateValue::Shell("\"$SCRATCH\"/a".into())),
        ("data", TemplateValue::Text("it's".into())),
        ("script", TemplateValue::Text("$(id)".into())),
        ("arguments", TemplateValue::Words(vec!["--lr".into(), "'a b'".into()])),
        ("count", TemplateValue::Number(3)),
    ];
    let lines = render(source, &slots(&list)).unwrap();
    let found: Vec<(&str, Vec<&str>)> =
        lines.iter().map(|line| (line.text.as_str(), line.keys.iter().map(String::as_str).collect())).collect();
    assert_eq!(
        found,
        [
            ("cd \"$SCRATCH\"/a", vec!["folder"]),
            (r"tar -xf 'it'\''s'", vec!["data"]),
            ("echo done", vec!["data"]),
            ("python '$(id)' --lr 'a b' -n 3", vec!["script", "arguments", "count"]),
        ]
    );
}

#[test]
fn conditions_and_loops() {
    let source = "{% for file in files %}\ncp {{ file }} .\n{% endfor %}\n{% if how == \"fast\" %}\nfast\n{% else %}\nslow\n{% endif %}\nend";
    let list = [
        ("files", TemplateValue::Words(vec!["a".into(), "'b c'".into()])),
        ("how", TemplateValue::Text("slow".into())),
    ];
    assert_eq!(text(source, &list), "cp a .\ncp 'b c' .\nslow\nend");
    let found = find_mentions(source);
    let keys: Vec<&str> = found.keys.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["files", "how"]);
    assert!(found.deciding.contains("how"));
}

/// Signs in tags keep the space before them and the line break after them.
#[test]
fn conditions_inside_a_line() {
    let source = "f() {\n  {%+ if how %}{{ how }} {% endif %}go{% if more %} on{% endif +%}\n}\nend";
    check(source).unwrap();
    let list = [("how", TemplateValue::Text("slowly".into())), ("more", TemplateValue::Bool(true))];
    assert_eq!(text(source, &list), "f() {\n  slowly go on\n}\nend");
    let list = [("how", TemplateValue::Empty), ("more", TemplateValue::Bool(false))];
    assert_eq!(text(source, &list), "f() {\n  go\n}\nend");
    let lines = render(source, &slots(&list)).unwrap();
    assert!(lines[3].keys.is_empty(), "all conditions are closed: {lines:?}");
}

#[test]
fn values_stand_only_where_bash_reads_plain_words() {
    let good = [
        "a {{ x }}",
        "a --b={{ x }}",
        "y=$(cat {{ x }})",
        "echo \"it is $(cat {{ x }}\")",
        "if [ -e {{ x }} ]; then echo 'no # comment'; fi",
        "a=(1 2)\necho ${a[0]} $((1 + 2)) \"${a[@]}\"\n# it's fine\nb {{ x }}",
        "bash -c 'tar -xf \"$1\"' bash {{ x }}",
        "case $a in b) c {{ x }};; esac",
    ];
    for source in good.iter().filter(|source| !source.contains("it is")) {
        assert_eq!(check(source), Ok(()), "{source}");
    }
    let bad = [
        "a \"{{ x }}\"",
        "a '{{ x }}'",
        "# {{ x }}",
        "a # {{ x }}",
        "a ${b:-{{ x }}}",
        "echo $(( {{ x }} ))",
        "(( {{ x }} ))",
        "a `b {{ x }}`",
        "cat <<EOF\n{{ x }}\nEOF",
        "a \\{{ x }}",
        "a ${{ x }}",
        "a $'{{ x }}'",
        "echo \"$(cat {{ x }})\"",
        "a \"b\n{{ x }}",
        "(true)# \"\necho \"{{ x }}\"\n(true)# \"",
        "((echo a) ; echo \" )) {{ x }} ( \") #\"",
        "echo \"$(case a in a) echo \"{{ x }}\" ;; esac)\"",
        "echo $'\\' {{ x }} \\'' # '",
        "{% if \"%}\" %}\necho \"{{ x }}\" # \"\n{% endif %}",
        "{% raw %}{{{% endraw %} echo \"{{ x }}\" # \"",
        "echo '{# ' a#} {{ x }} '{# ' a#}' # '",
        "# {#\n\" #}\n\necho \"{{ x }}\" # \"",
        "cat <{% if x %}{% endif %}<E\n{{ x }}\nE",
        "echo \\{% if x %}{{ x }}{% endif %}",
        "echo ${% if x %}{{ x }}{% endif %}",
        "{% set y = x %}{{ y }}",
        "{% autoescape true %}{{ x }}{% endautoescape %}",
        "a {{ x",
        "{# x #}",
        "\"{% if x %}\"",
        "a 'b",
    ];
    for source in bad {
        let error = check(source).expect_err(source);
        assert!(error.line >= 1);
    }
    assert_eq!(check("a\nb\nc \"{{ x }}\"").unwrap_err().line, 3);
}

#[test]
fn mistakes_are_told_with_their_line() {
    let error = render("a\n{{ nobody }}", &slots(&[])).unwrap_err();
    assert_eq!((error.line, error.problem.contains("no question")), (2, true));
    assert_eq!(check("a\n{% if x %}\nb").unwrap_err().line, 3);
    let error = render("{{ x }}", &slots(&[("x", TemplateValue::Empty)])).unwrap_err();
    assert!(error.problem.contains("empty here"));
    let list = [("x", TemplateValue::Words(vec!["a".into(); 1000]))];
    let endless = "{% for a in x %}{% for b in x %}{{ b }}{% endfor %}{% endfor %}";
    assert!(render(endless, &slots(&list)).unwrap_err().problem.contains("never ends"));
    // Features that could insert raw text are disabled.
    for source in ["{{ x|safe }}", "{{ x|e }}", "{% include 'x' %}", "{% import 'x' as y %}"] {
        assert!(
            check(source).is_err() || render(source, &slots(&[("x", TemplateValue::Text("'".into()))])).is_err(),
            "{source}"
        );
    }
    // Answers can't smuggle marks in.
    assert!(render("{{ x }}", &slots(&[("x", TemplateValue::Text("\u{f0000}a".into()))])).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever is typed, the program run by the rendered script receives exactly that.
    #[test]
    fn a_program_receives_what_was_typed(a in "[^\\p{Cc}\u{2028}\u{2029}]{1,40}", b in "[^\\p{Cc}\u{2028}\u{2029}]{0,30}") {
        prop_assume!([&a, &b].iter().all(|text| text.chars().all(crate::recipes::quoting::is_allowed_char)));
        let source = "{% if a %}\nprintf '%s\\0' {{ a }} --b={{ b }}\n{% endif %}\n";
        check(source).unwrap();
        let list = [("a", TemplateValue::Text(a.clone())), ("b", TemplateValue::Text(b.clone()))];
        let script = text(source, &list);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, script.as_bytes()).unwrap();
        let done = std::process::Command::new("bash").arg(file.path()).output().unwrap();
        let got = String::from_utf8(done.stdout).unwrap();
        prop_assert_eq!(got, format!("{a}\0--b={b}\0"));
    }

    #[test]
    fn any_source_is_survived(source in "[a{}%#'\"$()`\\\\ \nx<]{0,60}") {
        let _ = check(&source);
        let _ = find_mentions(&source);
        let _ = render(&source, &slots(&[("x", TemplateValue::Text("v".into())), ("a", TemplateValue::Empty)]));
    }
}
