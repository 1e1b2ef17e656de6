//! `sacctmgr show assoc`: which accounts a person may charge jobs to, and within which limits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::text::{is_name, is_user_or_account, value_if_set};
use super::units::TimeLimit;

pub const PROGRAM: &str = "sacctmgr";
const FORMAT: &str = "format=Cluster,Account,Partition,QOS,DefaultQOS,GrpTRES,MaxJobs,MaxSubmit,MaxWall";

const MAX_ASSOCIATIONS: usize = 1000;
const MAX_ACCOUNTS: usize = 200;
/// The most items kept from a list in one field.
const MAX_WORDS: usize = 100;

/// Its arguments for this remote user; none if the name is invalid.
pub fn args(user: &str) -> Option<Vec<String>> {
    // A comma would make it several users.
    let good = is_user_or_account(user);
    let user = format!("user={user}");
    good.then(|| ["-nP", "show", "assoc", &user, FORMAT].map(str::to_owned).to_vec())
}

/// One row of the output: a person may use an account, perhaps only in one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Association {
    /// Several clusters may share one accounting database.
    pub cluster: String,
    /// Slurm's name for it.
    pub account: String,
    /// None: all partitions.
    pub partition: Option<String>,
    /// The QOS that jobs may request.
    pub qos: Vec<String>,
    /// The QOS of jobs that request none.
    pub default_qos: Option<String>,
    /// The most running jobs; none: no limit here.
    pub max_jobs: Option<u32>,
    /// The most pending and running jobs; none: no limit here.
    pub max_submit: Option<u32>,
    /// The longest time limit in minutes; none: no limit here.
    pub max_minutes: Option<u32>,
}

pub fn parse_associations(answer: &str) -> Vec<Association> {
    answer.lines().take(super::MAX_LINES).filter_map(Association::parse).take(MAX_ASSOCIATIONS).collect()
}

impl Association {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.trim().split('|').collect();
        let [cluster, account, partition, qos, default_qos, _, jobs, submit, wall] = fields.as_slice() else {
            return None;
        };
        (is_name(cluster) && is_name(account)).then_some(())?;
        Some(Self {
            cluster: (*cluster).to_owned(),
            account: (*account).to_owned(),
            partition: value_if_set(partition).filter(|text| is_name(text)).map(str::to_owned),
            qos: split_commas(qos).filter(|word| is_name(word)).map(str::to_owned).collect(),
            default_qos: value_if_set(default_qos).filter(|text| is_name(text)).map(str::to_owned),
            max_jobs: jobs.parse().ok(),
            max_submit: submit.parse().ok(),
            max_minutes: TimeLimit::parse(wall).minutes(),
        })
    }
}

fn split_commas(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|word| !word.is_empty()).take(MAX_WORDS)
}

/// An account as people know it. Some centres keep two Slurm accounts behind each, `def-x_cpu` and `def-x_gpu`, and
/// let people submit with `def-x`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubmitAccount {
    /// The name to submit with.
    pub name: String,
    /// The Slurm accounts behind it, as `sshare` and `sacct` need them.
    pub slurm_names: Vec<String>,
    /// Whether jobs without GPUs may be charged to it.
    pub for_cpu: bool,
    /// Whether jobs with GPUs may be charged to it.
    pub for_gpu: bool,
    /// The QOS that jobs may request.
    pub qos: Vec<String>,
    /// The QOS of jobs that request none.
    pub default_qos: Option<String>,
    /// The only partitions it may be used in; empty: all.
    pub partitions: Vec<String>,
    /// The most running jobs; none: no limit here. If there are two accounts behind it, the higher limit.
    pub max_jobs: Option<u32>,
    /// The most pending and running jobs, likewise.
    pub max_submit: Option<u32>,
    /// The longest time limit in minutes, likewise.
    pub max_minutes: Option<u32>,
}

/// The accounts behind the associations, sorted by name. `suffixes` are the endings that the centre adds to names: an
/// ending of `cpu` or `gpu` also says what the account is for.
pub fn collect_accounts(associations: &[Association], suffixes: &[String]) -> Vec<SubmitAccount> {
    let mut found: BTreeMap<&str, SubmitAccount> = BTreeMap::new();
    for association in associations {
        let (name, suffix) = split_suffix(&association.account, suffixes);
        if let Some(account) = found.get_mut(name) {
            account.add(association, suffix);
        } else if found.len() < MAX_ACCOUNTS {
            found.insert(name, SubmitAccount::new(name, association, suffix));
        }
    }
    found.into_values().collect()
}

/// Splits off the first suffix that matches.
fn split_suffix<'a>(account: &'a str, suffixes: &[String]) -> (&'a str, &'a str) {
    let fits = |suffix: &String| {
        let name = account.strip_suffix(suffix.as_str())?;
        (!suffix.is_empty() && !name.is_empty()).then(|| (name, &account[name.len()..]))
    };
    suffixes.iter().find_map(fits).unwrap_or((account, ""))
}

impl SubmitAccount {
    fn new(name: &str, association: &Association, suffix: &str) -> Self {
        let mut account = Self {
            name: name.to_owned(),
            partitions: association.partition.iter().cloned().collect(),
            max_jobs: association.max_jobs,
            max_submit: association.max_submit,
            max_minutes: association.max_minutes,
            ..Self::default()
        };
        account.add(association, suffix);
        account
    }

    fn add(&mut self, association: &Association, suffix: &str) {
        self.for_cpu |= !suffix.ends_with("gpu");
        self.for_gpu |= !suffix.ends_with("cpu");
        push_unique(&mut self.slurm_names, &association.account);
        for qos in &association.qos {
            push_unique(&mut self.qos, qos);
        }
        self.default_qos = self.default_qos.take().or_else(|| association.default_qos.clone());
        match &association.partition {
            Some(partition) if !self.partitions.is_empty() => {
                push_unique(&mut self.partitions, partition);
            }
            Some(_) => {}
            None => self.partitions.clear(),
        }
        self.max_jobs = wider_limit(self.max_jobs, association.max_jobs);
        self.max_submit = wider_limit(self.max_submit, association.max_submit);
        self.max_minutes = wider_limit(self.max_minutes, association.max_minutes);
    }
}

fn push_unique(list: &mut Vec<String>, word: &str) {
    if list.len() < MAX_WORDS && !list.iter().any(|known| known == word) {
        list.push(word.to_owned());
    }
}

fn wider_limit(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one.zip(other).map(|(one, other)| one.max(other))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V22: &str = include_str!("../../tests/fixtures/slurm/sacctmgr-assoc-22.05.txt");
    const V24: &str = include_str!("../../tests/fixtures/slurm/sacctmgr-assoc-24.11.txt");

    fn suffixes() -> Vec<String> {
        vec!["_cpu".into(), "_gpu".into()]
    }

    #[test]
    fn the_words_hold_one_person() {
        assert_eq!(args("alice").unwrap()[3], "user=alice");
        for bad in ["", "a b", "a,b", "$(id)", "a:b", "-x", "a*"] {
            assert_eq!(args(bad), None, "{bad}");
        }
    }

    #[test]
    fn recorded_associations() {
        let found = parse_associations(V22);
        assert_eq!(found.len(), 6);
        assert_eq!(
            found[0],
            Association {
                cluster: "harbour".into(),
                account: "def-lee_gpu".into(),
                partition: None,
                qos: vec!["debug".into(), "high".into(), "normal".into()],
                default_qos: Some("normal".into()),
                max_jobs: Some(4),
                max_submit: Some(1000),
                max_minutes: Some(36 * 60),
            }
        );
        assert_eq!(found[1].max_minutes, Some(90));
        assert_eq!(found[4].partition.as_deref(), Some("gpu"));
        assert_eq!(parse_associations(V24).len(), 3);
    }

    #[test]
    fn two_accounts_behind_one_name() {
        let found = collect_accounts(&parse_associations(V22), &suffixes());
        let names: Vec<_> = found.iter().map(|account| account.name.as_str()).collect();
        assert_eq!(names, ["def-jones", "def-lee", "def-smith", "rrg-smith"]);
        let lee = &found[1];
        assert_eq!(lee.slurm_names, ["def-lee_gpu", "def-lee_cpu"]);
        assert!(lee.for_cpu && lee.for_gpu);
        assert_eq!(
            (lee.max_jobs, lee.max_submit, lee.max_minutes),
            (None, Some(1000), Some(2160)),
            "the wider of each limit"
        );
        assert!(found[0].partitions.is_empty(), "one association is for all partitions");
        assert_eq!(found[2].qos, ["debug", "high", "normal"]);
    }

    #[test]
    fn marks_of_suffixes() {
        let rows = "c|rrg-a_gpu|||||||\nc|rrg-b_cpu|||||||\nc|plain|p1||||||\nc|_gpu|||||||\nc|x|\n";
        let found = collect_accounts(&parse_associations(rows), &suffixes());
        let marks: Vec<_> = found.iter().map(|a| (a.name.as_str(), a.for_cpu, a.for_gpu)).collect();
        assert_eq!(
            marks,
            [("_gpu", true, true), ("plain", true, true), ("rrg-a", false, true), ("rrg-b", true, false)]
        );
        assert_eq!(found[1].partitions, ["p1"]);
        assert_eq!(collect_accounts(&parse_associations(rows), &[]).len(), 4);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,300}|([a-z]{0,3}\\|){8}[0-9:-]{0,9}") {
            let _ = collect_accounts(&parse_associations(&text), &suffixes());
        }
    }
}
