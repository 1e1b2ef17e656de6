//! A row of figures in words, in the unit that the page shows.

use crate::format;
use crate::usage::{UsageMeasure, UsageTotals, hours};

const MB_PER_GB: f64 = 1024.0;

pub struct UsageTableCells {
    pub cores: String,
    pub gpus: String,
    pub models: String,
    /// The amount in the centre's own unit.
    pub site: String,
    pub jobs: String,
    /// Success rate.
    pub success: String,
    /// Waits are stored in ranges, so their median is approximate.
    pub wait: String,
    /// CPU efficiency.
    pub core_use: String,
    pub memory_use: String,
    /// GPU efficiency, where it is measured; empty otherwise.
    pub gpu_use: String,
    /// Wasted hours: of GPUs if the page shows GPUs, otherwise of cores.
    pub lost: String,
    /// The outcomes behind the wasted hours, and what the other unit lost.
    pub lost_note: String,
    /// How jobs failed and what that cost, as a sentence without a full stop; empty if none did.
    pub lost_summary: String,
    /// Over-requested hours, likewise.
    pub spare: String,
    pub spare_note: String,
}

impl UsageTableCells {
    /// For days of which nothing was read.
    pub fn unknown() -> Self {
        let cells = Self::from_sums(&UsageTotals::default(), UsageMeasure::Cores);
        let [cores, gpus, site, jobs, lost, spare] = [(); 6].map(|()| format::UNKNOWN.to_owned());
        Self { cores, gpus, site, jobs, lost, spare, ..cells }
    }

    pub fn from_sums(sums: &UsageTotals, measure: UsageMeasure) -> Self {
        let models = sums.gpus.iter().filter(|(_, seconds)| *seconds > 0);
        let model = |(name, seconds): &(String, u64)| {
            let name = if name.is_empty() { "unknown model" } else { name };
            format!("{name} {}", format::amount(hours(*seconds)))
        };
        let mut ends = Vec::new();
        for (count, words) in [
            (sums.failed, "failed"),
            (sums.timed_out, "timed out"),
            (sums.memory_out, "out of memory"),
            (
                sums.missed_deadline,
                if sums.missed_deadline == 1 { "missed its deadline" } else { "missed their deadline" },
            ),
            (sums.node_failed, if sums.node_failed == 1 { "lost to a node failure" } else { "lost to node failures" }),
            (sums.interrupted, "interrupted by the cluster"),
        ] {
            if count > 0 {
                ends.push(format!("{} {words}", format::number(count)));
            }
        }
        let in_gpus = measure == UsageMeasure::Gpus;
        let lost_cores = format!("{} core hours", format::amount(hours(sums.lost_core_s)));
        let lost_gpus = format!("{} GPU hours", format::amount(hours(sums.lost_gpu_s)));
        let lost_summary = match (ends.is_empty(), sums.lost_gpu_s > 0) {
            (true, _) => String::new(),
            (false, true) if in_gpus => format!("{} · {lost_gpus} and {lost_cores} wasted", ends.join(" · ")),
            (false, true) => format!("{} · {lost_cores} and {lost_gpus} wasted", ends.join(" · ")),
            (false, false) => format!("{} · {lost_cores} wasted", ends.join(" · ")),
        };
        if in_gpus && sums.lost_core_s > 0 {
            ends.push(lost_cores);
        } else if !in_gpus && sums.lost_gpu_s > 0 {
            ends.push(lost_gpus);
        }
        let spare = match (in_gpus, sums.held_gpu_s) {
            (false, _) => format::amount(hours(sums.spare_core_s)),
            (true, 0) => format::UNKNOWN.to_owned(),
            (true, _) => format::amount(hours(sums.spare_gpu_s)),
        };
        let spare_gb = hours(sums.spare_mb_s) / MB_PER_GB;
        Self {
            cores: format::amount(hours(sums.core_s)),
            gpus: format::amount(hours(sums.gpu_s)),
            models: models.map(model).collect::<Vec<_>>().join(" · "),
            site: format::amount(UsageMeasure::Site.hours(sums)),
            jobs: format::number(sums.jobs),
            success: format::or_unknown(sums.success_rate(), format::percent),
            wait: format::or_unknown(sums.waits.median(), format::rough_duration),
            core_use: format::or_unknown(sums.core_use(), format::percent),
            memory_use: format::or_unknown(sums.memory_use(), format::percent),
            gpu_use: sums.gpu_use().map(format::percent).unwrap_or_default(),
            lost: format::amount(lost_hours(sums, measure)),
            lost_note: ends.join(" · "),
            lost_summary,
            spare,
            spare_note: match (in_gpus, spare_gb > 0.05) {
                (true, _) if sums.held_gpu_s == 0 && sums.gpu_s > 0 => "not measured".to_owned(),
                (false, true) => format!("{} GB hours of memory", format::amount(spare_gb)),
                _ => String::new(),
            },
        }
    }
}

pub fn lost_hours(sums: &UsageTotals, measure: UsageMeasure) -> f64 {
    hours(if measure == UsageMeasure::Gpus { sums.lost_gpu_s } else { sums.lost_core_s })
}

/// The unit of wasted and over-requested hours, before `hours`.
pub fn waste_noun(measure: UsageMeasure) -> &'static str {
    if measure == UsageMeasure::Gpus { "GPU" } else { "core" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_in_words() {
        let mut sums = UsageTotals { core_s: 7200, failed: 2, lost_core_s: 3600, ..UsageTotals::default() };
        sums.add_gpus("", 3600);
        sums.add_gpus("v100", 36_000);
        let cells = UsageTableCells::from_sums(&sums, UsageMeasure::Cores);
        assert_eq!(cells.models, "unknown model 1 · v100 10");
        assert_eq!((cells.cores.as_str(), cells.lost_note.as_str()), ("2", "2 failed"));
        assert_eq!((cells.success.as_str(), cells.gpu_use.as_str()), ("–", ""));
        sums.waits.record(200);
        assert!(UsageTableCells::from_sums(&sums, UsageMeasure::Cores).wait.starts_with("about "));
    }

    #[test]
    fn waste_is_in_the_unit_of_the_page() {
        let sums = UsageTotals {
            gpu_s: 7200,
            failed: 2,
            node_failed: 1,
            lost_core_s: 36_000,
            lost_gpu_s: 3600,
            spare_core_s: 7200,
            ..UsageTotals::default()
        };
        let cells = UsageTableCells::from_sums(&sums, UsageMeasure::Cores);
        assert_eq!((cells.lost.as_str(), cells.spare.as_str()), ("10", "2"));
        assert_eq!(cells.lost_note, "2 failed · 1 lost to a node failure · 1 GPU hours");
        let cells = UsageTableCells::from_sums(&sums, UsageMeasure::Gpus);
        assert_eq!((cells.lost.as_str(), cells.spare.as_str(), cells.spare_note.as_str()), ("1", "–", "not measured"));
        assert_eq!(cells.lost_note, "2 failed · 1 lost to a node failure · 10 core hours");
        let measured = UsageTotals { held_gpu_s: 7200, spare_gpu_s: 1800, ..sums };
        assert_eq!(UsageTableCells::from_sums(&measured, UsageMeasure::Gpus).spare, "0.5");
    }
}
