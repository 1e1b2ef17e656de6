//! Formats the text and numbers of a report.

use super::ReportPeriod;
use crate::clock::Day;
use crate::format;
use crate::text::strip_hidden;
use crate::usage::figures::UsageFigures;
use crate::usage::forecast::AllocationForecast;
use crate::usage::group_usage::GroupUsage;

/// Names are cut to this many characters.
const MAX_NAME_LEN: usize = 60;

/// Cleans a name from elsewhere for a report.
pub fn clean_name(name: &str) -> String {
    let mut short = strip_hidden(name, MAX_NAME_LEN + 1);
    let more = if short.chars().count() > MAX_NAME_LEN { "…" } else { "" };
    short = short.chars().take(MAX_NAME_LEN).collect();
    format!("{}{more}", short.trim())
}

/// Says where an allocation is heading.
pub fn forecast_sentence(forecast: &AllocationForecast, unread: usize, ends: Day, today: Day) -> String {
    if unread > 0 {
        let days = format::count(u64::try_from(unread).unwrap_or(u64::MAX), "day");
        return format!("Not final: {days} of its period not loaded when this report was created.");
    }
    if forecast.used > forecast.granted {
        return "Usage exceeds the allocation.".to_owned();
    }
    if today >= ends {
        return "The period has ended.".to_owned();
    }
    let part = |hours: f64| if forecast.granted > 0.0 { hours / forecast.granted } else { 0.0 };
    let Some((low, high)) = forecast.at_end else {
        return "There isn't enough data for a forecast.".to_owned();
    };
    let (low, high) = (format::percent(part(low)), format::percent(part(high)));
    let range = if low == high { low } else { format!("{low} to {high}") };
    let end = ends.words();
    let at_end = format!("At the current pace, usage will reach {range} of the allocation by {end}.");
    match forecast.runs_out {
        (Some(first), Some(last)) if first != last => {
            format!("{at_end} It would run out between {} and {}.", first.words(), last.words())
        }
        (Some(day), Some(_)) => format!("{at_end} It would run out around {}.", day.words()),
        (Some(day), None) => {
            format!("{at_end} It could run out as early as {}.", day.words())
        }
        _ => at_end,
    }
}

pub fn list_gaps(view: &GroupUsage, all: &UsageFigures, period: ReportPeriod, until: Day) -> Vec<String> {
    let mut notes = Vec::new();
    if view.accounts.is_empty() {
        notes.push("No accounts selected for this group.".to_owned());
    }
    let noun = period.noun();
    if until < period.from {
        notes.push(format!("This {noun} hasn't started."));
    } else if until < period.until {
        notes.push(format!("The {noun} wasn't over; figures run up to {}.", until.words()));
    }
    let unread: Vec<String> = view
        .accounts
        .iter()
        .filter(|account| account.usage.is_empty())
        .map(|account| format!("{} on {}", clean_name(&account.details.account), clean_name(&account.details.title)))
        .collect();
    if !unread.is_empty() {
        notes.push(format!("No data loaded yet for {}.", unread.join(", ")));
    }
    if all.missing > 0 {
        let days = format::count(all.missing, "day");
        let verb = if all.missing == 1 { "wasn't" } else { "weren't" };
        notes.push(format!("Incomplete: {days} {verb} loaded when this report was created."));
    }
    if all.is_cut {
        notes.push("Some days had more jobs than the portal could load, so their figures are too low.".to_owned());
    }
    notes
}
