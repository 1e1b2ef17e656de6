//! The help page: every term, and questions whose links all lead somewhere for the person who reads them; and the terms
//! that are explained on other pages.

use std::collections::BTreeSet;

use portolan::explain::GlossaryTerm;

use crate::fair_share::lab;
use crate::queue::{cancel, connected, submit, wait_for_list};
use crate::support::browser::Browser;
use crate::support::{Client, Page, TestApp};

/// Opens every link of the help page as the person whose page it is, and gives the addresses.
async fn follow_links(who: &Client, name: &str) -> BTreeSet<String> {
    let page = who.get("/help").await;
    assert_eq!(page.status, 200, "{name}");
    let ids: BTreeSet<String> = page.attributes("main [id]", "id").into_iter().collect();
    let mut addresses = BTreeSet::new();
    for href in page.attributes("main a[href]", "href") {
        if let Some(anchor) = href.strip_prefix('#') {
            assert!(ids.contains(anchor), "{name}: nothing is called {anchor}");
        } else {
            assert_eq!(who.get(&href).await.status, 200, "{name}: {href}");
            addresses.insert(href);
        }
    }
    addresses
}

#[tokio::test]
async fn help_lists_every_term() {
    let (portal, _, max) = TestApp::with_member("max").await;
    let page = max.get("/help").await;
    for term in GlossaryTerm::ALL {
        let anchor = term.anchor();
        assert_eq!(page.select_all(&format!("#{anchor} dt")), [term.title()]);
        assert_eq!(page.select_all(&format!("#{anchor} dd")), [term.meaning()]);
    }
    assert_eq!(page.select_all(".glossary > div").len(), GlossaryTerm::ALL.len());
    for menu in [".menu-person", ".menu-phone"] {
        assert_eq!(page.select_all(&format!("{menu} a[href='/help']")), ["Help"]);
    }

    let visitor = portal.visitor().get("/help").await;
    assert_eq!((visitor.status, visitor.location()), (303, "/sign-in?next=%2Fhelp"));
}

#[tokio::test]
async fn every_answer_links_to_a_page_that_its_reader_may_open() {
    let (portal, admin) = TestApp::with_admin().await;
    let group = portal.group(&admin, "Smith Lab").await;
    let pi = portal.join(&portal.invite(&admin, group, "pi").await, "pia").await;
    let member = portal.join(&portal.invite(&admin, group, "member").await, "max").await;
    let nobody = portal.join(&portal.invite(&admin, group, "member").await, "nora").await;
    let nora = portal.person_id("nora").await;
    admin.post(&format!("/groups/{group}/people/{nora}/remove"), &[]).await;

    let page = member.get("/help").await;
    let questions = page.attributes(".help-question", "id");
    assert!(questions.len() >= 20, "{questions:?}");
    assert_eq!(page.select_all("details.help-question:not([open]) > summary > h3").len(), questions.len(), "folded");
    for question in &questions {
        let links = page.select_all(&format!("#{question} .help-links a"));
        assert!(!links.is_empty(), "{question} leads nowhere");
    }

    let of_member = follow_links(&member, "max").await;
    let of_pi = follow_links(&pi, "pia").await;
    let of_admin = follow_links(&admin, "ada").await;
    let of_nobody = follow_links(&nobody, "nora").await;
    let usage = format!("/groups/{group}/usage?period=2026-10");
    assert!(of_member.contains(&usage) && of_pi.contains(&usage), "{of_member:?}");
    assert!(!of_admin.contains(&usage) && !of_nobody.contains(&usage), "usage is only for the group");
    let accounts = format!("/groups/{group}/accounts");
    assert!(of_pi.contains(&accounts) && !of_member.contains(&accounts));
    for path in ["/clusters/new", "/people", "/activity"] {
        assert!(of_admin.contains(path), "{path} for an administrator");
        for (others, name) in [(&of_member, "max"), (&of_pi, "pia"), (&of_nobody, "nora")] {
            assert!(!others.contains(path), "{path} for {name}");
        }
    }
}

/// The terms that a page explains: each once, with the words of the help page.
fn explained(page: &Page) -> BTreeSet<String> {
    let addresses = page.attributes("main a.term", "href");
    let texts = page.attributes("main a.term", "title");
    assert_eq!(addresses.len(), texts.len(), "every one has an explanation");
    for (address, text) in addresses.iter().zip(&texts) {
        let term = GlossaryTerm::ALL.iter().find(|term| *address == format!("/help#{}", term.anchor()));
        assert_eq!(term.map(|term| term.meaning()), Some(text.as_str()), "{address}");
    }
    let all: BTreeSet<String> = addresses.iter().map(|address| address.replace("/help#", "")).collect();
    assert_eq!(all.len(), addresses.len(), "one is explained twice: {addresses:?}");
    all
}

fn assert_explains(page: &Page, terms: &[GlossaryTerm]) {
    let found = explained(page);
    for term in terms {
        assert!(found.contains(term.anchor()), "{} is not among {found:?}", term.anchor());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_of_jobs_forms_and_usage_are_explained_once_per_page() {
    use GlossaryTerm::{
        Account, Core, CoreHours, FairShare, JobArray, JobId, JobState, JobType, Memory, Node, Partition,
        PendingReason, Priority, QueuedDemand, TimeLimit, WastedHours,
    };
    let (_portal, _admin, pi, alice, group) = lab().await;
    let job = submit("alice", "true", &["-A", "def-smith", "-H", "-t", "60", "-o", "/dev/null"]);
    let columns = ["account", "partition", "nodes", "priority"].map(|name| ("column", name));
    alice.post("/jobs/columns", &columns).await;
    let list = wait_for_list(&alice, "/jobs", "the job", |page| page.text().contains(&job)).await;
    assert_explains(&list, &[JobState, Account, Partition, Node, Priority]);
    let page = alice.get(&format!("/jobs/key/{job}")).await;
    assert_explains(&page, &[JobId, Account, Partition, TimeLimit, PendingReason]);
    let form = alice.get("/compose/key/python-script").await;
    assert_eq!(form.status, 200, "{}", form.text());
    assert_explains(&form, &[Account, TimeLimit, Core, Memory, JobArray]);
    let blank = form.attributes("form a.term", "target");
    assert!(!blank.is_empty() && blank.iter().all(|target| target == "_blank"), "nothing typed is lost");

    let path = format!("/groups/{group}/usage/fair-share");
    let page = wait_for_list(&pi, &path, "fair share and queue", |page| {
        page.select_all(".standing-share").len() >= 2 && page.select_all("#standing-queue-key tbody tr").len() == 2
    })
    .await;
    assert_explains(&page, &[FairShare, QueuedDemand, Account, TimeLimit]);
    let path = format!("/groups/{group}/usage");
    let page = wait_for_list(&pi, &path, "figures", |page| !page.select_all(".use-table").is_empty()).await;
    assert_explains(&page, &[CoreHours, WastedHours, JobType]);
    cancel("alice", &job);
}

/// Whether the explanation is open, and what it says.
const TIP: &str = "const tip = document.querySelector('#term-tip'); \
    return tip && tip.matches(':popover-open') ? tip.textContent : ''";

async fn wait_for_tip(browser: &Browser, text: &str) {
    let script = format!("const text = (() => {{ {TIP} }})(); return text === {}", serde_json::json!(text));
    browser.wait_until_true(&format!("the explanation is '{text}'"), &script).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_open_with_keyboard_mouse_and_finger() {
    let (portal, _, dave) = connected("dave").await;
    let job = submit("dave", "true", &["-o", "/dev/null", "-t", "5", "--hold"]);
    wait_for_list(&dave, "/jobs", "the job", |page| page.text().contains(&job)).await;
    let browser = Browser::open(&portal.url, 390).await;
    browser.sign_in("dave").await;
    // A form does not renew itself, so what is found there stays.
    browser.go("/compose/key/python-script").await;
    let term = "document.querySelector(\"a.term[href='/help#time-limit']\")";
    let meaning = GlossaryTerm::TimeLimit.meaning();

    browser.run(&format!("{term}.focus()")).await;
    wait_for_tip(&browser, meaning).await;
    let described = browser.run(&format!("return {term}.getAttribute('aria-describedby')")).await;
    assert_eq!(described, "term-tip");
    let fits = "const box = document.querySelector('#term-tip').getBoundingClientRect(); \
        return box.left >= 0 && box.right <= innerWidth && document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.run(fits).await, true, "it fits on a phone");
    browser.run("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))").await;
    wait_for_tip(&browser, "").await;
    assert_eq!(browser.run(&format!("return {term}.title")).await, meaning, "the words are still there");

    browser.run(&format!("{term}.blur()")).await;
    let over = "dispatchEvent(new PointerEvent('pointerover', { bubbles: true, pointerType: 'mouse' }))";
    browser.run(&format!("{term}.{over}")).await;
    wait_for_tip(&browser, meaning).await;
    browser.run(&format!("document.querySelector('h1').{over}")).await;
    wait_for_tip(&browser, "").await;

    // The first tap explains; only the second one would leave.
    let tap = format!(
        "const term = {term}; \
         term.dispatchEvent(new PointerEvent('pointerdown', {{ bubbles: true, pointerType: 'touch' }})); \
         const click = new MouseEvent('click', {{ bubbles: true, cancelable: true }}); \
         document.addEventListener('click', (event) => {{ window.stays = event.defaultPrevented; \
           event.preventDefault(); }}, {{ once: true }}); \
         term.dispatchEvent(click); return window.stays"
    );
    assert_eq!(browser.run(&tap).await, true, "the first tap");
    wait_for_tip(&browser, meaning).await;
    assert_eq!(browser.run(&tap).await, false, "the second tap");

    browser.go("/help#time-limit").await;
    browser
        .wait_until_true("the term is in view", "return document.querySelector('#time-limit:target') !== null")
        .await;
    crate::accessibility::audit(&browser, "/help").await;
    cancel("dave", &job);
    browser.close().await;
}
