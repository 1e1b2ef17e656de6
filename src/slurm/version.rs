//! `sinfo --version`.

pub const PROGRAM: &str = "sinfo";
pub const ARGS: &[&str] = &["--version"];

/// The version in `slurm 24.11.5` or, on Debian, `slurm-wlm 22.05.8`.
pub fn parse_version(answer: &str) -> Option<String> {
    answer.lines().take(super::MAX_LINES).find_map(|line| {
        let (name, version) = line.trim().split_once(' ')?;
        if name.starts_with("slurm") { checked_version(version) } else { None }
    })
}

/// A version starts with digits and dots (`25.05.0-0rc1` has more after them) and is short.
pub(super) fn checked_version(version: &str) -> Option<String> {
    let version = version.trim();
    let (year, rest) = version.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let good = digits(year)
        && rest.starts_with(|c: char| c.is_ascii_digit())
        && super::text::is_name(version)
        && version.len() <= 40;
    good.then(|| version.to_owned())
}

/// Whether this version creates missing folders of a job's output path; none if that is unknown. 22.05 doesn't. That
/// 24.11 does is inferred from a test run on 24.11.5, not from Slurm's release notes; where it began is unknown.
pub fn creates_output_folders(version: &str) -> Option<bool> {
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    match (numbers.next()?, numbers.next()?) {
        (..=21, _) | (22, ..=5) => Some(false),
        (24, 11..) | (25.., _) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_forms() {
        assert_eq!(parse_version("slurm-wlm 22.05.8\n").as_deref(), Some("22.05.8"));
        assert_eq!(parse_version("slurm 24.11.5").as_deref(), Some("24.11.5"));
        assert_eq!(parse_version("Welcome to Narval\nslurm 25.05.0-0rc1\n").as_deref(), Some("25.05.0-0rc1"));
    }

    #[test]
    fn output_folders() {
        for (version, creates) in [
            ("20.11.9", Some(false)),
            ("22.05.8", Some(false)),
            ("23.02.7", None),
            ("24.05.2", None),
            ("24.11.5", Some(true)),
            ("25.05.0-0rc1", Some(true)),
            ("new", None),
            ("", None),
        ] {
            assert_eq!(creates_output_folders(version), creates, "{version}");
        }
    }

    #[test]
    fn refusals_are_no_version() {
        for text in [
            "",
            "Command rejected by allowed_commands.sh: sinfo --version",
            "bash: sinfo: command not found",
            "sinfo: fatal: Could not establish a configuration source",
            "slurm_load_partitions: Unable to contact slurm controller (connect failure)",
            "slurm .5",
        ] {
            assert_eq!(parse_version(text), None, "{text}");
        }
    }
}
