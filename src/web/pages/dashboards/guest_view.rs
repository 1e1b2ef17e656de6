//! What guests see when a guest link works longer than the dashboard that it opens.

use crate::clock::UnixTime;
use crate::dashboards::DashboardWithRuns;
use crate::format;
use crate::store::dashboards::runs::DashboardRun;

/// The state of a dashboard, as far as guests notice it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuestViewState {
    /// It runs, until then at the latest.
    RunsUntil(UnixTime),
    /// It hasn't started; how many minutes it then runs.
    Starting(i64),
    Off,
}

/// What the owner must know before they send a link; empty if nothing ends before it expires. `expires_at`: when the last
/// of the links expires, if there are any.
pub fn describe_guest_view(status: &DashboardWithRuns, expires_at: Option<UnixTime>) -> String {
    describe_state(guest_view_state(status), expires_at)
}

fn guest_view_state(status: &DashboardWithRuns) -> GuestViewState {
    let Some(run) = status.run.as_ref().filter(|_| status.is_open()) else { return GuestViewState::Off };
    let Some(end) = run.ends_at() else { return GuestViewState::Starting(run.minutes) };
    let follow_up = status.next.as_ref().and_then(follow_up_end);
    GuestViewState::RunsUntil(follow_up.map_or(end, |next| next.max(end)))
}

/// When a follow-up that waits for its time ends, if it starts on time.
fn follow_up_end(run: &DashboardRun) -> Option<UnixTime> {
    run.ends_at().or_else(|| run.begin_at.map(|begin| begin.plus(run.minutes * 60)))
}

fn describe_state(state: GuestViewState, expires_at: Option<UnixTime>) -> String {
    match state {
        GuestViewState::RunsUntil(end) if expires_at.is_some_and(|expires| expires <= end) => String::new(),
        GuestViewState::RunsUntil(end) => format!(
            "The dashboard runs until {} at the latest, even if a link is valid for longer. After that, guests see a page that says it isn't running. If you extend it or start it again, the same link shows it again.",
            end.words()
        ),
        GuestViewState::Starting(minutes) => format!(
            "The dashboard hasn't started yet. Once it starts, it runs for {}. Before and after that, guests see a page that says it isn't running, even if their link is still valid.",
            format::minutes(u32::try_from(minutes).unwrap_or(0))
        ),
        GuestViewState::Off => {
            "The dashboard isn't running. Guests see a page that says so until you start it again.".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_outlives_the_dashboard_says_what_guests_see_then() {
        let end = UnixTime(1_794_820_320);
        let told = describe_state(GuestViewState::RunsUntil(end), Some(end.plus(7 * 86_400)));
        assert!(told.contains(&end.words()) && told.contains("isn't running"), "{told}");
        assert_eq!(describe_state(GuestViewState::RunsUntil(end), Some(end.plus(-60))), "", "it expires first");
        assert!(!describe_state(GuestViewState::RunsUntil(end), None).is_empty(), "before the first link is created");
        assert!(describe_state(GuestViewState::Starting(180), None).contains("3 h"));
        assert!(describe_state(GuestViewState::Off, None).contains("until you start it"));
    }
}
