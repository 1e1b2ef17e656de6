//! `sprio`: the components of each pending job's priority.

use super::text::is_user_or_account;
use crate::text::sanitize;

pub const PROGRAM: &str = "sprio";
const FORMAT: &str = "%i|%r|%Y|%A|%F|%J|%P|%Q|%B|%S|%N|%T";

const MAX_ROWS: usize = 20_000;

/// Its arguments for one person's jobs; none if the name is invalid.
pub fn args(user: &str) -> Option<Vec<String>> {
    is_user_or_account(user).then(|| ["-h", "-u", user, "-o", FORMAT].map(str::to_owned).to_vec())
}

/// The points of one pending job in one partition. Slurm only lists jobs that could run: not those that are held or
/// depend on others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SprioFactors {
    /// The raw job ID; a pending array has one row, with the array's ID.
    pub raw_id: u64,
    /// A job that names several partitions may have a row for each.
    pub partition: String,
    pub priority: u64,
    pub age: u64,
    /// For how little the group used recently.
    pub fair_share: u64,
    /// For the size of the job.
    pub size: u64,
    pub partition_points: u64,
    pub qos: u64,
    pub association: u64,
    /// Set by the site itself; may be negative.
    pub site: i64,
    /// Points the owner gave up; negative where an operator added some.
    pub nice: i64,
    /// For the requested resources, as text: `CPU=100,Mem=20`; empty where the site counts none.
    pub resources: String,
}

impl SprioFactors {
    /// The points for the requested resources together, rounded.
    pub fn resource_points(&self) -> u64 {
        let tenths = |piece: &str| -> Option<u64> {
            let (_, points) = piece.split_once('=')?;
            let (whole, part) = points.split_once('.').unwrap_or((points, ""));
            let part = part.bytes().next().filter(u8::is_ascii_digit).map_or(0, |digit| u64::from(digit - b'0'));
            whole.parse::<u32>().ok().map(|whole| u64::from(whole) * 10 + part)
        };
        let sum: u64 = self.resources.split(',').filter_map(tenths).sum();
        (sum + 5) / 10
    }
}

pub fn parse_factors(answer: &str) -> Vec<SprioFactors> {
    answer.lines().take(super::MAX_LINES).filter_map(parse_row).take(MAX_ROWS).collect()
}

fn parse_row(line: &str) -> Option<SprioFactors> {
    let mut fields = line.trim().splitn(12, '|').map(str::trim);
    let raw = fields.next()?.parse().ok().filter(|raw| *raw > 0)?;
    let partition = sanitize(fields.next()?, 200);
    let mut points = || fields.next().map(|field| field.parse::<i64>().unwrap_or(0));
    let [priority, age, fair_share, size, partition_points, qos, association, by_site, nice] =
        [points()?, points()?, points()?, points()?, points()?, points()?, points()?, points()?, points()?];
    let positive = |points: i64| u64::try_from(points).unwrap_or(0);
    Some(SprioFactors {
        raw_id: raw,
        partition,
        priority: positive(priority),
        age: positive(age),
        fair_share: positive(fair_share),
        size: positive(size),
        partition_points: positive(partition_points),
        qos: positive(qos),
        association: positive(association),
        site: by_site,
        nice,
        resources: sanitize(fields.next()?, 500),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V22: &str = include_str!("../../tests/fixtures/slurm/sprio-22.05.txt");

    #[test]
    fn the_words_hold_one_person() {
        assert_eq!(args("alice").unwrap()[2], "alice");
        assert_eq!((args("a,b"), args("-x"), args("")), (None, None, None));
    }

    #[test]
    fn recorded_factors() {
        let found = parse_factors(V22);
        assert_eq!(found.len(), 3);
        assert_eq!(
            found[0],
            SprioFactors {
                raw_id: 20054,
                partition: "trial".into(),
                priority: 7924,
                fair_share: 7692,
                size: 82,
                partition_points: 200,
                nice: 50,
                ..SprioFactors::default()
            },
            "an array of six tasks"
        );
        let priced = &parse_factors("7|p|5|x|||||||-3|CPU=1.3,Mem=2.4\nrubbish\n")[0];
        assert_eq!((priced.resources.as_str(), priced.resource_points()), ("CPU=1.3,Mem=2.4", 4));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "([0-9]{1,4}\\|){0,14}|(?s).{0,100}") {
            let _ = parse_factors(&text);
        }
    }
}
