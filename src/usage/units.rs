//! The units of usage: core and GPU hours everywhere, and the centre's own unit where it has one.

use crate::domain::codes;
use crate::explain::cost::reference_units;
use crate::sites::Site;
use crate::slurm::accounting::account_runs::AccountedRun;

/// Hours in a year, as computing centres count them.
pub const HOURS_PER_YEAR: f64 = 8760.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsageMeasure {
    Cores,
    /// GPUs of any model.
    Gpus,
    Site,
}

codes!(UsageMeasure { Cores = "cores", Gpus = "gpus", Site = "site" });

impl UsageMeasure {
    /// For people, before `hours` or `years`.
    pub fn noun(self, site: Option<SiteUnit>) -> &'static str {
        match self {
            Self::Cores => "core",
            Self::Gpus => "GPU",
            Self::Site => site.map_or("site unit", SiteUnit::title),
        }
    }

    /// The usage in hours.
    pub fn hours(self, totals: &super::UsageTotals) -> f64 {
        match self {
            Self::Cores => super::hours(totals.core_s),
            Self::Gpus => super::hours(totals.gpu_s),
            Self::Site => super::hours(totals.site_ms) / 1000.0,
        }
    }
}

/// The unit of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AllocationUnit {
    pub measure: UsageMeasure,
    /// Years instead of hours.
    pub in_years: bool,
}

impl AllocationUnit {
    pub const ALL: [Self; 6] = [
        Self { measure: UsageMeasure::Cores, in_years: false },
        Self { measure: UsageMeasure::Cores, in_years: true },
        Self { measure: UsageMeasure::Gpus, in_years: false },
        Self { measure: UsageMeasure::Gpus, in_years: true },
        Self { measure: UsageMeasure::Site, in_years: false },
        Self { measure: UsageMeasure::Site, in_years: true },
    ];

    /// The code in the database and in forms.
    pub const fn as_str(self) -> &'static str {
        match (self.measure, self.in_years) {
            (UsageMeasure::Cores, false) => "core-hours",
            (UsageMeasure::Cores, true) => "core-years",
            (UsageMeasure::Gpus, false) => "gpu-hours",
            (UsageMeasure::Gpus, true) => "gpu-years",
            (UsageMeasure::Site, false) => "site-hours",
            (UsageMeasure::Site, true) => "site-years",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }

    /// For people: `core hours`, `GPU years`.
    pub fn words(self, site: Option<SiteUnit>) -> String {
        let many = if self.in_years { "years" } else { "hours" };
        format!("{} {many}", self.measure.noun(site))
    }

    /// Converts an amount to hours.
    pub fn to_hours(self, amount: f64) -> f64 {
        if self.in_years { amount * HOURS_PER_YEAR } else { amount }
    }

    /// Converts hours to an amount.
    pub fn from_hours(self, hours: f64) -> f64 {
        if self.in_years { hours / HOURS_PER_YEAR } else { hours }
    }
}

/// A site's own unit, besides cores and GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteUnit {
    /// Slurm's billing TRES, weighted by the site.
    Billing,
    ReferenceGpus,
}

impl SiteUnit {
    /// The unit of a site; none if it counts cores or GPUs.
    pub fn from_site(site: &Site) -> Option<Self> {
        let name = site.units.name.as_deref().unwrap_or_default();
        if name.contains("RGU") {
            Some(Self::ReferenceGpus)
        } else if name.contains("illing") {
            Some(Self::Billing)
        } else {
            None
        }
    }

    /// For people, before `hours` or `years`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Billing => "billing",
            Self::ReferenceGpus => "RGU",
        }
    }

    /// Thousandths of a unit per second of a job.
    pub fn rate(self, site: &Site, run: &AccountedRun) -> u64 {
        match self {
            Self::Billing => run.billing.saturating_mul(1000),
            Self::ReferenceGpus => {
                let of_model = |gpus: &crate::slurm::gres::GpuCount| {
                    let model = gpus.model.as_deref().unwrap_or_default();
                    let count = u64::from(gpus.count);
                    reference_units(site, model, count, u64::from(run.cores), run.memory_mb)
                };
                let units: f64 = run.gpus.iter().filter_map(of_model).sum();
                thousandths(units)
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
fn thousandths(units: f64) -> u64 {
    (units.clamp(0.0, 1e12) * 1000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::gres::GpuCount;

    #[test]
    fn words_come_back() {
        for unit in AllocationUnit::ALL {
            assert_eq!(AllocationUnit::parse(unit.as_str()), Some(unit));
            assert!((unit.from_hours(unit.to_hours(3.0)) - 3.0).abs() < 1e-9);
        }
        for measure in UsageMeasure::ALL {
            assert_eq!(UsageMeasure::parse(measure.as_str()), Some(measure));
        }
    }

    #[test]
    fn units_of_sites() {
        let site = |name: &str| crate::sites::presets().iter().find(|site| site.name.as_str() == name).unwrap().clone();
        let (fir, saga, demo) = (site("fir"), site("saga"), site("demo"));
        let run = AccountedRun {
            cores: 12,
            memory_mb: 1024,
            billing: 40,
            gpus: vec![GpuCount { model: Some("h100".into()), count: 1 }],
            ..AccountedRun::default()
        };
        assert_eq!(SiteUnit::from_site(&demo), None);
        assert_eq!(SiteUnit::from_site(&saga).unwrap().rate(&saga, &run), 40_000);
        assert_eq!(SiteUnit::from_site(&fir).unwrap().rate(&fir, &run), 12_200);
        let greedy = AccountedRun { cores: 24, ..run.clone() };
        assert_eq!(SiteUnit::from_site(&fir).unwrap().rate(&fir, &greedy), 24_400, "cores of two GPUs");
        let unknown = AccountedRun { gpus: vec![GpuCount { model: None, count: 1 }], ..run };
        assert_eq!(SiteUnit::from_site(&fir).unwrap().rate(&fir, &unknown), 0, "not made up");
    }
}
