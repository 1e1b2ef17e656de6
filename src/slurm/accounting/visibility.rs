//! Whose jobs someone sees in the accounting: everybody's, those of the accounts they coordinate, or only their own.
//! `sacctmgr show config` has the settings of the accounting database, `sacctmgr show user` the person's rights.

use crate::slurm::text::{is_user_or_account, value_if_set};

pub const PROGRAM: &str = "sacctmgr";
pub const CONFIG_ARGS: &[&str] = &["-n", "show", "config"];

const MAX_ACCOUNTS: usize = 1000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountingVisibility {
    /// Whether the accounting shows people only their own jobs, apart from what follows. `None`: it did not say.
    pub hides_jobs: Option<bool>,
    /// An operator or administrator of the accounting sees all jobs.
    pub is_operator: bool,
    /// The accounts whose jobs they see: as coordinator, or because other people's jobs there were seen.
    pub covered_accounts: Vec<String>,
}

impl AccountingVisibility {
    /// Reads both answers. `hides_jobs` is what Slurm's own configuration says.
    pub fn parse(config: &str, user: &str, hides_jobs: bool) -> Self {
        let hides = |line: &str| {
            let (key, value) = line.split_once('=')?;
            let hides = value.split(',').any(|word| word.trim().eq_ignore_ascii_case("jobs"));
            (key.trim() == "PrivateData").then_some(hides)
        };
        let said = config.lines().take(crate::slurm::MAX_LINES).filter_map(hides).reduce(|a, b| a || b);
        // That Slurm itself shows all jobs says nothing about its accounting, which has settings of its own.
        let mut found = Self { hides_jobs: if hides_jobs { Some(true) } else { said }, ..Self::default() };
        if let Some((level, accounts)) = user.lines().find_map(|line| line.trim().split_once('|')) {
            found.is_operator = ["Operator", "Administrator"].contains(&level);
            let accounts = value_if_set(accounts).unwrap_or_default().split(',').map(str::trim);
            let accounts = accounts.filter(|account| is_user_or_account(account)).take(MAX_ACCOUNTS);
            found.covered_accounts = accounts.map(str::to_owned).collect();
        }
        found
    }

    /// Whether they see all jobs of an account, as Slurm names it.
    pub fn covers(&self, account: &str) -> bool {
        self.hides_jobs == Some(false) || self.is_operator || self.covered_accounts.iter().any(|known| known == account)
    }
}

/// The arguments for a person's rights; none if the name is invalid.
pub fn user_args(user: &str) -> Option<Vec<String>> {
    // A comma would make it several users.
    let good = is_user_or_account(user) && !user.contains(',');
    let name = format!("name={user}");
    let words = ["-n", "-P", "show", "user", &name, "withcoord", "format=AdminLevel,Coordinators"];
    good.then(|| words.map(str::to_owned).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "Configuration data as of 2026-11-17T10:00:00\nPrivateData             = none\n\n\
                          SlurmDBD configuration data as of 2026-11-17T10:00:00\nMessageTimeout = 10 secs\n";

    #[test]
    fn a_narrow_view_is_not_the_whole() {
        let open = AccountingVisibility::parse(&format!("{CONFIG}PrivateData = none\n"), "None|\n", false);
        assert!(open.covers("def-smith"));
        for (config, by_slurm) in [(format!("{CONFIG}PrivateData = accounts,jobs\n"), false), (CONFIG.to_owned(), true)]
        {
            let member = AccountingVisibility::parse(&config, "None|\n", by_slurm);
            assert!(!member.covers("def-smith"));
            let leader = AccountingVisibility::parse(&config, "None|def-smith,rrg-smith\n", by_slurm);
            assert!(leader.covers("def-smith") && leader.covers("rrg-smith") && !leader.covers("def-jones"));
            assert!(AccountingVisibility::parse(&config, "Operator|\n", by_slurm).covers("def-jones"));
        }
        let odd = AccountingVisibility::parse("PrivateData", "sacctmgr: error: no\n", true);
        assert!(!odd.covers("def-smith") && !odd.is_operator);
    }

    #[test]
    fn no_answer_is_no_proof() {
        for config in ["", "sacctmgr: error: slurmdbd not reachable\n", "MessageTimeout = 10 secs\n"] {
            let unknown = AccountingVisibility::parse(config, "None|\n", false);
            assert_eq!(unknown.hides_jobs, None, "{config}");
            assert!(!unknown.covers("def-smith"), "{config}");
            assert!(AccountingVisibility::parse(config, "Administrator|\n", false).covers("def-smith"));
            let leader = AccountingVisibility::parse(config, "None|def-smith\n", false);
            assert!(leader.covers("def-smith") && !leader.covers("def-jones"));
        }
        assert_eq!(AccountingVisibility::parse("", "", true).hides_jobs, Some(true));
        assert_eq!(AccountingVisibility::parse(CONFIG, "", false).hides_jobs, Some(false));
    }

    #[test]
    fn only_one_user_is_asked_about() {
        assert!(user_args("alice").unwrap().contains(&"name=alice".to_owned()));
        for odd in ["", "a,b", "a b", "-x", "$(id)"] {
            assert_eq!(user_args(odd), None, "{odd}");
        }
    }
}
