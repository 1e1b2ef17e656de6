//! The list of jobs in a real browser: it changes by itself in every tab, and what was chosen stays chosen.

use crate::queue::{connected, row, submit, wait_for_list};
use crate::support::browser::Browser;

#[tokio::test(flavor = "multi_thread")]
async fn job_list_updates_in_every_tab_and_keeps_the_selection() {
    let (portal, _, dave) = connected("dave").await;
    let options = ["-o", "/dev/null", "-t", "5", "--hold", "-J"];
    let first = submit("dave", "sleep 200", &[&options[..], &["first one"]].concat());
    let second = submit("dave", "sleep 200", &[&options[..], &["second one"]].concat());
    wait_for_list(&dave, "/jobs", "both", |list| {
        row(list, &first).contains("Held") && row(list, &second).contains("Held")
    })
    .await;

    let desk = Browser::open(&portal.url, 1280).await;
    let phone = Browser::open(&portal.url, 390).await;
    for browser in [&desk, &phone] {
        browser.sign_in("dave").await;
        browser.go("/jobs").await;
        browser.wait_for_text("second one").await;
    }
    let box_of = |job: &str| format!("input[name=job][value='key/{job}']");
    // In one go: the list may be renewed between finding and clicking.
    desk.run(&format!("document.querySelector(\"{}\").click()", box_of(&second))).await;
    desk.wait_for_text("1 job selected").await;
    // Every new list is looked at in the swap itself, before it has settled: a person may click right then.
    desk.run(&format!(
        "window.lost = 0; document.addEventListener('htmx:afterSwap', (event) => {{ \
         if (event.target.id === 'queue' && !document.querySelector(\"{}\").checked) window.lost += 1; }})",
        box_of(&second)
    ))
    .await;

    // Done on the phone, seen on the desk.
    phone.go(&format!("/jobs/key/{first}")).await;
    phone.press("Cancel job").await;
    phone.wait_for_text("Cancel first one?").await;
    phone.find("#job-action .btn-danger").await.click().await.unwrap();
    let is_cancelled = "return document.querySelector('#job-live .job-line').innerText.includes('Cancelled')";
    phone.wait_until_true("the page shows the new state", is_cancelled).await;
    assert_eq!(phone.path().await, format!("/jobs/key/{first}"), "asked and done on the page itself");
    let is_closed = "return document.querySelector('#job-action').childElementCount === 0";
    phone.wait_until_true("the outcome makes way for the new state", is_closed).await;
    let words = format!("#job-key-{first}");
    let cancelled = format!(
        "const row = document.querySelector('{words}'); return Boolean(row) && row.innerText.includes('Cancelled')"
    );
    desk.wait_until_true("the desk shows it", &cancelled).await;
    let still = format!("return document.querySelector(\"{}\").checked", box_of(&second));
    assert_eq!(desk.run(&still).await, true, "what was chosen stays chosen");
    assert_eq!(desk.run("return window.lost").await, 0, "not for a moment was it lost");

    desk.press("Release jobs").await;
    desk.wait_for_text("Release second one?").await;
    desk.press("Go back").await;
    desk.wait_until_true("nothing is asked any more", is_closed).await;
    desk.press("Release jobs").await;
    desk.press("Release job").await;
    desk.wait_for_text("1 job released").await;
    assert_eq!(desk.path().await, "/jobs");
    let is_settled = "return !document.querySelector('#job-action [data-action-note]')";
    desk.wait_until_true("the new state is shown, and no longer promised", is_settled).await;
    desk.wait_for_text("Undo release").await;
    desk.press("Close").await;
    desk.wait_until_true("nothing is said any more", is_closed).await;
    desk.wait_for_text("second one").await;
    crate::queue::cancel("dave", &second);
    desk.close().await;
    phone.close().await;
}

/// A tick that is set while new rows are on their way is in the new rows; rows that come in the middle of a click wait for
/// its end.
#[tokio::test(flavor = "multi_thread")]
async fn ticks_set_during_a_refresh_are_kept() {
    let (portal, _, dave) = connected("dave").await;
    let job = submit("dave", "sleep 200", &["-o", "/dev/null", "-t", "5", "--hold", "-J", "ticked"]);
    wait_for_list(&dave, "/jobs", "held", |list| row(list, &job).contains("Held")).await;
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("dave").await;
    browser.go("/jobs").await;
    browser.wait_for_text("ticked").await;
    let tick = format!("document.querySelector(\"input[name=job][value='key/{job}']\")");

    // The answer is there, and the old rows are still shown: that is when the box is ticked.
    browser
        .run(&format!(
            "window.swaps = null; \
             document.addEventListener('htmx:beforeOnLoad', (event) => {{ \
               if (event.detail.target?.id !== 'queue' || window.swaps !== null) return; \
               window.swaps = 0; {tick}.click(); }}); \
             document.addEventListener('htmx:afterSwap', (event) => {{ \
               if (event.target.id === 'queue' && window.swaps !== null) window.swaps += 1; }}); \
             htmx.trigger('#queue', 'seen')"
        ))
        .await;
    browser.wait_until_true("the new rows are there", "return window.swaps > 0").await;
    assert_eq!(browser.run(&format!("return {tick}.checked")).await, true);
    browser.wait_for_text("1 job selected").await;

    // A press begins, new rows come, and the press ends.
    browser
        .run(&format!(
            "window.pressed = {tick}; window.answers = 0; \
             document.addEventListener('htmx:afterOnLoad', (event) => {{ \
               if (event.detail.target?.id === 'queue') window.answers += 1; }}); \
             window.pressed.dispatchEvent(new PointerEvent('pointerdown', {{ bubbles: true }})); \
             htmx.trigger('#queue', 'seen')"
        ))
        .await;
    browser.wait_until_true("an answer came", "return window.answers > 0").await;
    assert_eq!(browser.run("return window.pressed.isConnected").await, true, "what is pressed stays");
    browser
        .run("window.pressed.dispatchEvent(new PointerEvent('pointerup', { bubbles: true })); window.pressed.click()")
        .await;
    browser.wait_until_true("the new rows come after it", "return !window.pressed.isConnected").await;
    assert_eq!(browser.run(&format!("return {tick}.checked")).await, false, "the click counted");
    crate::queue::cancel("dave", &job);
    browser.close().await;
}

/// On a phone the first job is at the top, the filters are folded, and the time of a running job goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn phone_shows_jobs_first_and_their_time_goes_on() {
    let (portal, _, dave) = connected("dave").await;
    let name = format!("clock-{}", std::process::id());
    let job = submit("dave", "sleep 250", &["-o", "/dev/null", "-t", "5", "-n", "1", "-J", &name]);
    wait_for_list(&dave, "/jobs", "running", |list| row(list, &job).contains("Running")).await;
    let phone = Browser::open(&portal.url, 390).await;
    phone.sign_in("dave").await;
    phone.go("/jobs").await;
    phone.wait_for_text(&name).await;
    let top = "return Math.round(document.querySelector('.jobs-table tbody tr').getBoundingClientRect().top)";
    let top = phone.run(top).await.as_i64().unwrap();
    assert!(top <= 250, "the first row begins at {top} px");
    let wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(phone.run(wide).await, true, "nothing is wider than the screen");

    phone.go(&format!("/jobs?state=running&q={name}")).await;
    phone.wait_for_text(&name).await;
    let summary = phone.find("#jobs-filters > summary").await;
    let words = summary.text().await.unwrap();
    assert!(words.contains("Running") && words.contains(&name), "{words}");
    summary.click().await.unwrap();
    let renew = "window.swaps = 0; document.addEventListener('htmx:afterSwap', (event) => { \
                 if (event.target.id === 'queue') window.swaps += 1; }); htmx.trigger('#queue', 'seen')";
    phone.run(renew).await;
    phone.wait_until_true("new rows", "return window.swaps > 0").await;
    assert_eq!(phone.run("return document.querySelector('#jobs-filters').open").await, true, "it stays unfolded");

    // Without any new rows: only the browser counts.
    phone
        .run(
            "document.addEventListener('htmx:beforeSwap', (event) => { event.detail.shouldSwap = false; }); \
             window.first = document.querySelector('[data-elapsed]').textContent",
        )
        .await;
    let moved = "return document.querySelector('[data-elapsed]').textContent !== window.first";
    phone.wait_until_true("the time goes on", moved).await;
    crate::queue::cancel("dave", &job);
    phone.close().await;
}
