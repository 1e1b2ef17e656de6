//! The one way to wait in a test: look again and again, and give up only long after a machine that does everything at
//! once would be done. What is there already is not waited for, so a long patience makes no test slow. A wait that fails
//! says what it saw last.

use std::fmt::{Debug, Display};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// So long is waited for anything that comes by itself.
pub const PATIENCE: Duration = Duration::from_mins(4);
/// The time between two looks, which grows while nothing comes: looking costs the machine that is waited for.
const PAUSES: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(250));
/// A page is cut here when it is told.
const MOST_SHOWN: usize = 8000;

tokio::task_local! {
    /// What the present look has seen: the last page, script result or command output.
    static SEEN: Arc<Mutex<String>>;
}

/// Notes what was seen, for the wait that looks. Everything by which tests look calls this; outside of a wait it does
/// nothing.
pub fn note_seen(seen: impl FnOnce() -> String) {
    let _ = SEEN.try_with(|last| *last.lock().unwrap() = seen());
}

/// Waits until something is so. Where a value decides, [`wait_for_value`] tells it.
pub async fn wait_until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    wait_for(what, async || if holds().await { Ok(()) } else { Err("") }).await;
}

/// Waits until a value is as it should be, and gives it.
pub async fn wait_for_value<T: Debug>(what: &str, mut look: impl AsyncFnMut() -> T, holds: impl Fn(&T) -> bool) -> T {
    wait_for(what, async || {
        let value = look().await;
        if holds(&value) { Ok(value) } else { Err(format!("{value:#?}")) }
    })
    .await
}

/// Waits until something is there, and gives it. What was seen instead is told if it never comes.
pub async fn wait_for<T, Seen: Display>(what: &str, look: impl AsyncFnMut() -> Result<T, Seen>) -> T {
    wait_at_most(PATIENCE, what, look).await
}

async fn wait_at_most<T, Seen: Display>(
    patience: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, Seen>,
) -> T {
    let end = Instant::now() + patience;
    let (mut pause, longest) = PAUSES;
    let last = Arc::new(Mutex::new(String::new()));
    loop {
        match SEEN.scope(last.clone(), look()).await {
            Ok(found) => return found,
            Err(seen) if Instant::now() > end => {
                let seen = [seen.to_string(), last.lock().unwrap().clone()]
                    .map(|text| text.chars().take(MOST_SHOWN).collect::<String>())
                    .join("\n");
                panic!("waited in vain for: {what}\nlast seen:\n{}", seen.trim());
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = longest.min(pause * 5 / 4);
    }
}

#[tokio::test]
#[should_panic(expected = "waited in vain for: two\nlast seen:\n1\nthe page")]
async fn failed_wait_says_what_it_saw_last() {
    wait_at_most(Duration::ZERO, "two", async || {
        note_seen(|| "the page".to_owned());
        Err::<(), _>(1)
    })
    .await;
}
