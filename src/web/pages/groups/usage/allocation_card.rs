//! Allocation cards: what was used, a chart, and sentences on where it is heading that claim no more than is known.

use crate::clock::Day;
use crate::format;
use crate::store::allocations::Allocation;
use crate::usage::{AllocationForecast, AllocationUnit, GroupAccountUsage, GroupUsage, forecast_allocation};
use crate::web::pages::groups::usage::chart::{HEIGHT, WIDTH};

/// A bar warns from here on.
const WARNING_FRACTION: f64 = 0.8;

/// Points of a line; more could not be told apart.
const MAX_POINTS: usize = 120;

pub struct AllocationCard {
    /// The account and its cluster.
    pub title: String,
    pub period: String,
    /// For example `412 of 1,000 core hours (41%)`.
    pub used: String,
    /// Whether nothing of its period was read, so that there is no bar.
    pub is_unread: bool,
    /// Thousandths used, for the bar.
    pub value: u64,
    /// The bar's style.
    pub level: &'static str,
    /// What is known about its usage and forecast.
    pub sentences: Vec<String>,
    /// `None` while nothing is known.
    pub chart: Option<AllocationChart>,
}

pub struct AllocationChart {
    pub label: String,
    /// Usage so far: a line for each row of days that were read.
    pub lines: Vec<String>,
    /// The forecast's range; empty if unknown.
    pub range: String,
    /// The height of the granted amount.
    pub granted: String,
    /// Where today is; empty if the period is over or has not begun.
    pub today: String,
    pub ticks: [String; 2],
    pub marks: [String; 2],
}

pub fn build_allocation_cards(view: &GroupUsage, allocations: &[Allocation], today: Day) -> Vec<AllocationCard> {
    allocations.iter().map(|allocation| build_allocation_card(view, allocation, today)).collect()
}

fn build_allocation_card(view: &GroupUsage, allocation: &Allocation, today: Day) -> AllocationCard {
    let (begins, ends) = (allocation.begins(), allocation.ends());
    let account = view.account_of(allocation);
    let counted = AllocationUnit::parse(&allocation.unit).unwrap_or(AllocationUnit::ALL[0]);
    let named = counted.words(account.and_then(|account| account.details.site_unit()));
    let granted = counted.to_hours(allocation.amount);
    let today = account.map_or(today, |account| account.today);
    let found = account.map_or_else(
        || forecast_allocation(&[], granted, begins, ends, today),
        |account| account.forecast(allocation, counted, today),
    );
    let words = |hours: f64| format::amount(counted.from_hours(hours));
    let granted_words = format::fine_amount(allocation.amount);
    let ticks = |hours: f64| format::fine_amount(counted.from_hours(hours));
    let part = found.used_fraction();
    let is_unread = begins <= today && !account.is_some_and(|account| account.has_read(begins, ends));
    let mut sentences = forecast_sentences(&found, begins, ends, today, &|hours| format!("{} {named}", words(hours)));
    match account {
        None => {
            sentences = vec!["This account no longer belongs to the group, so its usage isn't loaded.".to_owned()];
        }
        Some(account) if is_unread => sentences = vec![progress_sentence(account)],
        Some(account) => sentences.extend(unread_days_sentence(account, begins, ends.min(today))),
    }
    let where_to = account.map_or_else(String::new, |account| format!(" on {}", account.details.title));
    AllocationCard {
        title: format!("{}{where_to}", allocation.account),
        period: format!("{} to {}", begins.words(), ends.words()),
        used: if is_unread {
            format!("{granted_words} {named} granted; usage not loaded yet")
        } else {
            format!("{} of {granted_words} {named} ({})", words(found.used), format::percent(part))
        },
        is_unread,
        value: format::round(part.min(1.0) * 1000.0),
        level: level(part),
        sentences,
        chart: account
            .filter(|_| begins <= today && !is_unread)
            .map(|_| draw_allocation_chart(&found, begins, ends, today, &ticks)),
    }
}

/// The style of a bar that shows how much of an allocation is used.
pub fn level(part: f64) -> &'static str {
    if part >= 1.0 {
        "danger"
    } else if part >= WARNING_FRACTION {
        "warning"
    } else {
        ""
    }
}

/// Says how far reading is.
fn progress_sentence(account: &GroupAccountUsage) -> String {
    let (read, wanted) = account.progress;
    format!("{read} of {wanted} days of the account's history are loaded, none of them in this period.")
}

/// Says that days have not been read yet, if so.
fn unread_days_sentence(account: &GroupAccountUsage, begins: Day, until: Day) -> Option<String> {
    match account.unread_days(begins, until) {
        0 => None,
        1 => Some("One day of the period hasn't been loaded yet, so actual usage may be higher.".to_owned()),
        many => Some(format!("{many} days of the period haven't been loaded yet, so actual usage may be higher.")),
    }
}

fn forecast_sentences(
    found: &AllocationForecast,
    begins: Day,
    ends: Day,
    today: Day,
    words: &dyn Fn(f64) -> String,
) -> Vec<String> {
    if today < begins {
        return vec![format!("Starts on {}.", begins.words())];
    }
    if ends < today {
        return vec![format!("Ended on {} with {} used.", ends.words(), format::percent(found.used_fraction()))];
    }
    let mut all = vec![format!("{} of the period has passed.", format::percent(found.elapsed))];
    if found.remaining() < 0.0 {
        all.push(format!("Usage exceeds the allocation by {}.", words(-found.remaining())));
    }
    let Some((low, high)) = found.at_end else {
        all.push("A forecast needs three full weeks of usage data.".to_owned());
        return all;
    };
    let share = |hours: f64| format::percent(if found.granted > 0.0 { hours / found.granted } else { 0.0 });
    let (low, high) = (share(low), share(high));
    let range = if low == high { format!("about {low}") } else { format!("{low} to {high}") };
    all.push(format!(
        "If usage continues as in the last {} weeks, {range} of the allocation will be used by {}.",
        found.weeks,
        ends.words()
    ));
    match found.runs_out {
        (Some(a), Some(b)) if a == b => {
            all.push(format!("It would run out around {}.", a.words()));
        }
        (Some(a), Some(b)) => {
            all.push(format!("It would run out between {} and {}.", a.words(), b.words()));
        }
        (Some(a), None) => all.push(format!(
            "If every week is busy, it would run out on {}; otherwise it lasts the whole period.",
            a.words()
        )),
        _ => {}
    }
    all
}

fn draw_allocation_chart(
    found: &AllocationForecast,
    begins: Day,
    ends: Day,
    today: Day,
    words: &dyn Fn(f64) -> String,
) -> AllocationChart {
    let highest = found.at_end.map_or(0.0, |(_, high)| high).max(found.used).max(found.granted);
    let top = if highest > 0.0 { highest * 1.05 } else { 1.0 };
    let length = days_to_f64((ends.0 - begins.0 + 1).max(1));
    let x = |day: Day| days_to_f64((day.0 - begins.0 + 1).max(0)) / length * WIDTH;
    let y = |hours: f64| HEIGHT - (hours / top * HEIGHT);
    let point = |day: Day, hours: f64| format!("{},{}", format::coordinate(x(day)), format::coordinate(y(hours)));
    let apart = found.cumulative.len().div_ceil(MAX_POINTS).max(1);
    let draw = |run: &Vec<(Day, f64)>| {
        let thinned = run.iter().step_by(apart).chain(run.last());
        thinned.map(|(day, used)| point(*day, *used)).collect::<Vec<_>>().join(" ")
    };
    let lines = split_at_gaps(&found.cumulative).iter().map(draw).collect();
    let last = today.min(ends);
    let range =
        found.at_end.map(|(low, high)| [point(last, found.used), point(ends, high), point(ends, low)].join(" "));
    AllocationChart {
        label: format!(
            "Usage from {} to {}: {} of {}.",
            begins.words(),
            last.words(),
            words(found.used),
            words(found.granted)
        ),
        lines,
        range: range.unwrap_or_default(),
        granted: format::coordinate(y(found.granted)),
        today: if today <= ends { format::coordinate(x(today)) } else { String::new() },
        ticks: [words(top), "0".to_owned()],
        marks: [begins.words(), ends.words()],
    }
}

/// The lines of what was used in all by the end of each day that was read: a day that was not read ends one. Each begins
/// with what was used before.
fn split_at_gaps(cumulative: &[(Day, f64)]) -> Vec<Vec<(Day, f64)>> {
    let mut used_before = 0.0;
    let mut runs = Vec::new();
    for run in cumulative.chunk_by(|(day, _), (next, _)| *next == day.plus(1)) {
        if let (Some((first, _)), Some((_, used))) = (run.first(), run.last()) {
            runs.push([&[(first.plus(-1), used_before)], run].concat());
            used_before = *used;
        }
    }
    runs
}

#[expect(clippy::cast_precision_loss, reason = "days")]
fn days_to_f64(days: i64) -> f64 {
    days as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Day = Day(20_773);

    #[test]
    fn no_line_is_drawn_through_days_that_were_not_read() {
        let at = |back: i64, used: f64| (TODAY.plus(-back), used);
        assert!(split_at_gaps(&[]).is_empty());
        let read = [at(9, 1.0), at(8, 2.0), at(5, 2.5), at(1, 4.0), at(0, 5.0)];
        let runs = split_at_gaps(&read);
        assert_eq!(
            runs,
            [
                vec![at(10, 0.0), at(9, 1.0), at(8, 2.0)],
                vec![at(6, 2.0), at(5, 2.5)],
                vec![at(2, 2.5), at(1, 4.0), at(0, 5.0)],
            ]
        );
    }

    fn said(hours: impl Fn(i64) -> f64, granted: f64, begins: i64, ends: i64) -> String {
        let days: Vec<(Day, f64)> = (0..60).rev().map(|b| (TODAY.plus(-b), hours(b))).collect();
        let (begins, ends) = (TODAY.plus(begins), TODAY.plus(ends));
        let found = forecast_allocation(&days, granted, begins, ends, TODAY);
        forecast_sentences(&found, begins, ends, TODAY, &format::amount).join(" ")
    }

    #[test]
    fn a_bar_warns_before_everything_is_used() {
        assert_eq!([0.0, 0.79, 0.8, 1.0, 8.71].map(level), ["", "", "warning", "danger", "danger"]);
    }

    #[test]
    fn no_more_is_said_than_is_known() {
        let even = said(|_| 10.0, 2000.0, -49, 50);
        assert!(even.contains("about 50% of the allocation will be used by 5 Jan 2027"), "{even}");
        assert!(!even.contains("run out"), "{even}");
        let uneven = said(|b| if b / 7 % 2 == 0 { 30.0 } else { 5.0 }, 1000.0, -49, 50);
        assert!(uneven.contains(" to ") && uneven.contains("run out"), "{uneven}");
        let young = said(|b| if b < 5 { 1.0 } else { 0.0 }, 1000.0, -49, 50);
        assert!(young.contains("A forecast needs"), "{young}");
        assert!(said(|_| 10.0, 100.0, -49, 50).contains("Usage exceeds the allocation by 400."));
        assert!(said(|_| 10.0, 100.0, 5, 50).starts_with("Starts on"));
        assert!(said(|_| 1.0, 100.0, -40, -1).contains("with 40% used"));
    }
}
