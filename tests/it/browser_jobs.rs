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
        "window.lost = 0; document.addEventListener('htmx:afterSwap', () => {{ \
         if (!document.querySelector(\"{}\").checked) window.lost += 1; }})",
        box_of(&second)
    ))
    .await;

    // Done on the phone, seen on the desk.
    phone.go(&format!("/jobs/key/{first}")).await;
    phone.press("Cancel job").await;
    phone.wait_for_text("Cancel first one?").await;
    phone.press("Cancel").await;
    phone.wait_for_text("Cancelling 1 job").await;
    let words = format!("#job-key-{first}");
    let cancelled = format!(
        "const row = document.querySelector('{words}'); return Boolean(row) && row.innerText.includes('Cancelled')"
    );
    desk.wait_until_true("the desk shows it", &cancelled).await;
    let still = format!("return document.querySelector(\"{}\").checked", box_of(&second));
    assert_eq!(desk.run(&still).await, true, "what was chosen stays chosen");
    assert_eq!(desk.run("return window.lost").await, 0, "not for a moment was it lost");

    desk.press("Release").await;
    desk.wait_for_text("Release second one?").await;
    desk.press("Release").await;
    desk.wait_for_text("1 job released").await;
    desk.press("Back to jobs").await;
    desk.wait_for_text("second one").await;
    crate::queue::cancel("dave", &second);
    desk.close().await;
    phone.close().await;
}
