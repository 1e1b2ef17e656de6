//! Words as Slurm writes them: names, and values that may be unset.

/// The longest name of an account, partition, model and so on.
const MAX_NAME_LEN: usize = 100;

/// Whether this can be a Slurm name: letters, digits and a few signs, nothing that a shell or an option parser would
/// misread.
pub fn is_name(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "_-.+@:".contains(c);
    (1..=MAX_NAME_LEN).contains(&text.len()) && text.chars().all(good) && !text.starts_with('-')
}

/// Whether this can be the name of a user or an account: those contain no colon.
pub fn is_user_or_account(text: &str) -> bool {
    is_name(text) && !text.contains(':')
}

/// The value, unless Slurm says that there is none.
pub fn value_if_set(text: &str) -> Option<&str> {
    let text = text.trim();
    let none = ["", "(null)", "n/a", "none"].iter().any(|word| text.eq_ignore_ascii_case(word));
    (!none).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["def-x_gpu", "nvidia_h100_80gb_hbm3_1g.10gb", "project_465000001", "a+b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-x", "a b", "a;b", "$x", "a|b", "é", &"x".repeat(101)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
