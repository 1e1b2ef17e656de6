//! The one way to wait in a test: look again and again, and give up only long after a machine that does everything at
//! once would be done. What is there already is not waited for, so a long patience makes no test slow.

use std::time::{Duration, Instant};

/// So long is waited for anything that comes by itself.
pub const PATIENCE: Duration = Duration::from_mins(4);
/// The time between two looks, which grows while nothing comes: looking costs the machine that is waited for.
const PAUSES: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(250));

/// Waits until something is so.
pub async fn wait_until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    wait_for(what, async || if holds().await { Ok(()) } else { Err("") }).await;
}

/// Waits until something is there, and gives it. What was seen instead is told if it never comes.
pub async fn wait_for<T, Seen: std::fmt::Display>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, Seen>,
) -> T {
    let end = Instant::now() + PATIENCE;
    let (mut pause, longest) = PAUSES;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if Instant::now() > end => panic!("it never came to this: {what}\n{seen}"),
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = longest.min(pause * 5 / 4);
    }
}
