//! Sums by partition or by QOS, so that usage can be broken down further than by person and job type.

use std::fmt;

/// More names than any site has; what comes beyond them is not broken down.
const MAX_NAMES: usize = 100;

/// The sums of one partition or one QOS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BreakdownSums {
    pub name: String,
    pub core_s: u64,
    pub gpu_s: u64,
    /// Jobs that ended.
    pub jobs: u64,
}

/// Sums by name, sorted by name. Usage whose name is not known is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageBreakdown(Vec<BreakdownSums>);

impl UsageBreakdown {
    pub fn add(&mut self, sums: &BreakdownSums) {
        if sums.name.is_empty() {
            return;
        }
        match self.0.binary_search_by(|known| known.name.cmp(&sums.name)) {
            Ok(index) => {
                self.0[index].core_s += sums.core_s;
                self.0[index].gpu_s += sums.gpu_s;
                self.0[index].jobs += sums.jobs;
            }
            Err(index) if self.0.len() < MAX_NAMES => self.0.insert(index, sums.clone()),
            Err(_) => {}
        }
    }

    pub fn add_all(&mut self, other: &Self) {
        for sums in &other.0 {
            self.add(sums);
        }
    }

    pub fn sums(&self) -> &[BreakdownSums] {
        &self.0
    }

    /// Parses the format of `Display`.
    pub fn parse(text: &str) -> Self {
        let parse = |piece: &str| {
            let mut parts = piece.rsplitn(4, ':');
            let mut number = || parts.next()?.parse::<u64>().ok();
            let (jobs, gpu_s, core_s) = (number()?, number()?, number()?);
            Some(BreakdownSums { name: parts.next()?.to_owned(), core_s, gpu_s, jobs })
        };
        let mut breakdown = Self::default();
        text.split(',').filter_map(parse).for_each(|sums| breakdown.add(&sums));
        breakdown
    }
}

/// For example `cpu:3600:0:2,gpu:7200:3600:1`: core seconds, GPU seconds and jobs of each name.
impl fmt::Display for UsageBreakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, sums) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            // Only a job that never started can have several names, separated by commas.
            write!(f, "{}:{}:{}:{}", sums.name.replace(',', " "), sums.core_s, sums.gpu_s, sums.jobs)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(name: &str, core_s: u64) -> BreakdownSums {
        BreakdownSums { name: name.to_owned(), core_s, gpu_s: 2 * core_s, jobs: 1 }
    }

    #[test]
    fn names_add_up_and_come_back() {
        let mut all = UsageBreakdown::default();
        for one in [sums("gpu", 5), sums("cpu:long", 1), sums("gpu", 7), sums("", 9)] {
            all.add(&one);
        }
        assert_eq!(all.to_string(), "cpu:long:1:2:1,gpu:12:24:2");
        assert_eq!(UsageBreakdown::parse(&all.to_string()), all);
        all.add_all(&all.clone());
        assert_eq!(all.sums()[1], BreakdownSums { name: "gpu".into(), core_s: 24, gpu_s: 48, jobs: 4 });
        for at in 0..200 {
            all.add(&sums(&format!("p{at}"), 1));
        }
        assert_eq!(all.sums().len(), MAX_NAMES);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[a-z0-9:,-]{0,40}") {
            let _ = UsageBreakdown::parse(&text).to_string();
        }
    }
}
