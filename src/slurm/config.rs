//! `scontrol show config`: cluster-wide settings. Keeps a handful of some two hundred lines.

use super::text;
use super::units;
use super::version;
use crate::text::sanitize;

pub const PROGRAM: &str = "scontrol";
pub const ARGS: &[&str] = &["show", "config"];

/// Plugin names and similar values are cut to this many characters.
const MAX_VALUE_LEN: usize = 200;

/// The controller's settings. Every field may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlurmConfig {
    /// `24.11.5`.
    pub version: Option<String>,
    /// The cluster's name in accounting.
    pub cluster_name: Option<String>,
    /// The host of the primary controller.
    pub controller_host: Option<String>,
    /// The port of the controller, or the range of its ports.
    pub controller_port: Option<String>,
    /// One more than the highest array index.
    pub max_array_size: Option<u32>,
    /// `priority/multifactor` or `priority/basic`.
    pub priority_type: Option<String>,
    /// The weight of fair share in the priority.
    pub fair_share_weight: Option<u64>,
    /// Hours after which usage counts half; none if it never decays or is not reported.
    pub half_life_hours: Option<u32>,
    /// Whether people see only their own jobs.
    pub hides_jobs: bool,
    /// Whether people may reorder their own pending jobs (`scontrol top`).
    pub user_top: bool,
    /// Whether accounting stores job comments.
    pub keeps_comments: bool,
}

impl SlurmConfig {
    pub fn parse(answer: &str) -> Self {
        let mut config = Self::default();
        for line in answer.lines().take(super::MAX_LINES) {
            if let Some((key, value)) = line.split_once('=')
                && let Some(value) = text::value_if_set(value)
            {
                config.set_value(key.trim(), value);
            }
        }
        config
    }

    fn set_value(&mut self, key: &str, value: &str) {
        match key {
            "SLURM_VERSION" => self.version = version::checked_version(value),
            "ClusterName" => self.cluster_name = text::is_name(value).then(|| value.to_owned()),
            "SlurmctldHost[0]" | "SlurmctldHost" | "ControlMachine" => {
                self.controller_host = parse_controller_host(value);
            }
            "SlurmctldPort" => {
                let is_range = value.len() <= 11 && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
                self.controller_port = is_range.then(|| value.to_owned());
            }
            "MaxArraySize" => self.max_array_size = parse_leading_number(value),
            "PriorityType" => self.priority_type = Some(sanitize(value, MAX_VALUE_LEN)),
            "PriorityWeightFairShare" => self.fair_share_weight = parse_leading_number(value),
            "PriorityDecayHalfLife" => self.half_life_hours = parse_half_life(value),
            "AccountingStoreFlags" => {
                self.keeps_comments = split_commas(value).any(|word| word == "job_comment");
            }
            "PrivateData" => self.hides_jobs = split_commas(value).any(|word| word == "jobs"),
            "SchedulerParameters" | "SlurmctldParameters" => {
                self.user_top |= split_commas(value).any(|word| word == "enable_user_top");
            }
            _ => {}
        }
    }

    /// Whether a group's past usage counts in its jobs' priority. Some sites run the plugin for it but give fair
    /// share no weight.
    pub fn uses_fair_share(&self) -> bool {
        self.priority_type.as_deref() == Some("priority/multifactor") && self.fair_share_weight != Some(0)
    }
}

/// The host of `ctl1(10.0.0.1)`.
fn parse_controller_host(value: &str) -> Option<String> {
    let host = value.split('(').next().unwrap_or_default().trim();
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (!host.is_empty() && host.len() <= MAX_VALUE_LEN && host.bytes().all(is_host)).then(|| host.to_ascii_lowercase())
}

/// Parses `7-00:00:00`, `30:00` (minutes and seconds) and `90` (minutes) into whole hours, at least one. Zero means
/// that usage never decays.
fn parse_half_life(value: &str) -> Option<u32> {
    let seconds = units::parse_duration_s(value).filter(|seconds| *seconds > 0)?;
    u32::try_from(seconds.div_ceil(3600)).ok()
}

/// The number before a unit: `300 sec`.
fn parse_leading_number<T: std::str::FromStr>(value: &str) -> Option<T> {
    value.split_whitespace().next()?.parse().ok()
}

fn split_commas(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V22: &str = include_str!("../../tests/fixtures/slurm/scontrol-config-22.05.txt");
    const V24: &str = include_str!("../../tests/fixtures/slurm/scontrol-config-24.11.txt");

    #[test]
    fn recorded_answers() {
        for (answer, version, port) in [(V22, "22.05.8", "16817"), (V24, "24.11.5", "26817")] {
            let config = SlurmConfig::parse(answer);
            let expected = SlurmConfig {
                version: Some(version.into()),
                cluster_name: Some("lab".into()),
                controller_host: Some("ctl1".into()),
                controller_port: Some(port.into()),
                max_array_size: Some(1001),
                priority_type: Some("priority/multifactor".into()),
                fair_share_weight: Some(100_000),
                half_life_hours: Some(168),
                hides_jobs: false,
                user_top: false,
                keeps_comments: true,
            };
            assert_eq!(config, expected);
            assert!(config.uses_fair_share());
        }
    }

    #[test]
    fn other_sites() {
        let config = SlurmConfig::parse(
            "DefMemPerNode           = UNLIMITED\nPriorityType            = priority/multifactor\n\
             PriorityWeightFairShare = 0\nMaxArraySize = many\nClusterName = a b\n",
        );
        assert!(!config.uses_fair_share());
        assert_eq!((config.cluster_name, config.max_array_size), (None, None));
    }

    #[test]
    fn where_the_controller_runs() {
        let host = |line: &str| SlurmConfig::parse(line).controller_host;
        assert_eq!(
            host("SlurmctldHost[0] = Ctl1.example.org(10.0.0.1)\nSlurmctldHost[1] = ctl2\n").unwrap(),
            "ctl1.example.org"
        );
        assert_eq!(host("ControlMachine = ctl1\n").unwrap(), "ctl1");
        assert_eq!([host("SlurmctldHost[0] = (null)\n"), host("SlurmctldHost[0] = a b\n")], [None, None]);
        assert_eq!(SlurmConfig::parse("SlurmctldPort = 6820-6823\n").controller_port.unwrap(), "6820-6823");
        assert_eq!(SlurmConfig::parse("SlurmctldPort = x\n").controller_port, None);
    }

    #[test]
    fn how_fast_use_fades() {
        let hours = |text: &str| SlurmConfig::parse(&format!("PriorityDecayHalfLife = {text}\n")).half_life_hours;
        assert_eq!([hours("7-00:00:00"), hours("14-0")], [Some(168), Some(336)]);
        assert_eq!([hours("36:00:00"), hours("90"), hours("00:30")], [Some(36), Some(2), Some(1)]);
        assert_eq!([hours("00:00:00"), hours("0"), hours("(null)"), hours("soon")], [None; 4]);
        assert_eq!(hours("99999999999999999999-0"), None);
    }

    #[test]
    fn what_people_may_see_and_do() {
        let config = SlurmConfig::parse(
            "PrivateData = accounts,jobs,usage\nSchedulerParameters = bf_interval=5,enable_user_top\n",
        );
        assert!(config.hides_jobs && config.user_top);
        let config = SlurmConfig::parse("PrivateData = none\nSlurmctldParameters = enable_user_tops\n");
        assert!(!config.hides_jobs && !config.user_top);
        assert!(!SlurmConfig::parse("AccountingStoreFlags = job_script\n").keeps_comments);
    }

    #[test]
    fn a_refusal_gives_nothing() {
        let message = "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)";
        assert_eq!(SlurmConfig::parse(message), SlurmConfig::default());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}", cut in 0_usize..9000) {
            let _ = SlurmConfig::parse(&text);
            let _ = SlurmConfig::parse(&V22[..cut.min(V22.len())]);
        }
    }
}
