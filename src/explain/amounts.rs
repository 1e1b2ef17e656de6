//! Amounts, times and counts in words. Slurm's `G` is 1024 × 1024 × 1024 bytes; people say GB and type `--mem=16G`, so
//! that is written "16 GB" here: what is shown is what one asks for.

use crate::slurm::gres::GpuCount;
use crate::slurm::job::SlurmJob;

/// Memory in mebibytes as words: `512 MB`, `15.9 GB`, `1.5 TB`.
pub fn format_memory(mb: u64) -> String {
    const GB: u64 = 1024;
    const TB: u64 = 1024 * 1024;
    match mb {
        0..GB => format!("{mb} MB"),
        GB..TB => format!("{} GB", format_tenths(mb, GB)),
        _ => format!("{} TB", format_tenths(mb, TB)),
    }
}

/// `mb` in units, with one digit after the point where it is not 0 and the number is small.
fn format_tenths(mb: u64, unit: u64) -> String {
    let tenths = (u128::from(mb) * 10 + u128::from(unit) / 2) / u128::from(unit);
    let (whole, part) = (tenths / 10, tenths % 10);
    if part == 0 || whole >= 100 { whole.to_string() } else { format!("{whole}.{part}") }
}

/// Memory as Slurm's options want it: `24G`, `768M`.
pub fn memory_option(mb: u64) -> String {
    if mb > 0 && mb.is_multiple_of(1024) { format!("{}G", mb / 1024) } else { format!("{mb}M") }
}

/// Rounded up to an amount that reads well.
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

/// A time in seconds as words, two units at most: `45 s`, `12 min`, `3 h`, `2 d 4 h`.
pub fn format_duration(seconds: u64) -> String {
    let two = |first: u64, name: &str, second: u64, small: &str| match second {
        0 => format!("{first} {name}"),
        _ => format!("{first} {name} {second} {small}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..600 => two(seconds / 60, "min", seconds % 60, "s"),
        600..3600 => format!("{} min", seconds / 60),
        3600..86_400 => two(seconds / 3600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

/// A time in minutes as words.
pub fn format_minutes(minutes: u32) -> String {
    format_duration(u64::from(minutes) * 60)
}

/// Minutes rounded up to a time that reads well.
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

/// A number with marks between thousands: `12,345`.
pub fn format_number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 job`, `4 jobs`: a number and its noun; for one that takes an s when there are more.
pub fn format_count(of: u64, noun: &str) -> String {
    let many = if of == 1 { "" } else { "s" };
    format!("{} {noun}{many}", format_number(of))
}

/// `1 v100 GPU`, `4 GPUs`, `2 h100 GPUs and 1 a100 GPU`; empty for none.
pub fn format_gpus(gpus: &[GpuCount]) -> String {
    let one = |gpus: &GpuCount| {
        let many = if gpus.count == 1 { "" } else { "s" };
        match &gpus.model {
            Some(model) => format!("{} {model} GPU{many}", gpus.count),
            None => format!("{} GPU{many}", gpus.count),
        }
    };
    gpus.iter().take(8).map(one).collect::<Vec<_>>().join(" and ")
}

/// What a job asks for: `4 cores · 16 GB · 1 v100 GPU · 2 nodes`. What Slurm did not say is left out.
pub fn format_request(job: &SlurmJob) -> String {
    let mut parts = Vec::new();
    if job.cpus > 0 {
        parts.push(format_count(job.cpus.into(), "core"));
    }
    parts.extend(job.memory_mb.filter(|mb| *mb > 0).map(format_memory));
    parts.extend(Some(format_gpus(&job.gpus)).filter(|words| !words.is_empty()));
    if job.nodes > 1 {
        parts.push(format_count(job.nodes.into(), "node"));
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words() {
        for (mb, words) in [
            (0, "0 MB"),
            (512, "512 MB"),
            (1024, "1 GB"),
            (16_282, "15.9 GB"),
            (16_384, "16 GB"),
            (767_000, "749 GB"),
            (1_572_864, "1.5 TB"),
        ] {
            assert_eq!(format_memory(mb), words);
        }
        for (seconds, words) in [
            (0, "0 s"),
            (45, "45 s"),
            (60, "1 min"),
            (90, "1 min 30 s"),
            (720, "12 min"),
            (10_800, "3 h"),
            (9_000, "2 h 30 min"),
            (187_200, "2 d 4 h"),
            (86_400, "1 d"),
        ] {
            assert_eq!(format_duration(seconds), words);
        }
        assert_eq!(format_minutes(180), "3 h");
        assert_eq!(
            [format_number(7), format_number(1000), format_number(1_234_567)],
            ["7", "1,000", "1,234,567"]
        );
        assert_eq!([format_count(1, "core"), format_count(4, "core")], ["1 core", "4 cores"]);
        assert_eq!([memory_option(24_576), memory_option(768)], ["24G", "768M"]);
    }

    #[test]
    fn requests() {
        let gpu = |model: Option<&str>, count| GpuCount { model: model.map(str::to_owned), count };
        let mut job =
            SlurmJob { cpus: 4, nodes: 1, memory_mb: Some(16_384), ..SlurmJob::default() };
        assert_eq!(format_request(&job), "4 cores · 16 GB");
        job.gpus = vec![gpu(Some("v100"), 1)];
        assert_eq!(format_request(&job), "4 cores · 16 GB · 1 v100 GPU");
        (job.gpus, job.nodes) = (vec![gpu(None, 8)], 2);
        assert_eq!(format_request(&job), "4 cores · 16 GB · 8 GPUs · 2 nodes");
        assert_eq!(format_request(&SlurmJob::default()), "");
    }

    #[test]
    fn nice_amounts() {
        for (mb, nice) in [(1, 256), (300, 512), (2_500, 3_072), (24_423, 24_576), (70_000, 73_728)]
        {
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
            prop_assert!(!format_memory(mb).is_empty() && !format_duration(mb).is_empty() && !format_minutes(time).is_empty());
        }
    }
}
