//! The storage page on the real cluster: quotas, what takes the space, and what will be deleted soon.

use portolan::format;
use portolan::sites::{QuotaTool, SiteStorageArea, StorageAreaKind};
use scraper::{Html, Selector};

use crate::folders::{Folder, with_alice};
use crate::queue::wait_for_list;
use crate::support::cluster::Cluster;
use crate::support::server::site_at;
use crate::support::wait::wait_for;
use crate::support::{Client, Page, TestApp};

const PLACE: &str = "/files/key/storage/place?path=/scratch/alice";

/// Measures someone's scratch, and gives the part of the page that shows the result.
async fn measure(who: &Client, form: &[(&str, &str)]) -> Page {
    let started = who.post("/files/key/storage/measure", form).await;
    assert_eq!(started.status, 303, "{}", started.text());
    assert!(started.location().starts_with("/files/key/storage?path=%2Fscratch%2Falice"), "{}", started.location());
    wait_for("the measurement", async || {
        let page = who.get(PLACE).await;
        let is_done = page.select_all("#folder-usage[hx-get]").is_empty();
        if is_done { Ok(page) } else { Err(page.text().to_owned()) }
    })
    .await
}

fn measured_at(page: &Page) -> String {
    page.attribute("#folder-usage .fresh time", "datetime")
}

/// What the cluster itself says about a folder.
fn disk_usage(path: &str) -> String {
    let said = Cluster::get().script(&["exec", "--as", "alice", "du", "-sk", path]);
    let said = String::from_utf8(said.stdout).unwrap();
    format::bytes(said.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024)
}

/// The cells of the row whose link leads to a folder.
fn row(page: &Page, href: &str) -> Vec<String> {
    let html = Html::parse_document(page.text());
    let (rows, links, cells) = ["#folder-usage tbody tr", "a", "td"].map(|text| Selector::parse(text).unwrap()).into();
    let found = html.select(&rows).find(|row| row.select(&links).any(|link| link.attr("href") == Some(href)));
    let found = found.unwrap_or_else(|| panic!("no row leads to {href} in {}", page.text()));
    found.select(&cells).map(|cell| cell.text().collect::<String>().trim().to_owned()).collect()
}

fn refuse_markup(page: &Page) {
    let html = Html::parse_document(page.text());
    let evil = Selector::parse("img, [onerror], [style], #folder-usage script").unwrap();
    assert!(html.select(&evil).next().is_none(), "{}", page.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn largest_folders_are_what_du_says_whatever_their_names() {
    let (portal, admin, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir -p big/in; head -c 30M /dev/zero >big/in/data
         for name in '<img src=x onerror=alert(1)>' $'line\\nbreak\\xff' '-rf $(id)'; do
           mkdir -- ./\"$name\"; head -c 20M /dev/zero >./\"$name\"/data
         done",
    );
    let page = alice.get("/files/key/storage?path=/scratch/alice").await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(page.select_text("h1"), "Storage on Harbour key");
    assert_eq!(page.select_text("#largest .chip[aria-current]"), "Scratch");
    assert!(page.select_text("#folder-usage").contains("Scratch hasn't been measured yet."));
    assert!(page.select_text(".storage-places").contains("The cluster reports no quota for this place."));
    assert!(!page.text().contains("on the whole disk"), "nothing was asked for yet");

    let page = measure(&alice, &[("path", "/scratch/alice")]).await;
    refuse_markup(&page);
    let top = folder.path.trim_start_matches("/scratch/alice/").to_owned();
    let href = |below: &str| {
        let path = format!("{}{below}", folder.path);
        format!("/files/key?{}", form_urlencoded::Serializer::new(String::new()).append_pair("path", &path).finish())
    };
    let size = disk_usage(&format!("{}/big", folder.path));
    assert_eq!(row(&page, &href("/big"))[..3], [format!("{top}/big"), size, "3".to_owned()]);
    assert_eq!(row(&page, &href(""))[1..3], [disk_usage(&folder.path), "10".to_owned()]);
    let markup = "/<img src=x onerror=alert(1)>";
    assert_eq!(row(&page, &href(markup))[0], format!("{top}{markup}"));
    assert_eq!(row(&page, &href("/-rf $(id)"))[0], format!("{top}/-rf $(id)"));
    let odd = row(&page, &href("/line%0Abreak%FF"));
    assert_eq!(odd[0], format!("{top}/line\u{FFFD}break\u{FFFD}"));
    let titles = page.select_all(".treemap title");
    assert!(titles.iter().any(|title| title.starts_with(&format!("{top}/big: "))), "{titles:?}");
    assert_eq!(page.select_text("#folder-usage button[type=submit]"), "Measure again");

    // The whole disk is not a quota, and the page says so.
    let page = alice.get("/files/key/storage?path=/scratch/alice&by=files").await;
    refuse_markup(&page);
    assert!(page.select_text(".storage-places").contains("on the whole disk, shared by everyone who uses it."));
    assert_eq!(page.select_all("#folder-usage .chip[aria-current]"), ["By number of files"]);

    // It is kept. Only who asks for it is measured again.
    let first = measured_at(&page);
    portal.clock.advance(60);
    let page = measure(&alice, &[("path", "/scratch/alice")]).await;
    assert_eq!(measured_at(&page), first);
    let page = measure(&alice, &[("path", "/scratch/alice"), ("again", "true")]).await;
    assert_ne!(measured_at(&page), first);

    // Others have their own places, and see nothing of it.
    let bob = portal.member(&admin, "bob").await;
    assert!(bob.get("/files/key/storage").await.text().contains("No places found yet"));
    bob.prepare("key", "bob").await;
    bob.connect("key").await;
    let page = bob.get("/files/key/storage").await;
    assert!(page.status == 200 && !page.text().contains(&top), "{}", page.text());
    for path in ["/files/key/storage?path=/scratch/alice", PLACE, "/files/key/storage?path=no", "/files/none/storage"] {
        assert_eq!(bob.get(path).await.status, 404, "{path}");
    }
    for path in ["/scratch/alice", "/etc", "/", "relative", ""] {
        let answer = bob.post("/files/key/storage/measure", &[("path", path)]).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    assert_eq!(portal.visitor().get("/files/key/storage").await.status, 303);

    // Without a connection, what was measured stays.
    let page = alice.get("/files/key").await;
    assert!(page.text().contains("href=\"/files/key/storage\""));
    alice.post("/clusters/key/disconnect", &[]).await;
    let page = alice.get(PLACE).await;
    assert!(page.select_text("#folder-usage").contains("You're not connected to the cluster."));
    assert_eq!(row(&page, &href("/big"))[0], format!("{top}/big"));
    let form = [("path", "/scratch/alice"), ("again", "true")];
    let page = alice.post_and_follow("/files/key/storage/measure", &form).await;
    assert!(page.text().contains("Connect first, then measure the folder."), "{}", page.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_named_before_the_centre_deletes_them() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    let mut site = site_at("key", Cluster::get().port("key"));
    site.storage.areas = vec![SiteStorageArea {
        label: "Scratch".to_owned(),
        kind: StorageAreaKind::Scratch,
        path: "$SCRATCH".to_owned(),
        purpose: "Large files.".to_owned(),
        room: None,
        purge: Some("Files not used for 60 days are deleted.".to_owned()),
        purge_days: Some(60),
        read_only_in_jobs: false,
    }];
    portal.add_site(&site).await;
    alice.prepare("key", "alice").await;
    alice.connect("key").await;
    // So old that they come before those of other tests.
    let folder = Folder::new(
        "alice",
        "echo one >new; echo two >$'old\\n<b>'; touch -d '9000 days ago' $'old\\n<b>'
         echo three >read; touch -m -d '9000 days ago' read",
    );
    let page = measure(&alice, &[("path", "/scratch/alice")]).await;
    refuse_markup(&page);
    let text = page.select_text("#folder-usage");
    assert!(text.contains("Files not used for 60 days are deleted."), "{text}");
    assert!(text.contains("46 days or more and may be deleted within"), "{text}");
    let top = folder.path.trim_start_matches("/scratch/alice/");
    let names = page.select_all("#folder-usage td a");
    assert!(names.contains(&format!("{top}/old\u{FFFD}<b>")), "{names:?}");
    for other in ["new", "read"] {
        assert!(!names.contains(&format!("{top}/{other}")), "{names:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_shown_by_space_and_by_files() {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let alice = portal.member(&admin, "alice").await;
    let mut site = site_at("key", Cluster::get().port("key"));
    site.storage.quota_tool = QuotaTool::DiskusageReport;
    portal.add_site(&site).await;
    alice.prepare("key", "alice").await;
    alice.connect("key").await;
    let page = wait_for_list(&alice, "/files/key/storage", "quotas", |page| {
        page.select_all(".storage-place progress").len() >= 4
    })
    .await;
    let places = page.select_all(".storage-places > li");
    let scratch = places.iter().find(|place| place.starts_with("Scratch")).unwrap();
    assert!(scratch.contains("of 20 TB") && scratch.contains("of 1,000,000 files"), "{scratch}");
    let home = places.iter().find(|place| place.starts_with("Home")).unwrap();
    assert!(home.contains("of 50 GB") && home.contains("of 500,000 files"), "{home}");
    for place in [scratch, home] {
        assert!(!place.contains("The cluster reports no quota"), "{place}");
    }
    assert!(!page.select_all("section[aria-labelledby=quotas-title] .fresh time").is_empty(), "how old they are");
    let home = wait_for_list(&alice, "/", "storage", |page| !page.select_all(".home-folder").is_empty()).await;
    assert_eq!(home.attributes("#storage-key", "href"), ["/files/key/storage"]);
}
