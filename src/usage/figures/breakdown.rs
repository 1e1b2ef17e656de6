//! Figures by partition, QOS and GPU model. What is not known is one row of its own, so that all rows add up.

use super::UsageFigures;
use crate::domain::codes;
use crate::usage::breakdown::{BreakdownSums, UsageBreakdown};
use crate::usage::totals::UsageTotals;
use crate::usage::units::UsageMeasure;

/// What figures are broken down by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakdownKind {
    Partition,
    Qos,
    /// GPU hours only: cores are not counted by the GPU that they come with.
    GpuModel,
}

codes!(BreakdownKind { Partition = "partition", Qos = "qos", GpuModel = "gpu" });

impl BreakdownKind {
    pub const fn title(self) -> &'static str {
        match self {
            Self::Partition => "Partition",
            Self::Qos => "QOS",
            Self::GpuModel => "GPU model",
        }
    }

    pub const fn heading(self) -> &'static str {
        match self {
            Self::Partition => "By partition",
            Self::Qos => "By QOS",
            Self::GpuModel => "By GPU model",
        }
    }
}

/// Figures by name, and those without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiguresBreakdown {
    pub kind: BreakdownKind,
    /// Highest usage first. A GPU whose model the accounting does not name has an empty one.
    pub known: Vec<BreakdownSums>,
    /// Usage without a name; none if everything is known.
    pub unknown: Option<BreakdownSums>,
}

impl FiguresBreakdown {
    /// Whether cores and jobs are counted, not only GPUs.
    pub fn has_cores(&self) -> bool {
        self.kind != BreakdownKind::GpuModel
    }

    /// Says what is not known; empty if everything is.
    pub fn note(&self) -> String {
        if self.unknown.is_none() {
            return String::new();
        }
        let of = if self.kind == BreakdownKind::Qos { "QOS" } else { "partition" };
        format!("Unknown: older usage, loaded before the portal recorded the {of}, and jobs without one.")
    }
}

impl UsageFigures {
    pub fn breakdown(&self, kind: BreakdownKind, measure: UsageMeasure) -> FiguresBreakdown {
        let totals = &self.totals;
        let (mut known, unknown) = match kind {
            BreakdownKind::Partition => named_and_rest(&totals.partitions, totals),
            BreakdownKind::Qos => named_and_rest(&totals.qos, totals),
            BreakdownKind::GpuModel => {
                let of_model = |(model, seconds): &(String, u64)| BreakdownSums {
                    name: model.clone(),
                    gpu_s: *seconds,
                    ..BreakdownSums::default()
                };
                let used = totals.gpus.iter().filter(|(_, seconds)| *seconds > 0);
                (used.map(of_model).collect(), None)
            }
        };
        let by_gpus = measure == UsageMeasure::Gpus || kind == BreakdownKind::GpuModel;
        let used = |sums: &BreakdownSums| if by_gpus { sums.gpu_s } else { sums.core_s };
        known.sort_by(|a, b| used(b).cmp(&used(a)).then_with(|| a.name.cmp(&b.name)));
        FiguresBreakdown { kind, known, unknown }
    }
}

fn named_and_rest(named: &UsageBreakdown, totals: &UsageTotals) -> (Vec<BreakdownSums>, Option<BreakdownSums>) {
    let known = named.sums().to_vec();
    let mut rest =
        BreakdownSums { core_s: totals.core_s, gpu_s: totals.gpu_s, jobs: totals.jobs, ..Default::default() };
    for sums in &known {
        rest.core_s = rest.core_s.saturating_sub(sums.core_s);
        rest.gpu_s = rest.gpu_s.saturating_sub(sums.gpu_s);
        rest.jobs = rest.jobs.saturating_sub(sums.jobs);
    }
    (known, Some(rest).filter(|rest| rest.core_s + rest.gpu_s + rest.jobs > 0))
}
