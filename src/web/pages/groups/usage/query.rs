//! The filter of the usage pages. Any query string, however wrong, leads to a sensible page.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::value::MapDeserializer;

use crate::clock::{Day, Month, UnixTime};
use crate::store::allocations::Allocation;
use crate::usage::figures::{ChartStep, FiguresSelection, MAX_BARS};
use crate::usage::{GroupAccountUsage, GroupUsage, SiteUnit, UsageMeasure};
use crate::web::pages::groups::table_sort::TableSort;
use crate::web::pages::groups::usage::formatting::{capitalize, measure_label};

/// Longer values are cut.
const MAX_VALUE_LEN: usize = 200;
/// No usage is read further back than this.
const MAX_DAYS_BACK: i64 = 400;
/// The form's value for a custom period.
const CUSTOM_PERIOD: &str = "days";
/// Separates the first and last day of a custom period in the query string.
const DAY_RANGE_SEPARATOR: &str = "..";
const MONTHS_OFFERED: usize = 13;

/// The query string's values, as received.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct UsageQuery {
    period: String,
    /// The first and last day of a custom period.
    first: String,
    last: String,
    by: String,
    show: String,
    account: String,
    pub member: String,
    pub kind: String,
    pub outcome: String,
    /// `gpus` for jobs with GPUs, or empty.
    pub with: String,
    pub from: String,
    pub until: String,
    pub partition: String,
    pub qos: String,
    pub gpu: String,
    /// The page number in a long list.
    pub page: String,
    pub sort: String,
}

impl UsageQuery {
    /// Ignores unknown keys; if a key is repeated, the last value counts.
    pub fn from_pairs(pairs: &[(String, String)]) -> Self {
        let cut = |value: &str| value.chars().take(MAX_VALUE_LEN).collect();
        let values: BTreeMap<&str, String> = pairs.iter().map(|(key, value)| (key.as_str(), cut(value))).collect();
        let values = MapDeserializer::<_, serde::de::value::Error>::new(values.into_iter());
        // Texts under known names: nothing can go wrong.
        let mut query = Self::deserialize(values).unwrap_or_default();
        if query.period == CUSTOM_PERIOD {
            query.period = format!("{}{DAY_RANGE_SEPARATOR}{}", query.first, query.last);
        }
        query
    }
}

/// A period that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsagePeriod {
    #[default]
    Days30,
    Days90,
    /// The last 365 days.
    Year,
    Month(Month),
    /// The period of the group's allocation.
    Allocation,
    /// From one day to another.
    Custom(Day, Day),
}

impl UsagePeriod {
    fn query_value(self) -> String {
        match self {
            Self::Days30 => "30d".into(),
            Self::Days90 => "90d".into(),
            Self::Year => "year".into(),
            Self::Month(month) => month.to_string(),
            Self::Allocation => "allocation".into(),
            Self::Custom(first, last) => format!("{first}{DAY_RANGE_SEPARATOR}{last}"),
        }
    }

    /// As text, to follow "in".
    pub fn label(self) -> String {
        match self {
            Self::Days30 => "the last 30 days".into(),
            Self::Days90 => "the last 90 days".into(),
            Self::Year => "the last 365 days".into(),
            Self::Month(month) => month.words(),
            Self::Allocation => "the allocation period".into(),
            Self::Custom(..) => "the selected period".into(),
        }
    }
}

/// The filter that results from a query.
#[derive(Debug, Clone)]
pub struct UsageFilter {
    pub choice: FiguresSelection,
    pub period: UsagePeriod,
    /// The site's own unit, if all selected accounts use the same one.
    pub unit: Option<SiteUnit>,
    pub today: Day,
    pub sort: TableSort,
    chosen_step: Option<ChartStep>,
    /// The period of the selected allocation.
    allocation_days: Option<(Day, Day)>,
}

/// A form option: value, label, whether it is selected.
pub type UsageSelectOption = (String, String, bool);

impl UsageFilter {
    /// Turns a query into a valid filter.
    pub fn resolve(query: &UsageQuery, view: &GroupUsage, allocations: &[Allocation], now: UnixTime) -> Self {
        let latest = view.accounts.iter().map(|account| account.today).max();
        let today = latest.unwrap_or_else(|| Day::from_time(now));
        let account = query.account.split_once('/').filter(|(slug, name)| {
            view.accounts.iter().any(|candidate| candidate.details.slug == *slug && candidate.details.account == *name)
        });
        let account = account.map(|(slug, name)| (slug.to_owned(), name.to_owned()));
        let is_chosen =
            |slug: &str, name: &str| account.as_ref().is_none_or(|(a, b)| a.as_str() == slug && b.as_str() == name);
        let mut units: Vec<Option<SiteUnit>> = view
            .accounts
            .iter()
            .filter(|candidate| is_chosen(&candidate.details.slug, &candidate.details.account))
            .map(|candidate| candidate.details.site_unit())
            .collect();
        units.dedup();
        // Units of different sites don't add up.
        let unit = if let [unit] = units.as_slice() { *unit } else { None };
        let account_of = |allocation: &Allocation| {
            view.accounts.iter().find(|account| account.details.cluster == allocation.cluster_id)
        };
        let selected: Vec<&Allocation> = allocations
            .iter()
            .filter(|allocation| {
                account_of(allocation).is_some_and(|account| is_chosen(&account.details.slug, &allocation.account))
            })
            .filter(|allocation| allocation.begins() <= today)
            .collect();
        let granted = selected.iter().find(|allocation| allocation.ends() >= today).or(selected.first()).copied();
        let (period, from, until) = resolve_period(&query.period, today, granted);
        let days = until.0 - from.0 + 1;
        let chosen_step = ChartStep::parse(&query.by).filter(|step| is_step_allowed(*step, days));
        let usual = if days <= 45 { ChartStep::Day } else { ChartStep::Week };
        let measure = UsageMeasure::parse(&query.show).unwrap_or(UsageMeasure::Cores);
        let measure = if measure == UsageMeasure::Site && unit.is_none() { UsageMeasure::Cores } else { measure };
        let step = chosen_step.unwrap_or(usual);
        let choice = FiguresSelection { from, until, step, measure, account };
        let granted = granted.map(|allocation| (allocation.begins(), allocation.ends()));
        let sort = TableSort::parse(&query.sort);
        Self { choice, period, unit, today, sort, chosen_step, allocation_days: granted }
    }

    /// The filter as a query string, with some values replaced; an empty value drops its key.
    pub fn to_query_string(&self, changes: &[(&str, &str)]) -> String {
        let account = self.choice.account.as_ref().map(|(slug, name)| format!("{slug}/{name}"));
        let mut pairs: Vec<(&str, String)> = vec![
            ("period", self.period.query_value()),
            ("by", self.chosen_step.map_or("", ChartStep::as_str).to_owned()),
            ("show", self.choice.measure.as_str().to_owned()),
            ("account", account.unwrap_or_default()),
            ("sort", self.sort.query_value()),
        ];
        for (key, value) in changes {
            match pairs.iter_mut().find(|(present, _)| present == key) {
                Some(slot) => (*value).clone_into(&mut slot.1),
                None => pairs.push((key, (*value).to_owned())),
            }
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (key, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
            query.append_pair(key, value);
        }
        query.finish()
    }

    /// The first and last day as text.
    pub fn days_label(&self) -> String {
        format!("{} to {}", self.choice.from.words(), self.choice.until.words())
    }

    pub fn period_options(&self) -> Vec<UsageSelectOption> {
        let mut all = vec![
            (UsagePeriod::Days30, "Last 30 days".to_owned()),
            (UsagePeriod::Days90, "Last 90 days".to_owned()),
            (UsagePeriod::Year, "Last 365 days".to_owned()),
        ];
        if let Some((begins, ends)) = self.allocation_days {
            let label = format!("Allocation: {} to {}", begins.words(), ends.words());
            all.push((UsagePeriod::Allocation, label));
        }
        let months = std::iter::successors(Some(self.today.month()), |month| Some(month.previous()));
        all.extend(months.take(MONTHS_OFFERED).map(|month| (UsagePeriod::Month(month), month.words())));
        let named = |(period, label): (UsagePeriod, String)| (period.query_value(), label, period == self.period);
        let is_chosen = matches!(self.period, UsagePeriod::Custom(..));
        let other = (CUSTOM_PERIOD.to_owned(), "Custom dates…".to_owned(), is_chosen);
        all.into_iter().map(named).chain([other]).collect()
    }

    /// The periods that are one click away: query string, label, whether it is selected.
    pub fn period_shortcuts(&self) -> Vec<UsageSelectOption> {
        let this_month = self.today.month();
        let periods = [
            (UsagePeriod::Days30, "Last 30 days"),
            (UsagePeriod::Month(this_month), "This month"),
            (UsagePeriod::Month(this_month.previous()), "Last month"),
        ];
        let link = |(period, label): (UsagePeriod, &str)| {
            // Bars that fit one period may not fit another.
            let value = period.query_value();
            let query = self.to_query_string(&[("period", value.as_str()), ("by", "")]);
            (query, label.to_owned(), period == self.period)
        };
        periods.map(link).into()
    }

    /// For the custom period's fields: the first and last selectable day, and the current values.
    pub fn custom_day_values(&self) -> [String; 4] {
        let (from, until) = (self.choice.from, self.choice.until);
        [self.today.plus(-MAX_DAYS_BACK), self.today, from, until].map(|day| day.to_string())
    }

    /// The options for the width of a bar: day, week or month.
    pub fn step_options(&self) -> Vec<UsageSelectOption> {
        let days = self.choice.until.0 - self.choice.from.0 + 1;
        let fitting = ChartStep::ALL.into_iter().filter(|step| is_step_allowed(*step, days));
        let named = fitting.map(|step| {
            let word = step.as_str();
            (word.to_owned(), format!("By {word}"), self.chosen_step == Some(step))
        });
        let usual = (String::new(), "Automatic".to_owned(), self.chosen_step.is_none());
        std::iter::once(usual).chain(named).collect()
    }

    /// The options for what is charted.
    pub fn measure_options(&self) -> Vec<UsageSelectOption> {
        let all = UsageMeasure::ALL.into_iter();
        let fitting = all.filter(|measure| *measure != UsageMeasure::Site || self.unit.is_some());
        let label = |measure: UsageMeasure| capitalize(&measure_label(measure, self.unit));
        fitting.map(|measure| (measure.as_str().to_owned(), label(measure), measure == self.choice.measure)).collect()
    }

    /// The selected account's name; empty for all.
    pub fn account_label(&self, view: &GroupUsage) -> String {
        let chosen = self.account_options(view).into_iter().find(|(value, _, is_on)| *is_on && !value.is_empty());
        chosen.map(|(_, label, _)| label).unwrap_or_default()
    }

    /// Empty if there is only one account.
    pub fn account_options(&self, view: &GroupUsage) -> Vec<UsageSelectOption> {
        if view.accounts.len() < 2 {
            return Vec::new();
        }
        let chosen = self.choice.account.as_ref();
        let all = (String::new(), "All accounts".to_owned(), chosen.is_none());
        let option = |account: &GroupAccountUsage| {
            let (slug, name) = (&account.details.slug, &account.details.account);
            let is_chosen = chosen.is_some_and(|(a, b)| a == slug && b == name);
            (format!("{slug}/{name}"), format!("{name} on {}", account.details.title), is_chosen)
        };
        std::iter::once(all).chain(view.accounts.iter().map(option)).collect()
    }
}

/// Whether that many days make a reasonable number of bars.
fn is_step_allowed(step: ChartStep, days: i64) -> bool {
    step != ChartStep::Day || usize::try_from(days).is_ok_and(|days| days <= MAX_BARS)
}

fn resolve_period(word: &str, today: Day, granted: Option<&Allocation>) -> (UsagePeriod, Day, Day) {
    let back = |days: i64| today.plus(1 - days);
    let deepest = today.plus(-MAX_DAYS_BACK);
    if let Some(month) = Month::parse(word)
        && month.first() <= today
        && month.last() >= deepest
    {
        return (UsagePeriod::Month(month), month.first(), month.last().min(today));
    }
    if let Some((first, last)) = parse_day_range(word) {
        let last = last.clamp(deepest, today);
        let first = first.clamp(deepest, last);
        return (UsagePeriod::Custom(first, last), first, last);
    }
    match (word, granted) {
        ("90d", _) => (UsagePeriod::Days90, back(90), today),
        ("year", _) => (UsagePeriod::Year, back(365), today),
        ("allocation", Some(granted)) if granted.ends() >= deepest => {
            let until = granted.ends().min(today);
            (UsagePeriod::Allocation, granted.begins().max(deepest), until)
        }
        _ => (UsagePeriod::Days30, back(30), today),
    }
}

/// For example `2026-09-03..2026-10-20`, in either order.
fn parse_day_range(word: &str) -> Option<(Day, Day)> {
    let (first, last) = word.split_once(DAY_RANGE_SEPARATOR)?;
    let (first, last) = match (Day::parse(first), Day::parse(last)) {
        (Some(first), Some(last)) => (first, last),
        // With only one end given: a month from there.
        (Some(first), None) => (first, first.plus(29)),
        (None, Some(last)) => (last.plus(-29), last),
        (None, None) => return None,
    };
    Some((first.min(last), first.max(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Day = Day(20_773);

    #[test]
    fn words_become_days() {
        let month = Month::parse("2026-10").unwrap();
        let day = |text| Day::parse(text).unwrap();
        for (word, period, days) in [
            ("", UsagePeriod::Days30, 30),
            ("90d", UsagePeriod::Days90, 90),
            ("year", UsagePeriod::Year, 365),
            ("2026-10", UsagePeriod::Month(month), 31),
            ("2026-11", UsagePeriod::Month(TODAY.month()), 16),
            ("2027-01", UsagePeriod::Days30, 30),
            ("1999-01", UsagePeriod::Days30, 30),
            ("2026-13", UsagePeriod::Days30, 30),
            ("9999-99", UsagePeriod::Days30, 30),
            ("allocation", UsagePeriod::Days30, 30),
            ("<b>", UsagePeriod::Days30, 30),
            ("2026-09-03..2026-10-20", UsagePeriod::Custom(day("2026-09-03"), day("2026-10-20")), 48),
            ("2026-10-20..2026-09-03", UsagePeriod::Custom(day("2026-09-03"), day("2026-10-20")), 48),
            ("2026-11-10..2030-01-01", UsagePeriod::Custom(day("2026-11-10"), TODAY), 7),
            ("0001-01-01..9999-12-31", UsagePeriod::Custom(TODAY.plus(-400), TODAY), 401),
            ("2030-01-01..2031-01-01", UsagePeriod::Custom(TODAY, TODAY), 1),
            ("1990-01-01..1991-01-01", UsagePeriod::Custom(TODAY.plus(-400), TODAY.plus(-400)), 1),
            ("2026-09-03..", UsagePeriod::Custom(day("2026-09-03"), day("2026-10-02")), 30),
            ("..2026-10-02", UsagePeriod::Custom(day("2026-09-03"), day("2026-10-02")), 30),
            ("x..2026-10-02", UsagePeriod::Custom(day("2026-09-03"), day("2026-10-02")), 30),
            ("..", UsagePeriod::Days30, 30),
        ] {
            let (found, from, until) = resolve_period(word, TODAY, None);
            assert_eq!((found, until.0 - from.0 + 1), (period, days), "{word}");
            // The resulting query string leads to the same filter.
            assert_eq!(resolve_period(&found.query_value(), TODAY, None), (found, from, until), "{word}");
        }
    }

    #[test]
    fn the_last_of_two_counts_and_strangers_are_passed_over() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let query = UsageQuery::from_pairs(&[pair("by", "day"), pair("by", "week"), pair("x", "y")]);
        assert_eq!(query.by, "week");
        assert!(
            is_step_allowed(ChartStep::Week, 400)
                && !is_step_allowed(ChartStep::Day, 93)
                && is_step_allowed(ChartStep::Day, 92)
        );
    }
}
