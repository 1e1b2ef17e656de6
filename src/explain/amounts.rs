//! Readable amounts, and a job's request in words.

use crate::format;
use crate::slurm::gres::GpuCount;
use crate::slurm::job::SlurmJob;

/// Rounds up to a readable amount.
pub fn round_up_memory(mb: u64) -> u64 {
    let step = match mb {
        0..=2048 => 256,
        2049..=16_384 => 1024,
        16_385..=65_536 => 4096,
        65_537..=262_144 => 8192,
        _ => 16_384,
    };
    mb.max(1).div_ceil(step).saturating_mul(step)
}

/// Rounds minutes up to a readable time.
pub fn round_up_minutes(minutes: u32) -> u32 {
    let step = match minutes {
        0..=60 => 5,
        61..=360 => 30,
        361..=1440 => 60,
        1441..=4320 => 360,
        _ => 1440,
    };
    minutes.max(1).div_ceil(step).saturating_mul(step)
}

/// `1 v100 GPU`, `4 GPUs`, `2 h100 GPUs and 1 a100 GPU`; empty for none.
pub fn format_gpus(gpus: &[GpuCount]) -> String {
    let words = |gpus: &GpuCount| {
        let many = if gpus.count == 1 { "" } else { "s" };
        match &gpus.model {
            Some(model) => format!("{} {model} GPU{many}", gpus.count),
            None => format!("{} GPU{many}", gpus.count),
        }
    };
    gpus.iter().take(8).map(words).collect::<Vec<_>>().join(" and ")
}

/// What a job requests: `4 cores · 16 GB · 1 v100 GPU · 2 nodes`. Omits what Slurm did not report.
pub fn format_request(job: &SlurmJob) -> String {
    let mut parts = Vec::new();
    if job.cpus > 0 {
        parts.push(format::count(job.cpus.into(), "core"));
    }
    parts.extend(job.memory_mb.filter(|mb| *mb > 0).map(format::memory));
    parts.extend(Some(format_gpus(&job.gpus)).filter(|words| !words.is_empty()));
    if job.nodes > 1 {
        parts.push(format::count(job.nodes.into(), "node"));
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests() {
        let gpu = |model: Option<&str>, count| GpuCount { model: model.map(str::to_owned), count };
        let mut job = SlurmJob { cpus: 4, nodes: 1, memory_mb: Some(16_384), ..SlurmJob::default() };
        assert_eq!(format_request(&job), "4 cores · 16 GB");
        job.gpus = vec![gpu(Some("v100"), 1)];
        assert_eq!(format_request(&job), "4 cores · 16 GB · 1 v100 GPU");
        (job.gpus, job.nodes) = (vec![gpu(None, 8)], 2);
        assert_eq!(format_request(&job), "4 cores · 16 GB · 8 GPUs · 2 nodes");
        assert_eq!(format_request(&SlurmJob::default()), "");
    }

    #[test]
    fn nice_amounts() {
        for (mb, nice) in [(1, 256), (300, 512), (2_500, 3_072), (24_423, 24_576), (70_000, 73_728)] {
            assert_eq!(round_up_memory(mb), nice);
        }
        for (minutes, nice) in [(3, 5), (234, 240), (270, 270), (400, 420), (2_000, 2_160)] {
            assert_eq!(round_up_minutes(minutes), nice);
        }
    }

    proptest! {
        #[test]
        fn rounding_never_takes_away(mb in any::<u64>(), time in any::<u32>()) {
            prop_assert!(round_up_memory(mb) >= mb);
            prop_assert!(round_up_minutes(time) >= time);
        }
    }
}
