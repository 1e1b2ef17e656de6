//! Parsers for single fields: numbers, times, names, resources, and the delimiter after fields that people fill in.
//! Nothing here fails, and short plain fields cost one copy.

use memchr::{memchr, memmem};

use super::array_tasks::ArrayTaskSet;
use super::gres::GpuCount;
use super::job::{JobId, JobStage, JobState, SlurmJob};
use super::text::{is_name, value_if_set};
use super::units::{TimeLimit, parse_memory_mb};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::text::sanitize;

/// The length of a nonce: letters and digits, made by the caller for one request.
const NONCE_LENGTHS: std::ops::RangeInclusive<usize> = 8..=32;
/// The most GPU models of one job.
const MAX_GPU_MODELS: usize = 32;
/// The longest path, name, list of nodes or dependencies, and other word.
pub(super) const MAX_PATH_LEN: usize = 4096;
pub(super) const MAX_NAME_LEN: usize = 1024;
pub(super) const MAX_LIST_LEN: usize = 2000;
pub(super) const MAX_WORD_LEN: usize = 200;
/// The fields with which each record of `squeue` and `sacct` begins: see [`parse_common`].
pub(super) const COMMON_FIELD_COUNT: usize = 15;

/// The delimiter after a field that people fill in: a word they could not have known. It must not begin with a digit,
/// which `squeue` would take for a width. None if the nonce is invalid.
pub(super) fn field_delimiter(nonce: &str) -> Option<String> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (NONCE_LENGTHS.contains(&nonce.len()) && nonce.bytes().all(good)).then(|| format!("_{nonce}"))
}

/// The option of `sacct` that makes it print this delimiter.
pub(super) fn delimiter_option(nonce: &str) -> Option<String> {
    Some(format!("--delimiter={}", field_delimiter(nonce)?))
}

/// Calls a function with the fields of each record, until it returns false. Each field ends in the delimiter, so nothing
/// that people write into names can begin a record.
pub(super) fn for_each_record<const COUNT: usize>(
    answer: &[u8],
    nonce: &str,
    mut take: impl FnMut([&str; COUNT]) -> bool,
) {
    let Some(mark) = field_delimiter(nonce) else { return };
    let answer = String::from_utf8_lossy(answer);
    let finder = memmem::Finder::new(mark.as_bytes());
    let mut rest = &*answer;
    loop {
        let mut fields = [""; COUNT];
        for field in &mut fields {
            let Some(end) = finder.find(rest.as_bytes()) else { return };
            *field = &rest[..end];
            rest = &rest[end + mark.len()..];
        }
        rest = rest.strip_prefix('\n').unwrap_or(rest);
        // Other output may precede the first record: it ends with its line.
        fields[0] = fields[0].rsplit('\n').next().unwrap_or_default().trim_ascii();
        if !take(fields) {
            return;
        }
    }
}

/// Free text: bounded and without control characters.
pub(super) fn clean_field(text: &str, most: usize) -> String {
    // Checks every byte without stopping at the first bad one: that is faster for short fields.
    let other = text.bytes().fold(false, |other, byte| other | !(b' '..=b'~').contains(&byte));
    if other || text.len() > most { sanitize(text, most) } else { text.trim_ascii().to_owned() }
}

/// The same; empty where Slurm says that there is no value.
pub(super) fn clean_value(word: &str, most: usize) -> String {
    // Slurm's words for "none" are short and begin like this; few others need a closer check.
    let perhaps_none = word.len() <= 8 && word.starts_with(['(', 'n', 'N', ' ']);
    if word.is_empty() || (perhaps_none && value_if_set(word).is_none()) {
        return String::new();
    }
    clean_field(word, most)
}

/// The number at the start; 0 if there is none or it is too large.
pub(super) fn parse_number(text: &str) -> u64 {
    let mut sum = 0_u64;
    for digit in text.bytes().take_while(u8::is_ascii_digit) {
        let next = sum.checked_mul(10).and_then(|sum| sum.checked_add(u64::from(digit - b'0')));
        let Some(next) = next else { return 0 };
        sum = next;
    }
    sum
}

/// The same, for numbers that cannot be large.
pub(super) fn parse_u32(text: &str) -> u32 {
    u32::try_from(parse_number(text)).unwrap_or(0)
}

/// Whole seconds from `1-02:03:04`, `00:27.462` (minutes and seconds), `02:03:04`.
pub(super) fn parse_cpu_seconds(text: &str) -> Option<u64> {
    let whole = text.split('.').next().unwrap_or_default();
    let (days, clock) = whole.split_once('-').unwrap_or(("0", whole));
    let digits = |part: &str| (part.len() <= 9 && all_digits(part)).then(|| parse_number(part));
    let mut sum = 0_u64;
    for part in clock.split(':').take(4) {
        sum = sum.checked_mul(60)?.checked_add(digits(part)?)?;
    }
    digits(days)?.checked_mul(SECONDS_PER_DAY.unsigned_abs())?.checked_add(sum)
}

/// A Unix time; none for other words, for 0 and for implausible values.
pub(super) fn parse_time(text: &str) -> Option<UnixTime> {
    let digits = text.len() <= 11 && all_digits(text);
    let seconds = if digits { i64::try_from(parse_number(text)).ok()? } else { 0 };
    (seconds > 0).then_some(UnixTime(seconds))
}

/// `123`, `123_4`, `123_[5-9%2]`, `123+1`. Components of a heterogeneous job (`+1`) go by their own raw ID.
pub(super) fn parse_job_id(text: &str, raw: u64) -> Option<(JobId, Option<ArrayTaskSet>)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = Some(parse_number(text)).filter(|number| (1..1 << 53).contains(number));
    let whole = JobId::without_task(whole?);
    let rest = &text[digits..];
    if rest.is_empty() {
        return Some((whole, None));
    }
    if rest.starts_with('+') {
        return Some((if raw > 0 { JobId::without_task(raw) } else { whole }, None));
    }
    let task = rest.strip_prefix('_')?;
    if task.starts_with('[') {
        return Some((whole, ArrayTaskSet::parse(task)));
    }
    let task = if all_digits(task) { task.parse().ok()? } else { return None };
    Some((JobId { task: Some(task), ..whole }, None))
}

/// Parses the fields that `squeue` and `sacct` report alike, in this order.
pub(super) fn parse_common(fields: &[&str; COMMON_FIELD_COUNT]) -> Option<SlurmJob> {
    let [id, raw, user, state, reason, account, partition, qos, submitted, eligible, start, end, limit, cpus, nodes] =
        *fields;
    let raw_id = parse_number(raw);
    // Other output may come first: it ends with its line.
    let last_line = || id.rsplit('\n').next().unwrap_or(id);
    let (id, tasks) = parse_job_id(id, raw_id).or_else(|| parse_job_id(last_line(), raw_id))?;
    let state = JobState::parse(state);
    Some(SlurmJob {
        id,
        raw_id,
        tasks,
        user: clean_value(user, MAX_WORD_LEN),
        state,
        reason: clean_value(reason, MAX_LIST_LEN),
        account: clean_value(account, MAX_WORD_LEN),
        partition: clean_value(partition, MAX_LIST_LEN),
        qos: clean_value(qos, MAX_WORD_LEN),
        submitted: parse_time(submitted),
        eligible: parse_time(eligible),
        start: parse_time(start),
        end: if state.stage() == JobStage::Pending { None } else { parse_time(end) },
        time_limit: TimeLimit::parse(limit),
        cpus: parse_u32(cpus),
        nodes: parse_u32(nodes),
        ..SlurmJob::default()
    })
}

/// What a job holds, or requests while it is pending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TresAmounts {
    pub cpus: u32,
    pub nodes: u32,
    pub memory_mb: Option<u64>,
    pub gpus: Vec<GpuCount>,
}

/// Parses `cpu=4,mem=2G,node=1,billing=20,gres/gpu=2,gres/gpu:t4=2`. GPUs with a model appear twice, once without it.
pub(super) fn parse_tres(list: &str) -> TresAmounts {
    let mut found = TresAmounts::default();
    let mut any_model = 0_u32;
    for piece in split_on(list, b',') {
        let Some(equals) = memchr(b'=', piece.as_bytes()) else { continue };
        let (name, amount) = (&piece[..equals], &piece[equals + 1..]);
        match name {
            "cpu" => found.cpus = parse_u32(amount),
            "node" => found.nodes = parse_u32(amount),
            "mem" => found.memory_mb = parse_mebibytes(amount).filter(|mb| *mb > 0),
            "gres/gpu" => any_model = parse_u32(amount),
            _ => {
                let Some(model) = name.strip_prefix("gres/gpu:") else { continue };
                let count = parse_u32(amount);
                if is_name(model) && count > 0 && found.gpus.len() < MAX_GPU_MODELS {
                    found.gpus.push(GpuCount { model: Some(model.to_owned()), count });
                }
            }
        }
    }
    if found.gpus.is_empty() && any_model > 0 {
        found.gpus.push(GpuCount { model: None, count: any_model });
    }
    found
}

fn parse_mebibytes(amount: &str) -> Option<u64> {
    match amount.strip_suffix('M') {
        // The fast path for what nearly every job has.
        Some(digits) if digits.len() <= 10 && all_digits(digits) => Some(parse_number(digits)),
        _ => parse_memory_mb(amount),
    }
}

/// Splits on a separator without allocating.
pub(super) fn split_on(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let here = rest?;
        let end = memchr(separator, here.as_bytes());
        rest = end.map(|end| &here[end + 1..]);
        Some(&here[..end.unwrap_or(here.len())])
    })
}

pub(super) fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_are_words_that_squeue_takes_for_no_width() {
        assert_eq!(field_delimiter("9abcdefg").as_deref(), Some("_9abcdefg"));
        for bad in ["", "short", "with,comma", "Upper123", "x y z w 1", "ééééé"] {
            assert_eq!(field_delimiter(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_of_jobs() {
        let read = |text: &str| parse_job_id(text, 77).map(|(id, _)| id.to_string());
        for (text, id) in [("12", "12"), ("12_3", "12_3"), ("12_[3-5]", "12"), ("70+7", "77")] {
            assert_eq!(read(text).as_deref(), Some(id), "{text}");
        }
        for bad in ["", "0", "x", "12_", "12_x", "12.batch", "_1", "99999999999999999999"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(parse_job_id("12_[3-5,9%2]", 12).unwrap().1.unwrap().len(), 4);
    }

    #[test]
    fn moments_are_seconds_or_nothing() {
        assert_eq!(parse_time("1794823044"), Some(UnixTime(1_794_823_044)));
        for none in ["", "0", "N/A", "Unknown", "None", "2026-11-16T10:42:26", "-5", "999999999999"] {
            assert_eq!(parse_time(none), None, "{none}");
        }
    }

    #[test]
    fn models_of_gpus_are_not_counted_twice() {
        let t4 = parse_tres("cpu=4,mem=2G,node=1,billing=20,gres/gpu=2,gres/gpu:t4=2");
        assert_eq!((t4.cpus, t4.nodes, t4.memory_mb), (4, 1, Some(2048)));
        assert_eq!(t4.gpus, [GpuCount { model: Some("t4".into()), count: 2 }]);
        let other_order = parse_tres("billing=9,cpu=1,gres/gpu:t4=1,gres/gpu=1,mem=1.50G,node=1");
        assert_eq!(other_order.gpus.len(), 1);
        assert_eq!(other_order.memory_mb, Some(1536));
        assert_eq!(parse_tres("gres/gpu=3").gpus, [GpuCount { model: None, count: 3 }]);
        assert_eq!(parse_tres("cpu,=,mem=x,gres/gpu:<b>=2"), TresAmounts::default());
    }

    #[test]
    fn text_is_bounded_and_plain() {
        assert_eq!(clean_field("a\tb\u{fffd}", 10), "ab\u{fffd}");
        assert_eq!(clean_field(&"é".repeat(50), 10).chars().count(), 10);
        assert_eq!(clean_value("(null)", 10), "");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(any in "[0-9_+\\[\\]=,MG-]{0,40}|(?s).{0,60}", most in 0_usize..20) {
            prop_assert!(clean_field(&any, most).chars().count() <= most);
            let _ = (parse_number(&any), parse_u32(&any), parse_time(&any), parse_tres(&any), parse_job_id(&any, 1));
            prop_assert_eq!(split_on(&any, b',').collect::<Vec<_>>(), any.split(',').collect::<Vec<_>>());
        }
    }
}
