//! Browsing the files of a cluster: any names, large folders, links, other people's folders, places and favourites.

use portolan::domain::{RemoteName, RemotePath};
use reqwest::Method;
use scraper::{Html, Selector};

use crate::folders::{Folder, with_alice};
use crate::support::client::send;
use crate::support::wait::wait_for_value;
use crate::support::{Client, Page, TestApp};

/// The address of a folder's page, with more parameters behind the path.
fn url(path: &RemotePath, below: &str, more: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("path", &path.to_encoded()).extend_pairs(more);
    format!("/files/key{below}?{}", query.finish())
}

fn path(text: &str) -> RemotePath {
    RemotePath::parse(text.as_bytes()).unwrap()
}

/// What the open page gets, and everything in it is text.
async fn rows(who: &Client, path: &RemotePath, more: &[(&str, &str)]) -> Page {
    let page = fragment(who, &url(path, "/rows", more)).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let html = Html::parse_document(page.text());
    let evil = Selector::parse("img, script, #evil, [onerror]").unwrap();
    assert!(html.select(&evil).next().is_none(), "{}", page.text());
    page
}

async fn fragment(who: &Client, url: &str) -> Page {
    send(who.request(Method::GET, url).header("hx-request", "true")).await
}

/// The names of a whole list. More rows come alone and are no page: a browser drops rows without a table.
fn names(page: &Page) -> Vec<String> {
    page.attributes("tr[data-name]", "data-name")
}

fn more_names(page: &Page) -> Vec<String> {
    let html = Html::parse_document(&format!("<table>{}</table>", page.text()));
    let row = Selector::parse("tr[data-name]").unwrap();
    html.select(&row).map(|row| row.attr("data-name").unwrap().to_owned()).collect()
}

async fn listed(who: &Client, folder: &Folder, more: &[(&str, &str)]) -> Vec<String> {
    names(&rows(who, &path(&folder.path), more).await)
}

#[tokio::test]
async fn a_folder_is_sorted_filtered_and_shown_at_once() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "mkdir b A .git; printf hello >run-10; printf x >Run-2; touch .hidden; ln -s b to-b; ln -s run-10 to-run
         ln -s nowhere lost; ln -s loop loop; mkfifo pipe; touch -d '2020-01-01 UTC' run-10",
    );
    // The frame doesn't wait for the cluster.
    let page = alice.get(&url(&path(&folder.path), "", &[])).await;
    assert_eq!((page.status, names(&page)), (200, vec![]));
    let name = folder.path.rsplit('/').next().unwrap();
    assert_eq!(page.select_text("h1"), name);
    assert_eq!(page.attribute("#files-form", "method"), "post");
    assert_eq!(page.attribute("#files-form input[name=path]", "value"), folder.path);
    assert_eq!(page.select_all(".crumbs li")[1..], ["Scratch", name]);
    assert_eq!(page.attribute(".mainnav a[aria-current]", "href"), "/files");

    let load = page.attribute("#files-rows", "hx-get");
    let first = fragment(&alice, &load).await;
    assert_eq!(names(&first), ["A", "b", "to-b", "loop", "lost", "pipe", "Run-2", "run-10", "to-run"]);
    let kinds = first.attributes("tr[data-name]", "data-kind");
    assert_eq!(kinds, ["folder", "folder", "folder", "other", "other", "other", "file", "file", "file"]);
    let notes = ["Link to a folder", "Broken link", "Broken link", "Device or pipe", "Link to a file"];
    assert_eq!(first.select_all(".files-note"), notes);
    assert_eq!(first.select_text("[data-files-sum]"), "11 items, 2 hidden");
    assert_eq!(first.attribute("th[aria-sort]", "aria-sort"), "ascending");
    let there = path(&format!("{}/run-10", folder.path));
    assert!(first.text().contains(&url(&there, "/view", &[]).replace('&', "&#38;")));

    assert_eq!(listed(&alice, &folder, &[("hidden", "true")]).await.len(), 11);
    assert_eq!(listed(&alice, &folder, &[("filter", "RUN")]).await, ["Run-2", "run-10", "to-run"]);
    let by_age = rows(&alice, &path(&folder.path), &[("sort", "modified"), ("filter", "run-")]).await;
    assert_eq!(names(&by_age), ["run-10", "Run-2"]);
    assert_eq!(by_age.select_text("[aria-sort=ascending]"), "Modified");
    assert!(by_age.header("hx-replace-url").contains("sort=modified"));
    let by_size = listed(&alice, &folder, &[("sort", "-size"), ("filter", "run-")]).await;
    assert_eq!(by_size, ["run-10", "Run-2"]);
    assert!(rows(&alice, &path(&folder.path), &[("filter", "zz")]).await.text().contains("No name contains “zz”"));

    // The listing is kept, and the page says how old it is; refreshing reads the folder again.
    folder.tell(&format!("touch {}/new", folder.path));
    let kept = alice.get(&url(&path(&folder.path), "", &[])).await;
    assert_eq!(names(&kept).len(), 9, "at once, from what is kept");
    assert!(kept.select_text("#files-rows .fresh").contains("Updated"));
    let fresh = fragment(&alice, &kept.attribute("#files-rows [hx-trigger*='files-changed']", "hx-get")).await;
    assert_eq!(names(&fresh).len(), 10);
    portal.clock.advance(61);
    folder.tell(&format!("touch {}/newer", folder.path));
    assert_eq!(listed(&alice, &folder, &[]).await.len(), 11, "a minute later it is read again");
}

#[tokio::test]
async fn any_name_is_listed_opened_and_escaped() {
    let (_portal, _, alice) = with_alice().await;
    let long = "n".repeat(255);
    let folder = Folder::new(
        "alice",
        &format!(
            "for name in '<img src=x onerror=alert(1)>' $'line\\nbreak' $'bad\\xff\\xfename' $'quote\"s'\"'\" {long} \
             '50%25' ' led by a blank' -rf '~' '$HOME' '{{{{ 7*7 }}}}' 'a&b=c#d?e+f'; do
               mkdir -- \"./$name\"; touch -- \"./$name/inside\"; done"
        ),
    );
    let here = path(&folder.path);
    let page = rows(&alice, &here, &[]).await;
    let found: Vec<RemoteName> = names(&page).iter().map(|name| RemoteName::from_encoded(name).unwrap()).collect();
    assert_eq!(found.len(), 12, "{found:?}");
    assert_eq!(page.attributes("input[name=name]", "value"), names(&page), "what the form sends");
    for raw in [&b"line\nbreak"[..], b"bad\xff\xfename", b"quote\"s'", b"50%25", b"~", long.as_bytes()] {
        assert!(found.iter().any(|name| name.as_bytes() == raw), "{raw:?} in {found:?}");
    }
    // Each link leads into its own folder, whose page shows where it is.
    for href in page.attributes("tr[data-kind=folder] a[data-open]", "href") {
        let frame = alice.get(&href).await;
        assert_eq!(frame.status, 200, "{href}");
        let load = frame.attribute("#files-rows", "hx-get");
        assert_eq!(names(&fragment(&alice, &load).await), ["inside"], "{href}");
    }
    let shown = page.select_all(".files-name [dir=auto]");
    assert!(shown.contains(&"<img src=x onerror=alert(1)>".to_owned()), "{shown:?}");
    assert!(shown.contains(&"bad\u{FFFD}\u{FFFD}name".to_owned()), "{shown:?}");
    // A name can be pointed out, whatever it is, and filtered by.
    let bad = RemoteName::parse(b"bad\xff\xfename").unwrap().to_encoded();
    let pointed = rows(&alice, &here, &[("select", &bad)]).await;
    assert_eq!(pointed.attributes("tr[data-selected]", "data-name"), [bad]);
    let gone = rows(&alice, &here, &[("select", "<b id=evil>")]).await;
    assert!(gone.text().contains("isn't in this folder") || gone.text().contains("isn&#39;t in this folder"));
    rows(&alice, &here, &[("filter", "\"><img src=x>")]).await;
}

#[tokio::test]
async fn a_folder_of_a_hundred_thousand_entries_stays_small() {
    let (_portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "seq -f 'part-%06g.parquet' 100000 | xargs touch");
    let here = path(&folder.path);
    let page = alice.get(&url(&here, "", &[("wait", "true")])).await;
    assert!(page.text().len() <= 120_000, "{}", page.text().len());
    let first = names(&page);
    assert!((50..=200).contains(&first.len()), "{}", first.len());
    assert_eq!(
        (first[0].as_str(), page.select_text("[data-files-sum]").as_str()),
        ("part-000001.parquet", "100,000 items")
    );
    let mut seen = first;
    let mut next = page.attribute(".files-more a", "hx-get");
    for _ in 0..2 {
        let more = fragment(&alice, &next).await;
        assert!(more.text().len() <= 120_000);
        seen.extend(more_names(&more));
        let html = Html::parse_document(&format!("<table>{}</table>", more.text()));
        let link = Selector::parse(".files-more a").unwrap();
        html.select(&link).next().unwrap().attr("hx-get").unwrap().clone_into(&mut next);
    }
    let expected: Vec<String> = (1..=seen.len()).map(|number| format!("part-{number:06}.parquet")).collect();
    assert_eq!(seen, expected, "each once, in order");
    let last = rows(&alice, &here, &[("sort", "-name")]).await;
    assert_eq!(names(&last)[0], "part-100000.parquet");
    let found = rows(&alice, &here, &[("filter", "099999")]).await;
    assert_eq!(
        (names(&found), found.select_text("[data-files-sum]").as_str()),
        (vec!["part-099999.parquet".to_owned()], "1 of 100,000 items")
    );
    // An entry far down is pointed out at the top.
    let pointed = rows(&alice, &here, &[("select", "part-077777.parquet")]).await;
    assert_eq!(names(&pointed)[..2], ["part-077777.parquet", "part-000001.parquet"]);
}

#[tokio::test]
async fn what_cannot_be_shown_is_explained() {
    let (portal, admin, alice) = with_alice().await;
    let folder =
        Folder::new("alice", "touch file; mkdir closed empty dots; chmod 0 closed; touch dots/.x; ln -s loop loop");
    let inside = |name: &str| path(&format!("{}/{name}", folder.path));
    for (at, words) in [
        (inside("closed"), "You don't have permission to see this folder"),
        (path("/home/bob"), "You don't have permission to see this folder"),
        (inside("gone"), "This folder doesn't exist"),
        (inside("loop"), "This folder doesn't exist"),
        (inside("empty"), "This folder is empty."),
        (inside("dots"), "This folder contains only hidden files."),
    ] {
        let page = rows(&alice, &at, &[]).await;
        let text = page.select_text("#files-rows");
        assert!(text.contains(words), "{at}: {text}");
        assert!(page.attribute("#files-rows", "data-announce").len() > 3);
    }
    // A file's path leads to its folder, in which it is pointed out.
    let file = fragment(&alice, &url(&inside("file"), "/rows", &[])).await;
    assert_eq!(file.header("hx-redirect"), url(&path(&folder.path), "", &[("select", "file")]));
    let file = alice.get(&url(&inside("file"), "", &[("wait", "true")])).await;
    assert_eq!((file.status, file.location()), (303, url(&path(&folder.path), "", &[("select", "file")]).as_str()));
    // Nonsense.
    for bad in ["/files/key?path=relative", "/files/key?path=%2Fa%2F..", "/files/key?go=nonsense"] {
        let page = alice.get(bad).await;
        assert_eq!(page.status, 422, "{bad}");
        assert!(page.select_text("#files-go-error").contains("Enter a full path"), "{bad}");
    }
    assert_eq!(fragment(&alice, "/files/key/rows?path=x").await.status, 400);
    assert_eq!(alice.get("/files/nowhere").await.status, 404);

    // Nobody sees anything over someone else's connection.
    let bob = portal.member(&admin, "bob").await;
    for other in [&bob, &admin] {
        let page = rows(other, &path(&folder.path), &[]).await;
        assert!(page.select_text(".alert").contains("Set up your connection"), "{}", page.text());
        assert!(names(&page).is_empty());
    }
    bob.name_user("key", "alice").await;
    assert!(rows(&bob, &path(&folder.path), &[]).await.select_text(".alert").contains("Not connected"));
    alice.post("/clusters/key/disconnect", &[]).await;
    let page = rows(&alice, &path(&folder.path), &[]).await;
    assert!(names(&page).is_empty() && page.select_text(".alert").contains("Not connected"));
    assert!(page.attribute("#files-rows", "hx-trigger").starts_with("sse:connection-"));
}

#[tokio::test]
async fn connecting_leads_back_to_the_folder() {
    let (_portal, _, alice) = with_alice().await;
    alice.post("/clusters/key/disconnect", &[]).await;
    let here = url(&path("/scratch/alice"), "", &[]);
    let page = alice.get(&here).await;
    assert_eq!(page.attribute("button[formaction='/clusters/key/connect']", "value"), here);
    let begun = alice.post("/clusters/key/connect", &[("back", &here)]).await;
    assert_eq!(begun.location(), "/clusters/key");
    let back = async || alice.get("/clusters/key").await.location().to_owned();
    let back = wait_for_value("it leads back", back, |back| !back.is_empty()).await;
    assert_eq!(back, here);
    assert_eq!(alice.get("/clusters/key").await.status, 200, "only once");
    // Only to files of this cluster.
    for bad in ["https://example.org/", "//example.org", "/account", "/files/other"] {
        alice.post("/clusters/key/disconnect", &[]).await;
        alice.post("/clusters/key/connect", &[("back", bad)]).await;
        alice.wait_until_connected("key").await;
        assert_eq!(alice.get("/clusters/key").await.status, 200, "{bad}");
    }
}

#[tokio::test]
async fn files_begin_with_places_favourites_and_recent_folders() {
    let (portal, admin, alice) = with_alice().await;
    let bob = portal.member(&admin, "bob").await;
    let start = bob.get("/files").await;
    assert_eq!(start.attribute(".empty a", "href"), "/clusters");
    assert_eq!(alice.get("/files").await.location(), "/files/key");
    let places = alice.get("/files/key").await;
    assert_eq!(places.select_text("h1"), "Files on Harbour key");
    let labels = places.select_all(".files-places h3");
    assert_eq!(labels[..2], ["Home", "Scratch"], "{labels:?}");
    let purposes = places.select_all(".files-places h3 ~ p:not(.files-path)");
    assert!(purposes.len() >= labels.len() && purposes.iter().all(|words| !words.is_empty()), "{purposes:?}");
    assert!(purposes.iter().any(|words| words.contains("jobs read and write")), "{purposes:?}");
    assert_eq!(places.attributes(".files-places h3 a", "href")[1], url(&path("/scratch/alice"), "", &[]));

    let folder = Folder::new("alice", "mkdir $'odd\\xff'");
    let odd = path(&folder.path).join(&RemoteName::parse(b"odd\xff").unwrap());
    let encoded = odd.to_encoded();
    let page = alice.get(&url(&odd, "", &[("wait", "true")])).await;
    assert!(page.select_text("#files-favourite").contains("Add to favourites"));
    let form = [("path", encoded.as_str())];
    let added = alice.post("/files/key/favourites", &form).await;
    assert_eq!(added.location(), url(&odd, "", &[]));
    let page = alice.get(&url(&odd, "", &[])).await;
    assert!(page.select_text("#files-favourite").contains("Remove from favourites"));
    let places = alice.get("/files/key").await;
    let kept = places.attributes(".files-kept a", "href");
    assert_eq!(kept, [url(&odd, "", &[]), url(&odd, "", &[])], "a favourite, and opened");
    let form = [("path", encoded.as_str()), ("remove", "true"), ("from_places", "true")];
    let places = alice.post_and_follow("/files/key/favourites", &form).await;
    assert_eq!(places.attributes(".files-kept a", "href").len(), 1);

    // Both lists are bounded.
    for number in 0..31 {
        let there = format!("/scratch/alice/favourite-{number}");
        alice.post("/files/key/favourites", &[("path", &there)]).await;
    }
    let full = alice.post_and_follow("/files/key/favourites", &[("path", "/one-more"), ("from_places", "true")]).await;
    assert!(full.text().contains("30 favourites"), "{}", full.text());
    assert_eq!(full.attributes(".files-kept form", "action").len(), 30);
    folder.tell(&format!("mkdir {}/{{1..15}}", folder.path));
    for number in 1..=15 {
        rows(&alice, &path(&format!("{}/{number}", folder.path)), &[]).await;
    }
    let places = alice.get("/files/key").await;
    let recent = places.attributes("[aria-labelledby=recent-title] a", "href");
    assert_eq!(recent.len(), 12);
    assert_eq!(recent[0], url(&path(&format!("{}/15", folder.path)), "", &[]));
}

#[tokio::test]
async fn paths_are_typed_with_suggestions() {
    let (_portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir -p run-1/logs run-2; touch readme 'it'\"'\"'s'");
    let short = folder.path.replace("/scratch/alice", "$SCRATCH");
    let suggest = async |typed: &str, from: &str| {
        let request = alice.request(Method::GET, "/files/key/names").query(&[("go", typed), ("path", from)]);
        send(request.header("hx-request", "true")).await.attributes("option", "value")
    };
    let below = |names: &[&str]| names.iter().map(|name| format!("{short}/{name}")).collect::<Vec<_>>();
    assert_eq!(suggest(&format!("{short}/r"), "").await, below(&["run-1/", "run-2/", "readme"]));
    assert_eq!(suggest(&format!("{short}/run-1/"), "").await, below(&["run-1/logs/"]));
    assert_eq!(suggest("run-", &folder.path).await, ["run-1/", "run-2/"]);
    assert_eq!(suggest("run-1/l", &folder.path).await, ["run-1/logs/"]);
    for nothing in ["/no/such/", "/home/bob/", "../", "zz"] {
        assert!(suggest(nothing, &folder.path).await.is_empty(), "{nothing}");
    }
    let go = async |typed: &str, from: &str| {
        let request = alice.request(Method::GET, "/files/key").query(&[("go", typed), ("path", from)]);
        send(request).await.location().to_owned()
    };
    let run = url(&path(&format!("{}/run-1", folder.path)), "", &[]);
    assert_eq!(go(&format!("{short}/run-1/"), "").await, run);
    assert_eq!(go("run-1", &folder.path).await, run);
    assert_eq!(go("~", "").await, url(&path("/home/alice"), "", &[]));
    assert_eq!(go("/50%41", "").await, url(&path("/50%41"), "", &[]), "what is typed isn't encoded");
}

#[tokio::test]
async fn other_pages_lead_to_files() {
    let (_portal, _, alice): (TestApp, _, _) = with_alice().await;
    let cluster = alice.get("/clusters/key").await;
    assert!(cluster.attributes("nav[aria-label='Next steps'] a", "href").contains(&"/files/key".to_owned()));
    let old = alice.get("/clusters/key/folders?path=$SCRATCH").await;
    assert_eq!((old.status, old.location()), (303, url(&path("/scratch/alice"), "", &[]).as_str()));
    assert_eq!(alice.get("/clusters/key/folders?path=nonsense").await.location(), "/files/key");
}
