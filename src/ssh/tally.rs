//! What went over a connection: counted, and kept within a polite number of calls per minute.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::line::RunError;
use super::slots::Urgency;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
/// A day is counted in hours.
const HOURS: usize = 24;
/// People may go this many times over the budget before they, too, must wait: a minute of clicking is no hammering.
const PEOPLE_MAY: usize = 3;

/// The figures of one connection.
#[derive(Debug)]
pub struct Tally {
    budget: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    recent: VecDeque<Instant>,
    /// Calls in each hour of the last day, the present one last.
    hours: VecDeque<u64>,
    hour_began: Instant,
    commands: u64,
    failures: u64,
    used_at: Instant,
    problem: Option<String>,
}

/// The figures at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// Commands since the connection stands.
    pub commands: u64,
    /// How many of them gave nothing.
    pub failures: u64,
    /// Calls in the last minute.
    pub calls_last_minute: usize,
    /// Calls in the last day, or since the connection stands.
    pub calls_last_day: u64,
    /// How many calls a minute are polite.
    pub budget: usize,
    /// Time since the last use.
    pub idle: Duration,
    /// What went wrong last.
    pub problem: Option<String>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(calls_per_minute: u32) -> Self {
        Self {
            budget: usize::try_from(calls_per_minute).unwrap_or(usize::MAX).max(1),
            inner: Mutex::new(Inner {
                recent: VecDeque::new(),
                hours: VecDeque::from([0]),
                hour_began: Instant::now(),
                commands: 0,
                failures: 0,
                used_at: Instant::now(),
                problem: None,
            }),
        }
    }

    /// Counts a call, or refuses it because there were enough in the last minute.
    pub(super) fn admit(&self, urgency: Urgency, now: Instant) -> Result<(), RunError> {
        let mut inner = self.lock();
        inner.prune(now);
        let most =
            if urgency == Urgency::Interactive { self.budget * PEOPLE_MAY } else { self.budget };
        if inner.recent.len() >= most {
            return Err(RunError::OverBudget);
        }
        inner.recent.push_back(now);
        if let Some(hour) = inner.hours.back_mut() {
            *hour += 1;
        }
        inner.commands += 1;
        if urgency == Urgency::Interactive {
            inner.used_at = now;
        }
        metrics::counter!("portolan_cluster_commands_total").increment(1);
        Ok(())
    }

    /// Someone looks at what comes over the connection: it is in use, although they ask nothing themselves.
    pub fn note_use(&self, now: Instant) {
        self.lock().used_at = now;
    }

    /// Notes how a call ended.
    pub(super) fn note<T>(&self, result: &Result<T, RunError>, now: Instant) {
        if let Err(error) = result {
            let mut inner = self.lock();
            inner.failures += 1;
            inner.problem = Some(error.to_string());
            inner.prune(now);
            metrics::counter!("portolan_cluster_command_failures_total").increment(1);
        }
    }

    /// The figures now.
    pub fn figures(&self, now: Instant) -> Figures {
        let mut inner = self.lock();
        inner.prune(now);
        Figures {
            commands: inner.commands,
            failures: inner.failures,
            calls_last_minute: inner.recent.len(),
            calls_last_day: inner.hours.iter().sum(),
            budget: self.budget,
            idle: now.saturating_duration_since(inner.used_at),
            problem: inner.problem.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn prune(&mut self, now: Instant) {
        while self.recent.front().is_some_and(|at| now.saturating_duration_since(*at) >= MINUTE) {
            self.recent.pop_front();
        }
        while now.saturating_duration_since(self.hour_began) >= HOUR {
            self.hour_began += HOUR;
            self.hours.push_back(0);
            if self.hours.len() > HOURS {
                self.hours.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_work_stops_at_the_budget_and_people_later() {
        let tally = Tally::new(2);
        let start = Instant::now();
        for _ in 0..2 {
            tally.admit(Urgency::Background, start).unwrap();
        }
        assert_eq!(tally.admit(Urgency::Background, start), Err(RunError::OverBudget));
        for _ in 0..4 {
            tally.admit(Urgency::Interactive, start).unwrap();
        }
        assert_eq!(tally.admit(Urgency::Interactive, start), Err(RunError::OverBudget));
        let figures = tally.figures(start);
        assert_eq!((figures.calls_last_minute, figures.commands, figures.budget), (6, 6, 2));
        tally.admit(Urgency::Background, start + MINUTE).unwrap();
        assert_eq!(tally.figures(start + MINUTE).calls_last_minute, 1);
        assert_eq!(tally.figures(start + MINUTE).calls_last_day, 7);
        assert_eq!(tally.figures(start + HOUR * 25).calls_last_day, 0);
    }
}
