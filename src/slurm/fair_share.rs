//! `sshare`: how much of its share an account used recently, and one person's part in that.

use serde::{Deserialize, Serialize};

use super::text::{is_name, is_user_or_account};
use crate::text::sanitize;

pub const PROGRAM: &str = "sshare";
/// Rows of people that are kept; those of accounts always are.
const MAX_USER_ROWS: usize = 2000;
/// The most accounts in one request.
const MAX_ACCOUNTS: usize = 200;

/// Whose rows are asked for, besides those of the accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SshareUsers<'a> {
    /// Only this person's.
    One(&'a str),
    /// Everyone's in the accounts, as far as the cluster shows them to this person.
    All,
}

/// Its arguments: one call returns the row of each account and those of people in it. None if a name is invalid or
/// there is no account.
pub fn args(users: SshareUsers<'_>, accounts: &[String]) -> Option<Vec<String>> {
    let asked = (1..=MAX_ACCOUNTS).contains(&accounts.len());
    (asked && accounts.iter().all(|account| is_user_or_account(account))).then_some(())?;
    let accounts = accounts.join(",");
    let mut args = ["-l", "-n", "-P", "-A", &accounts].map(str::to_owned).to_vec();
    match users {
        SshareUsers::One(user) if is_user_or_account(user) => args.extend(["-u", user].map(str::to_owned)),
        SshareUsers::One(_) => return None,
        SshareUsers::All => args.push("-a".to_owned()),
    }
    Some(args)
}

/// One row: an account, or a person in it. Empty values are none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SshareRow {
    /// Slurm's name for it.
    pub account: String,
    /// The person; none for the account as a whole.
    pub user: Option<String>,
    /// Its shares; none where the account's shares apply (`parent`).
    pub raw_shares: Option<u64>,
    /// Its fraction of its siblings' shares, from 0 to 1.
    pub norm_shares: Option<f64>,
    /// Its usage in seconds, weighted by resource and decaying over time.
    pub raw_usage: Option<u64>,
    /// Its fraction of all usage on the cluster, from 0 to 1.
    pub norm_usage: Option<f64>,
    /// Its fraction of its siblings' usage, from 0 to 1.
    pub effective_usage: Option<f64>,
    /// A person's fair-share factor among all users, from 0 to 1.
    pub fair_share: Option<f64>,
    /// Share divided by usage: above 1 there is share left, below 1 more was used. Infinite without usage.
    pub level_fs: Option<f64>,
}

pub fn parse_fair_share(answer: &str) -> Vec<SshareRow> {
    let mut users = 0;
    let is_kept = |row: &SshareRow| {
        users += usize::from(row.user.is_some());
        row.user.is_none() || users <= MAX_USER_ROWS
    };
    answer.lines().take(super::MAX_LINES).filter_map(parse_row).filter(is_kept).collect()
}

fn parse_row(line: &str) -> Option<SshareRow> {
    let fields: Vec<&str> = line.trim().split('|').map(str::trim).collect();
    let [account, user, raw_shares, norm_shares, raw_usage, norm_usage, effective, fair_share, level, ..] =
        *fields.as_slice()
    else {
        return None;
    };
    is_name(account).then(|| SshareRow {
        account: account.to_owned(),
        user: (!user.is_empty()).then(|| sanitize(user, 100)),
        raw_shares: raw_shares.parse().ok(),
        norm_shares: parse_fraction(norm_shares),
        raw_usage: raw_usage.parse().ok(),
        norm_usage: parse_fraction(norm_usage),
        effective_usage: parse_fraction(effective),
        fair_share: parse_fraction(fair_share),
        level_fs: parse_fraction(level),
    })
}

/// Parses a number that is not negative; `inf` is allowed.
fn parse_fraction(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    const V22: &str = include_str!("../../tests/fixtures/slurm/sshare-22.05.txt");
    const ALL_V22: &str = include_str!("../../tests/fixtures/slurm/sshare-all-22.05.txt");
    const ALL_V24: &str = include_str!("../../tests/fixtures/slurm/sshare-all-24.11.txt");

    #[test]
    fn the_words() {
        let accounts = ["def-smith".to_owned(), "rrg-smith".to_owned()];
        let alice = SshareUsers::One("alice");
        let words = args(alice, &accounts).unwrap();
        assert_eq!(words[3..], ["-A", "def-smith,rrg-smith", "-u", "alice"]);
        assert_eq!(args(SshareUsers::All, &accounts).unwrap()[3..], ["-A", "def-smith,rrg-smith", "-a"]);
        assert_eq!(args(alice, &[]), None);
        assert_eq!(args(SshareUsers::One("a,b"), &accounts), None);
        assert_eq!(args(alice, &["x y".to_owned()]), None);
    }

    #[test]
    fn recorded_shares_of_all_members() {
        for (answer, bob) in [(ALL_V22, 0.846_159), (ALL_V24, 0.758_441)] {
            let found = parse_fair_share(answer);
            let users: Vec<_> = found.iter().map(|share| share.user.as_deref().unwrap_or("")).collect();
            assert_eq!(users, ["", "alice", "bob", "carol", "jsmith"]);
            assert_eq!((found[2].effective_usage, found[2].fair_share), (Some(bob), Some(0.1)));
        }
    }

    #[test]
    fn a_crowded_account_hides_no_other_account() {
        let mut answer = "big||1|0.5|9|0.5|0.5||1.0||\n".to_owned();
        for user in 0..3000 {
            writeln!(answer, " big|u{user}|1|0.1|1|0.1|0.1|0.5|1.0||").unwrap();
        }
        answer.push_str("small||1|0.5|0|0|0||inf||\n");
        let found = parse_fair_share(&answer);
        assert_eq!(found.len(), MAX_USER_ROWS + 2);
        assert_eq!(found.last().unwrap().account, "small");
    }

    #[test]
    fn recorded_shares() {
        let found = parse_fair_share(V22);
        let who: Vec<_> = found.iter().map(|share| (share.account.as_str(), share.user.as_deref())).collect();
        assert_eq!(
            who,
            [
                ("def-jones", None),
                ("def-jones", Some("alice")),
                ("def-smith", None),
                ("def-smith", Some("alice")),
                ("rrg-smith", None),
                ("rrg-smith", Some("alice")),
            ]
        );
        assert_eq!(found[0].level_fs, Some(f64::INFINITY));
        assert_eq!((found[2].level_fs, found[2].fair_share), (Some(0.163_934), None));
        assert_eq!((found[3].raw_usage, found[3].fair_share), (Some(2437), Some(0.076_923)));
        let parent = parse_fair_share("a|u|parent|0.1|5|nan|-1|x|inf\nshort|row\n");
        assert_eq!((parent.len(), parent[0].raw_shares, parent[0].norm_usage), (1, None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "([a-z0-9.]{0,5}\\|){0,14}|(?s).{0,100}") {
            let _ = parse_fair_share(&text);
        }
    }
}
