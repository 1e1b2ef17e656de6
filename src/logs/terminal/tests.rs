use proptest::prelude::*;

use super::*;

fn shown(bytes: &[u8]) -> Vec<String> {
    render(bytes, false).texts()
}

fn classes(text: &str) -> Vec<(String, &'static str)> {
    let lines = render(text.as_bytes(), false).lines;
    lines.into_iter().flat_map(|line| line.spans).map(|span| (span.text, span.class)).collect()
}

#[test]
fn progress_bars_end_as_their_last_state() {
    let bar = "Epoch 1:   0%|     | 0/2\rEpoch 1:  50%|##   | 1/2\rEpoch 1: 100%|#####| 2/2\ndone\n";
    assert_eq!(shown(bar.as_bytes()), ["Epoch 1: 100%|#####| 2/2", "done"]);
    // Two tqdm bars, each on its own line.
    let two = "a 0%\n\rb 0%\u{1b}[A\ra 50%\n\rb 40%\u{1b}[A\ra 100%\n\rb 100%\u{1b}[A\n\nend\n";
    assert_eq!(shown(two.as_bytes()), ["a 100%", "b 100%", "end"]);
    // Lightning and pip clear the line first.
    assert_eq!(shown(b"a long line\r\x1b[Kshort\n"), ["short"]);
    assert_eq!(shown(b"a long line\x1b[2K\rshort\n"), ["short"]);
    assert_eq!(shown(b"one\ntwo\nthree\n\x1b[2A\x1b[Jdone\n"), ["one", "done"]);
    assert_eq!(shown(b"50%\x08\x08\x0860%\n"), ["60%"]);
    assert_eq!(shown(b"windows\r\nline ends\r\n"), ["windows", "line ends"]);
}

#[test]
fn colours_become_classes() {
    let red = classes("\u{1b}[1;31mError\u{1b}[0m: x");
    assert_eq!(red, [("Error".to_owned(), "fg-red b"), (": x".to_owned(), "")]);
    for (code, class) in [
        ("94", "fg-bright-blue"),
        ("38;5;196", "fg-bright-red"),
        ("38;5;2", "fg-green"),
        ("38;5;244", "fg-bright-black"),
        ("38;2;255;140;0", "fg-bright-yellow"),
        ("38:2::0:0:250", "fg-bright-blue"),
        ("38:5:9", "fg-bright-red"),
        ("48;5;4;37", "fg-white bg-blue"),
        ("2;3;4", "dim i u"),
        ("4:0", ""),
        ("1;22", ""),
        ("31;41", "fg-red"),
        ("7", "rev"),
        ("38;5", ""),
        ("38;9;1", "b"),
        ("999", ""),
        ("?25", ""),
        ("", ""),
    ] {
        let found = classes(&format!("\u{1b}[{code}mx\u{1b}[m"));
        assert_eq!(found, [("x".to_owned(), class)], "{code}");
    }
}

#[test]
fn tricks_and_titles_go() {
    for (raw, text) in [
        ("\u{1b}]0;title\u{7}a", "a"),
        ("\u{1b}]8;;https://evil.example\u{1b}\\click\u{1b}]8;;\u{1b}\\", "click"),
        ("\u{1b}P1$r0m\u{1b}\\a", "a"),
        ("\u{1b}(Ba\u{1b}=b\u{1b}", "ab"),
        ("\u{9b}31mred", "red"),
        ("a\u{202e}b\u{200f}c", "a▯b▯c"),
        ("a\u{ad}b\u{200b}c", "a▯b▯c"),
        ("⠋\u{2800}👩\u{200d}💻", "⠋\u{2800}👩\u{200d}💻"),
        ("a\u{0}b\u{7}c\u{1}", "abc▯"),
        ("a\tb", "a       b"),
        ("\u{1b}[?25l\u{1b}[3;1Hx", "x"),
        ("Ødegård 名前 ⚡\u{fe0f}", "Ødegård 名前 ⚡\u{fe0f}"),
    ] {
        assert_eq!(shown(raw.as_bytes()), [text], "{raw:?}");
    }
    assert_eq!(shown(b"a\xffb\n"), ["a\u{fffd}b"]);
}

#[test]
fn the_end_of_a_longer_log() {
    let cut = render("\u{e5}lf a line\nwhole\n".as_bytes()[1..].as_ref(), true);
    assert_eq!((cut.texts(), cut.is_cut), (vec!["whole".to_owned()], true));
    assert_eq!(render(b"31mx 10%\rx 20%", true).texts(), ["x 20%"]);
    assert_eq!(render(b"\xa5abc", true).texts(), ["abc"]);
    // A character that is still being written.
    assert_eq!(shown(b"abc\xe2\x96"), ["abc"]);
    assert_eq!(shown(b"abc\x1b["), ["abc"]);
}

#[test]
fn everything_is_bounded() {
    let long = "x".repeat(MAX_LINE_CHARS + 10);
    let lines = shown(long.as_bytes());
    assert_eq!(lines[0].chars().count(), MAX_LINE_CHARS + 1);
    assert!(lines[0].ends_with(CUT_MARK));
    let many = render("l\n".repeat(MAX_LINES + 5).as_bytes(), false);
    assert_eq!((many.lines.len(), many.is_cut), (MAX_LINES, true));
    let wide = render("\u{1b}[4000Cx\n".repeat(5_000).as_bytes(), false);
    let cells: usize = wide.lines.iter().map(|line| line.text().len()).sum();
    assert!(cells < 1_000_000, "{cells}");
    let gaudy = format!("{}\n", "\u{1b}[31ma\u{1b}[32mb".repeat(4)).repeat(15_000);
    let gaudy = render(gaudy.as_bytes(), false);
    let spans: usize = gaudy.lines.iter().map(|line| line.spans.len()).sum();
    assert!((MAX_SPANS..=MAX_SPANS + MAX_LINES).contains(&spans), "{spans}");
}

#[test]
fn what_is_no_text_is_told() {
    assert!(render(&(0..=255).cycle().take(4_000).collect::<Vec<u8>>(), false).is_binary);
    assert!(!render("plain ünïcode\n".repeat(50).as_bytes(), false).is_binary);
    let hole = [vec![0_u8; 5_000], b"after the file was shortened\n".to_vec()].concat();
    assert!(!render(&hole, false).is_binary);
    assert_eq!(shown(&hole), ["after the file was shortened"]);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(
        prop_oneof![any::<u8>(), Just(0x1b), Just(b'['), Just(b'\r'), Just(b'\n'), Just(b'm'), Just(b'A'), Just(b';'), Just(b'3')],
        0..400), mid in any::<bool>()) {
        let rendered = render(&bytes, mid);
        for line in &rendered.lines {
            for span in &line.spans {
                prop_assert!(!span.text.is_empty());
                prop_assert!(!span.text.chars().any(is_disruptive), "{:?}", span.text);
            }
        }
    }

    #[test]
    fn plain_text_stays_as_it_is(lines in proptest::collection::vec("[ -~äøß名█]{0,60}", 0..20)) {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        prop_assert_eq!(shown(text.as_bytes()), lines);
    }
}
