//! Hours that are granted, used and left, as `cost` prints them. Versions differ in rows and units: each row keeps
//! its own label, and the unit comes from the header.

use serde::{Deserialize, Serialize};

use crate::text::one_line;

/// How many accounts, rows and people are kept.
const MAX_ACCOUNTS: usize = 200;
const MAX_ROWS: usize = 50;
const MAX_PEOPLE: usize = 2000;
const MAX_LINES: usize = 20_000;
const MAX_TEXT_CHARS: usize = 200;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocationBalanceReport {
    /// The period: `2023.2 (2023-10-01 - 2024-04-01)`; empty if none is named.
    pub period: String,
    /// When it was last updated, in the program's own words; empty if it does not say.
    pub updated: String,
    /// The unit: `Cpu hours`.
    pub unit: String,
    /// In the order of the output.
    pub accounts: Vec<AccountBalance>,
    /// Usage per person, if requested.
    pub people: Vec<PersonCostUsed>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountBalance {
    /// Slurm's name for the account.
    pub account: String,
    /// Label and amount of each row, in the order of the output; no amount where none was printed (`NA`).
    pub rows: Vec<(String, Option<f64>)>,
}

/// What one person used of an account.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PersonCostUsed {
    pub account: String,
    /// The person's user name there.
    pub user: String,
    pub used: f64,
}

impl AccountBalance {
    /// The amount of the first row whose label begins with this text, ignoring case: `used`, `quota (pri)`.
    pub fn amount(&self, label: &str) -> Option<f64> {
        let begins = |row: &str| row.get(..label.len()).is_some_and(|row| row.eq_ignore_ascii_case(label));
        self.rows.iter().find(|(row, _)| begins(row)).and_then(|(_, amount)| *amount)
    }

    /// What is left; negative if more was used than granted.
    pub fn available(&self) -> Option<f64> {
        self.amount("avail")
    }

    /// What was granted: the sum of the quotas, or the limit.
    pub fn granted(&self) -> Option<f64> {
        let quotas = self
            .rows
            .iter()
            .filter(|(label, _)| label.get(..5).is_some_and(|label| label.eq_ignore_ascii_case("quota")));
        let quotas: Vec<f64> = quotas.filter_map(|(_, amount)| *amount).collect();
        if quotas.is_empty() { self.amount("limit") } else { Some(quotas.iter().sum()) }
    }
}

pub fn parse_cost(answer: &str) -> AllocationBalanceReport {
    let mut found = AllocationBalanceReport::default();
    let mut of_people = false;
    for line in answer.lines().take(MAX_LINES) {
        let line = line.trim();
        if let Some(period) = line.strip_prefix("Allocation period") {
            found.period = one_line(period, MAX_TEXT_CHARS);
        } else if let Some(updated) = line.strip_prefix("Accounting updated") {
            found.updated = one_line(updated, MAX_TEXT_CHARS);
        } else if let Some(header) = line.strip_prefix("Account ") {
            of_people = header.trim_start().starts_with("User");
            if !of_people && found.unit.is_empty() {
                found.unit = one_line(header.trim().split("  ").next().unwrap_or_default(), MAX_TEXT_CHARS);
            }
        } else {
            found.add_row(line, of_people);
        }
    }
    found
}

impl AllocationBalanceReport {
    fn add_row(&mut self, line: &str, of_people: bool) {
        let mut cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        let (Some(account), Some(label), Some(amount)) = (cells.next(), cells.next(), cells.next()) else {
            return;
        };
        let account = one_line(account, MAX_TEXT_CHARS);
        let label = one_line(label, MAX_TEXT_CHARS);
        let amount = parse_number(amount);
        if of_people {
            if let (Some(used), true) = (amount, self.people.len() < MAX_PEOPLE) {
                self.people.push(PersonCostUsed { account, user: label, used });
            }
            return;
        }
        let known = self.accounts.iter().position(|known| known.account == account);
        let place = match known {
            Some(place) => place,
            None if self.accounts.len() < MAX_ACCOUNTS => {
                self.accounts.push(AccountBalance { account, rows: Vec::new() });
                self.accounts.len() - 1
            }
            None => return,
        };
        if let Some(known) = self.accounts.get_mut(place).filter(|known| known.rows.len() < MAX_ROWS) {
            known.rows.push((label, amount));
        }
    }
}

fn parse_number(text: &str) -> Option<f64> {
    text.replace(',', "").parse::<f64>().ok().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V2022: &str = include_str!("../../tests/fixtures/sites/cost-2022.txt");
    const DETAILS: &str = include_str!("../../tests/fixtures/sites/cost-details-2024.txt");

    #[test]
    fn notes_of_users() {
        let found = parse_cost(V2022);
        assert_eq!(found.period, "2022.1 (2022-04-01 - 2022-10-01)");
        assert_eq!(found.updated, "2022-04-29 17:33:20");
        assert_eq!(found.unit, "Cpu hours");
        assert_eq!(found.accounts.len(), 1);
        let account = &found.accounts[0];
        assert_eq!((account.account.as_str(), account.rows.len()), ("nn8050k", 6));
        assert_eq!(account.amount("used"), Some(3257.52));
        assert_eq!((account.available(), account.granted()), (Some(10702.48), Some(14000.0)));
        assert!(found.people.is_empty());
    }

    #[test]
    fn people_of_an_account() {
        let found = parse_cost(DETAILS);
        assert_eq!((found.accounts.len(), found.people.len()), (1, 2));
        assert_eq!(found.people[0].user, "someone1");
        assert_eq!(found.unit, "Cpu hours", "the header of people does not change it");
    }

    #[test]
    fn other_rows_and_units() {
        let text = "Account           Billing hours  % of limit\nnn1k  Used (finished)     12.00   10.0\n\
                    nn1k  Available      -3.50    1.0\nnn1k  Limit   20.00  100\nnn1k  GPU spare   NA\n\
                    nn2o  avail   5\n";
        let found = parse_cost(text);
        assert_eq!(found.unit, "Billing hours");
        let first = &found.accounts[0];
        assert_eq!((first.available(), first.granted()), (Some(-3.5), Some(20.0)));
        assert_eq!(first.rows[3], ("GPU spare".to_owned(), None));
        assert_eq!(found.accounts[1].available(), Some(5.0));
        assert_eq!(parse_cost("cost: no such account\n"), AllocationBalanceReport::default());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}|(Account|  |[a-zé]{1,4}|-?[0-9.]{1,5}|\n){0,40}") {
            let found = parse_cost(&text);
            let _: Vec<_> = found.accounts.iter().map(|a| (a.available(), a.granted())).collect();
        }
    }
}
