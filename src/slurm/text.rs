//! Making text from a cluster harmless: bounded, and without characters that steer a terminal or a page.

/// Names of accounts, partitions, models and the like are no longer than this.
const MAX_NAME_LEN: usize = 100;

/// `text` without control and direction characters and blanks around it, at most `most` characters.
pub fn sanitize(text: &str, most: usize) -> String {
    let kept: String = text.chars().filter(|c| !is_control_char(*c)).take(most).collect();
    kept.trim().to_owned()
}

/// Whether the text holds characters that [`plain`] would drop.
pub fn has_control_chars(text: &str) -> bool {
    text.chars().any(is_control_char)
}

/// A name as Slurm has them: a few letters, digits and signs, nothing that a shell or an option would read otherwise.
pub fn is_name(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "_-.+@:".contains(c);
    (1..=MAX_NAME_LEN).contains(&text.len()) && text.chars().all(good) && !text.starts_with('-')
}

/// The value, unless Slurm says that there is none.
pub fn value_if_set(text: &str) -> Option<&str> {
    let text = text.trim();
    let none = ["", "(null)", "n/a", "none"].iter().any(|word| text.eq_ignore_ascii_case(word));
    (!none).then_some(text)
}

fn is_control_char(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_and_directions_go() {
        assert_eq!(sanitize("\u{1b}[31mred\u{202e}\t", 100), "[31mred");
        assert_eq!(sanitize("  abcdef", 4), "ab");
    }

    #[test]
    fn names() {
        for good in ["def-x_gpu", "nvidia_h100_80gb_hbm3_1g.10gb", "project_465000001", "a+b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-x", "a b", "a;b", "$x", "a|b", "é", &"x".repeat(101)] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn plain_is_bounded(text in any::<String>(), most in 0_usize..50) {
            let kept = sanitize(&text, most);
            prop_assert!(kept.chars().count() <= most);
            prop_assert!(!has_control_chars(&kept));
        }
    }
}
