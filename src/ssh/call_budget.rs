//! Counts the calls over a connection and keeps them within a polite number per minute.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::RunCommandError;
use super::slots::CallUrgency;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const HOURS_PER_DAY: usize = 24;
/// People may exceed the budget by this factor before they have to wait, too: a minute of clicking does no harm.
const INTERACTIVE_FACTOR: usize = 3;
/// Guests of a connection's owner have this part of the budget in addition to it, so that they take nothing from the owner.
const GUEST_DIVISOR: usize = 4;
/// Guests get as many calls as this however small the budget is.
const MIN_GUEST_CALLS: usize = 4;

/// The counters of one connection.
#[derive(Debug)]
pub struct CallBudget {
    calls_per_minute: usize,
    counts: Mutex<ConnectionCallCounts>,
}

#[derive(Debug)]
struct ConnectionCallCounts {
    recent: VecDeque<Instant>,
    /// Calls for guests; not part of `recent`.
    recent_for_guests: VecDeque<Instant>,
    /// Calls in each hour of the last day, the current hour last.
    hours: VecDeque<u64>,
    hour_began: Instant,
    commands: u64,
    failures: u64,
    used_at: Instant,
    problem: Option<String>,
}

/// A connection's counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Commands since the connection was opened.
    pub commands: u64,
    /// How many of them failed.
    pub failures: u64,
    pub calls_last_minute: usize,
    /// Calls in the last day, or since the connection was opened.
    pub calls_last_day: u64,
    /// Calls per minute that count as polite.
    pub budget: usize,
    pub idle: Duration,
    /// The most recent error.
    pub problem: Option<String>,
}

impl CallBudget {
    pub fn new(calls_per_minute: u32) -> Self {
        Self {
            calls_per_minute: usize::try_from(calls_per_minute).unwrap_or(usize::MAX).max(1),
            counts: Mutex::new(ConnectionCallCounts {
                recent: VecDeque::new(),
                recent_for_guests: VecDeque::new(),
                hours: VecDeque::from([0]),
                hour_began: Instant::now(),
                commands: 0,
                failures: 0,
                used_at: Instant::now(),
                problem: None,
            }),
        }
    }

    /// Counts a call, or refuses it if the last minute's budget is used up.
    pub(super) fn admit(&self, urgency: CallUrgency, now: Instant) -> Result<(), RunCommandError> {
        let mut inner = self.lock();
        inner.prune(now);
        let most = match urgency {
            CallUrgency::Interactive | CallUrgency::Terminal => self.calls_per_minute * INTERACTIVE_FACTOR,
            CallUrgency::Background | CallUrgency::Bulk => self.calls_per_minute,
            CallUrgency::Guest => (self.calls_per_minute / GUEST_DIVISOR).max(MIN_GUEST_CALLS),
        };
        let is_guest = urgency == CallUrgency::Guest;
        let recent = if is_guest { &mut inner.recent_for_guests } else { &mut inner.recent };
        if recent.len() >= most {
            return Err(RunCommandError::OverBudget);
        }
        recent.push_back(now);
        if let Some(hour) = inner.hours.back_mut() {
            *hour += 1;
        }
        inner.commands += 1;
        if matches!(urgency, CallUrgency::Interactive | CallUrgency::Terminal) {
            inner.used_at = now;
        }
        metrics::counter!("portolan_cluster_commands_total").increment(1);
        Ok(())
    }

    /// Someone is viewing what this connection delivers, so it is in use even if they run nothing themselves.
    pub fn record_use(&self, now: Instant) {
        self.lock().used_at = now;
    }

    pub(super) fn record_result<T>(&self, result: &Result<T, RunCommandError>, now: Instant) {
        if let Err(error) = result {
            let mut inner = self.lock();
            inner.failures += 1;
            inner.problem = Some(error.to_string());
            inner.prune(now);
            metrics::counter!("portolan_cluster_command_failures_total").increment(1);
        }
    }

    pub fn stats(&self, now: Instant) -> ConnectionStats {
        let mut inner = self.lock();
        inner.prune(now);
        ConnectionStats {
            commands: inner.commands,
            failures: inner.failures,
            calls_last_minute: inner.recent.len() + inner.recent_for_guests.len(),
            calls_last_day: inner.hours.iter().sum(),
            budget: self.calls_per_minute,
            idle: now.saturating_duration_since(inner.used_at),
            problem: inner.problem.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionCallCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionCallCounts {
    fn prune(&mut self, now: Instant) {
        for recent in [&mut self.recent, &mut self.recent_for_guests] {
            while recent.front().is_some_and(|at| now.saturating_duration_since(*at) >= MINUTE) {
                recent.pop_front();
            }
        }
        while now.saturating_duration_since(self.hour_began) >= HOUR {
            self.hour_began += HOUR;
            self.hours.push_back(0);
            if self.hours.len() > HOURS_PER_DAY {
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
        let tally = CallBudget::new(2);
        let start = Instant::now();
        for _ in 0..2 {
            tally.admit(CallUrgency::Background, start).unwrap();
        }
        assert_eq!(tally.admit(CallUrgency::Background, start), Err(RunCommandError::OverBudget));
        for _ in 0..4 {
            tally.admit(CallUrgency::Interactive, start).unwrap();
        }
        assert_eq!(tally.admit(CallUrgency::Interactive, start), Err(RunCommandError::OverBudget));
        let figures = tally.stats(start);
        assert_eq!((figures.calls_last_minute, figures.commands, figures.budget), (6, 6, 2));
        tally.admit(CallUrgency::Background, start + MINUTE).unwrap();
        assert_eq!(tally.stats(start + MINUTE).calls_last_minute, 1);
        assert_eq!(tally.stats(start + MINUTE).calls_last_day, 7);
        assert_eq!(tally.stats(start + HOUR * 25).calls_last_day, 0);
    }

    #[test]
    fn guests_take_nothing_from_the_owner() {
        let tally = CallBudget::new(20);
        let start = Instant::now();
        let later = start + Duration::from_secs(30);
        for _ in 0..5 {
            tally.admit(CallUrgency::Guest, later).unwrap();
        }
        assert_eq!(tally.admit(CallUrgency::Guest, later), Err(RunCommandError::OverBudget));
        assert!(tally.stats(later).idle >= Duration::from_secs(29), "guests don't keep a connection open");
        for _ in 0..20 {
            tally.admit(CallUrgency::Background, later).unwrap();
        }
        for _ in 0..40 {
            tally.admit(CallUrgency::Interactive, later).unwrap();
        }
        assert_eq!(tally.stats(later).calls_last_minute, 65);
        tally.admit(CallUrgency::Guest, later + MINUTE).unwrap();

        // A budget that the owner has used up is no limit for guests, and a tiny one still lets them in.
        let tiny = CallBudget::new(1);
        tiny.admit(CallUrgency::Background, start).unwrap();
        for _ in 0..MIN_GUEST_CALLS {
            tiny.admit(CallUrgency::Guest, start).unwrap();
        }
        assert_eq!(tiny.admit(CallUrgency::Guest, start), Err(RunCommandError::OverBudget));
    }
}
