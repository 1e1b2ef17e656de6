use super::*;
use crate::recipes::question::RecipeFileValue;

pub fn question(kind: RecipeQuestionKind) -> RecipeQuestion {
    toml::from_str(&format!("key = 'q'\nlabel = 'Q'\nkind = {}\n", serde_json::to_string(&kind).unwrap())).unwrap()
}

#[test]
fn times_as_people_type_them() {
    let cases = [
        ("3h", 180),
        ("3 hours", 180),
        ("1-12:00", 2160),
        ("1-12:00:00", 2160),
        ("03:00:00", 180),
        ("3:30", 210),
        ("90", 90),
        ("90 min", 90),
        ("1h30", 90),
        ("1 h 30 m", 90),
        ("2 days and 12 hours", 3600),
        ("0.5d", 720),
        ("7-0", 10_080),
        ("30 s", 1),
    ];
    for (text, minutes) in cases {
        assert_eq!(parse_duration(text), Ok(minutes), "{text}");
    }
    for bad in ["", "0", "0:00:00", "lots", "3 parsecs", "-5", "1:2:3:4", "1e9 h", "999999 weeks"] {
        assert!(parse_duration(bad).is_err(), "{bad}");
    }
}

#[test]
fn memory_as_people_type_it() {
    let cases = [
        ("16 gb", 16_384),
        ("16384M", 16_384),
        ("16G", 16_384),
        ("1.5 TB", 1_572_864),
        ("64GiB", 65_536),
        ("500 mb", 500),
        ("100k", 1),
    ];
    for (text, mb) in cases {
        assert_eq!(parse_memory(text), Ok(mb), "{text}");
    }
    for bad in ["lots", "16", "", "G", "-1G", "0G", "99999999999999T", "1e3G", "NaN G"] {
        assert!(parse_memory(bad).is_err(), "{bad}");
    }
}

#[test]
fn limits_are_kept() {
    let limited = |kind, min: &str, max: &str| RecipeQuestion {
        min: RecipeFileValue(min.into()),
        max: RecipeFileValue(max.into()),
        ..question(kind)
    };
    let time = limited(RecipeQuestionKind::Duration, "1h", "1 day");
    assert_eq!(parse_answer(&time, "24h", &[]), Ok(AnswerValue::Minutes(1440)));
    assert_eq!(parse_answer(&time, "25h", &[]), Err("Must be at most 1 day.".into()));
    assert_eq!(parse_answer(&time, "5m", &[]), Err("Must be at least 1h.".into()));
    let number = limited(RecipeQuestionKind::Number, "1", "8");
    assert!(parse_answer(&number, "9", &[]).is_err() && parse_answer(&number, "0", &[]).is_err());
    assert_eq!(parse_answer(&number, " 8 ", &[]), Ok(AnswerValue::Number(8)));
}

#[test]
fn texts_are_one_line_and_lists_are_lines() {
    assert!(parse_answer(&question(RecipeQuestionKind::Text), "a\n#SBATCH --account=x", &[]).is_err());
    assert!(parse_answer(&question(RecipeQuestionKind::Account), "def-x\n", &[]).is_err());
    assert!(parse_answer(&question(RecipeQuestionKind::Account), "-A", &[]).is_err());
    assert!(parse_answer(&question(RecipeQuestionKind::Switch), "perhaps", &[]).is_err());
    let list = parse_answer(&question(RecipeQuestionKind::List), "a b\n\n c \r\n", &[]);
    assert_eq!(list, Ok(AnswerValue::Words(vec![ShellWord::literal("a b"), ShellWord::literal("c")])));
    let variables = parse_answer(&question(RecipeQuestionKind::Variables), "A=1\nB='x y'\nC=it is", &[]).unwrap();
    let AnswerValue::Variables(variables) = variables else { panic!() };
    let words: Vec<String> = variables.iter().map(|(_, words)| words.to_shell()).collect();
    assert_eq!(words, ["1", "'x y'", "'it is'"]);
    assert!(parse_answer(&question(RecipeQuestionKind::Variables), "1A=2", &[]).is_err());
    assert!(parse_answer(&question(RecipeQuestionKind::Variables), "no sign", &[]).is_err());
    assert!(parse_answer(&question(RecipeQuestionKind::Command), "a\u{0}b", &[]).is_err());
    assert_eq!(
        parse_answer(&question(RecipeQuestionKind::Command), "a\r\nb\n", &[]),
        Ok(AnswerValue::Code("a\nb".into()))
    );
    assert!(parse_answer(&question(RecipeQuestionKind::Text), &"x".repeat(100_000), &[]).is_err());
}
