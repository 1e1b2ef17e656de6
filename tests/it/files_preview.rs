//! Looking into files of the real cluster: whatever is in them, nothing of it runs and nothing waits for all of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan::domain::RemotePath;
use reqwest::Method;
use scraper::{Html, Selector};

use crate::folders::{Folder, with_alice};
use crate::support::client::send;
use crate::support::{Client, Page};

/// The content of a file, as the page loads it.
async fn content(who: &Client, path: &str, more: &[(&str, &str)]) -> Page {
    let request = who.request(Method::GET, "/files/key/view/content").query(&[("path", path)]).query(more);
    let page = send(request.header("hx-request", "true")).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let html = Html::parse_document(page.text());
    let evil = Selector::parse("script, iframe, object, embed, #evil, [onerror], [onload]").unwrap();
    assert!(html.select(&evil).next().is_none(), "{}", page.text());
    page
}

async fn raw(who: &Client, path: &str, range: Option<&str>) -> Page {
    let mut request = who.request(Method::GET, "/files/key/raw").query(&[("path", path)]);
    if let Some(range) = range {
        request = request.header("range", range);
    }
    send(request).await
}

fn has(page: &Page, selector: &str) -> bool {
    !page.select_all(selector).is_empty()
}

#[tokio::test]
async fn page_of_a_file_appears_at_once_and_its_content_follows() {
    let (_portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "printf 'print(1)\\n' >run.py; chmod 640 run.py; ln -s run.py link.py");
    let path = format!("{}/run.py", folder.path);
    let page = send(alice.request(Method::GET, "/files/key/view").query(&[("path", &path)])).await;
    assert_eq!((page.status, page.select_text("h1")), (200, "run.py".to_owned()));
    assert!(!page.text().contains("print(1)"), "the page doesn't wait for the cluster");
    assert!(page.attribute("#file-content", "hx-get").starts_with("/files/key/view/content?path="));
    assert!(page.attribute("a[download]", "href").starts_with("/files/key/download?path="));
    assert_eq!(page.attribute("[data-copy]", "data-copy"), path);
    assert_eq!(page.select_all(".crumbs li").last().unwrap(), "run.py");
    assert!(page.attributes("script", "src").iter().any(|src| src.contains("highlight")));
    // Without script there is a way, too.
    let noscript = page.text().split("<noscript>").nth(1).unwrap();
    let href = noscript.split("href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&#38;", "&");
    let waited = alice.get(&href.replace("&amp;", "&")).await;
    assert_eq!(waited.select_text("code[data-language=python]"), "print(1)");

    let shown = content(&alice, &path, &[]).await;
    assert!(shown.select_text(".log-facts").contains("Access: Only you"), "{}", shown.text());
    assert!(shown.attributes("a", "href").iter().any(|href| href.starts_with("/files/key/edit?path=")));
    let job = content(&alice, &path, &[]).await.attribute(".log-buttons a[href^='/compose/']", "href");
    assert!(job.starts_with("/compose/key/python-script?a.script=") && job.ends_with("run.py&a.job_name=run"), "{job}");
    let link = content(&alice, &format!("{}/link.py", folder.path), &[]).await;
    assert_eq!(link.select_text(".log-facts code"), "run.py");
    let other = send(alice.request(Method::GET, "/files/key/view").query(&[("path", "/tmp/a.txt")])).await;
    assert!(!other.attributes("script", "src").iter().any(|src| src.contains("highlight")));
}

#[tokio::test]
async fn text_of_any_size_opens_window_by_window() {
    let (_portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "seq -f 'line %.0f' 20000 >big.log; truncate -s 2G big.log; printf 'the last line\\n' >>big.log
         printf 'a\\033[31mred\\033[0m\\xff\\xe2\\x80\\xaeb\\n' >odd.log; head -c 200000 /dev/zero | tr '\\0' x >one.txt",
    );
    let big = format!("{}/big.log", folder.path);
    let first = content(&alice, &big, &[]).await;
    assert!(first.select_text("pre.file-text").starts_with("line 1\nline 2\n"));
    assert!(first.text().contains("of 2 GB"), "{}", first.select_text("nav .log-facts"));
    let links = first.attributes("nav a", "hx-get");
    assert_eq!(links.len(), 2, "later, to the end: {links:?}");
    let later = send(alice.request(Method::GET, &links[0]).header("hx-request", "true")).await;
    assert!(later.select_text("pre.file-text").starts_with("line "), "a window begins with a whole line");
    let last = send(alice.request(Method::GET, &links[1]).header("hx-request", "true")).await;
    assert!(last.select_text("pre.file-text").ends_with("the last line"));
    assert_eq!(last.attributes("nav a", "hx-get").len(), 2, "to the start, earlier");

    let odd = content(&alice, &format!("{}/odd.log", folder.path), &[]).await;
    assert_eq!(odd.select_text("pre.file-text"), "ared\u{FFFD}▯b");
    assert_eq!(odd.select_text(".fg-red"), "red");
    let one = content(&alice, &format!("{}/one.txt", folder.path), &[]).await;
    assert!(one.text().contains("Very long lines are split"));
    // A file that became shorter.
    let gone = content(&alice, &format!("{}/odd.log", folder.path), &[("from", "999999")]).await;
    assert!(gone.text().contains("There's nothing here"), "{}", gone.text());
}

#[tokio::test]
async fn tables_notebooks_archives_and_arrays_are_shown_as_what_they_are() {
    let (_portal, _, alice) = with_alice().await;
    let notebook = r##"{"cells": [
        {"cell_type": "markdown", "source": "# Results <script>alert(1)</script>\n[x](javascript:alert(1))"},
        {"cell_type": "code", "execution_count": 1, "source": "plot()", "outputs": [
          {"output_type": "stream", "text": "<img id=evil src=x onerror=alert(1)>"},
          {"output_type": "display_data", "data": {"text/html": "<script id=evil>alert(1)</script>"}},
          {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}}]}],
      "metadata": {"language_info": {"name": "python"}}}"##;
    let folder = Folder::new(
        "alice",
        &format!(
            "printf 'name;loss\\n\"a; <b>\";0.5\\nb;0.25\\n' >t.csv
             cat >n.ipynb <<'END'\n{notebook}\nEND
             printf '\\x93NUMPY\\x01\\x00\\x40\\x00' >a.npy
             printf \"%-64s\" \"{{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }}\" >>a.npy
             mkdir d; echo hello >d/x.txt; tar cf d.tar d; gzip -k d/x.txt; printf 'a\\0b' >b.bin; : >empty
             touch events.out.tfevents.1.node"
        ),
    );
    let inside = |name: &str| format!("{}/{name}", folder.path);
    let table = content(&alice, &inside("t.csv"), &[]).await;
    assert_eq!(table.select_all("table[data-sortable] th"), ["name", "loss"]);
    assert_eq!(table.select_all("table td"), ["a; <b>", "0.5", "b", "0.25"]);
    let text = content(&alice, &inside("t.csv"), &[("as", "text")]).await;
    assert!(text.select_text("pre.file-text").starts_with("name;loss"));

    let notebook = content(&alice, &inside("n.ipynb"), &[]).await;
    assert_eq!(notebook.select_text(".notebook-text h2"), "Results <script>alert(1)</script>");
    assert!(!notebook.attributes(".notebook a", "href").iter().any(|href| href.contains("javascript")));
    assert_eq!(notebook.select_text(".file-output"), "<img id=evil src=x onerror=alert(1)>");
    assert!(notebook.select_text(".notebook").contains("HTML output isn't shown"));
    assert_eq!(notebook.attribute(".notebook img", "src"), "data:image/png;base64,iVBORw0KGgo=");

    let array = content(&alice, &inside("a.npy"), &[]).await;
    assert_eq!(array.select_all("dd")[..3], ["3 × 4", "12", "float32"]);
    let tar = content(&alice, &inside("d.tar"), &[]).await;
    assert_eq!(tar.select_all("table td")[..1], ["d/"]);
    assert!(tar.select_all("table td").contains(&"d/x.txt".to_owned()));
    let gzip = content(&alice, &inside("d/x.txt.gz"), &[]).await;
    assert!(gzip.select_all("dd").contains(&"x.txt".to_owned()), "{}", gzip.text());
    let binary = content(&alice, &inside("b.bin"), &[]).await;
    assert!(binary.select_text("pre").contains("61 00 62") && !has(&binary, "[href*='/edit']"));
    assert!(content(&alice, &inside("empty"), &[]).await.text().contains("This file is empty"));
    let events = inside("events.out.tfevents.1.node");
    let page = send(alice.request(Method::GET, "/files/key/view").query(&[("path", &events)])).await;
    assert!(has(&page, "a[href^='/dashboards/new?kind=tensorboard&cluster=key&place=']"), "{}", page.text());
}

#[tokio::test]
async fn arrays_in_files_tell_their_shapes() {
    let (_portal, _, alice) = with_alice().await;
    let fixtures = [
        ("a.npz", &include_bytes!("../fixtures/previews/two_arrays.npz")[..]),
        ("model.pt", include_bytes!("../fixtures/previews/model.pt")),
        ("groups.h5", include_bytes!("../fixtures/previews/groups.h5")),
    ];
    let script = fixtures.map(|(name, bytes)| format!("base64 -d >{name} <<'END'\n{}\nEND", STANDARD.encode(bytes)));
    let folder = Folder::new("alice", &script.join("\n"));
    for (name, expected) in [
        ("a.npz", &["loss", "3 × 2", "float32", "step", "5", "int64"][..]),
        ("model.pt", &["epoch_loss", "a single value", "float64", "model.layer.weight", "4 × 3", "float32"]),
        ("groups.h5", &["model/weight", "2 × 3", "float64", "x", "4 × 5", "float32"]),
    ] {
        let page = content(&alice, &format!("{}/{name}", folder.path), &[]).await;
        let cells = page.select_all("[aria-label^='Arrays in'] td");
        assert_eq!(cells[..expected.len().min(cells.len())], *expected, "{name}: {}", page.text());
    }
}

#[tokio::test]
async fn folder_of_event_files_offers_tensorboard() {
    let (_portal, _, alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir 'run <1>' empty; touch 'run <1>/events.out.tfevents.1700.node'");
    let rows = async |name: &str| {
        let path = format!("{}/{name}", folder.path);
        send(alice.request(Method::GET, "/files/key/rows").query(&[("path", &path)]).header("hx-request", "true")).await
    };
    let page = rows("run <1>").await;
    let href = page.attribute("a[href^='/dashboards/new?']", "href");
    let form = alice.get(&href).await;
    let places = form.attributes("input[name=place]", "value");
    assert!(places.iter().any(|place| place.ends_with("/run <1>")), "{href}: {places:?}");
    assert!(form.attributes("input[name=kind][checked]", "value").contains(&"tensorboard".to_owned()));
    assert!(!has(&rows("empty").await, "a[href^='/dashboards/new?']"));
}

#[tokio::test]
async fn only_media_go_out_and_nothing_in_them_runs() {
    let (_portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "printf '\\x89PNG\\r\\n\\x1a\\n0123456789' >p.png
         echo '<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"><script>alert(1)</script></svg>' >s.svg
         echo '<script>alert(1)</script>' >page.html; cp page.html fake.png; cp p.png fake.html
         printf 'ID3\\x04' >a.mp3; head -c 100000 /dev/zero >>a.mp3; printf '%%PDF-1.7\\n' >d.pdf; cp d.pdf report
         printf '\\x89PNG\\r\\n\\x1a\\n' >huge.png; truncate -s 60M huge.png",
    );
    let inside = |name: &str| format!("{}/{name}", folder.path);
    for (name, content_type) in [("p.png", "image/png"), ("s.svg", "image/svg+xml"), ("a.mp3", "audio/mpeg")] {
        let page = raw(&alice, &inside(name), None).await;
        assert_eq!((page.status, page.header("content-type")), (200, content_type), "{name}");
        let policy = page.header("content-security-policy");
        assert_eq!(
            policy, "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
            "{name}"
        );
        assert_eq!(page.headers.get_all("content-security-policy").iter().count(), 1);
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert_eq!(page.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(page.header("x-frame-options"), "DENY");
        assert_eq!(page.header("cache-control"), "private, no-store");
        assert!(page.header("content-encoding").is_empty(), "{name}");
    }
    for name in ["page.html", "fake.png", "fake.html", "d.pdf", "huge.png", "missing.png"] {
        assert_eq!(raw(&alice, &inside(name), None).await.status, 404, "{name}");
    }
    // Players ask for parts.
    let part = raw(&alice, &inside("a.mp3"), Some("bytes=0-2")).await;
    assert_eq!((part.status, part.header("content-range"), part.text()), (206, "bytes 0-2/100004", "ID3"));
    let end = raw(&alice, &inside("a.mp3"), Some("bytes=-4")).await;
    assert_eq!((end.status, end.header("content-length")), (206, "4"));
    assert_eq!(raw(&alice, &inside("a.mp3"), Some("bytes=200000-")).await.status, 416);

    let page = content(&alice, &inside("s.svg"), &[]).await;
    assert!(page.attribute("figure img", "src").starts_with("/files/key/raw?path="));
    let drawing = content(&alice, &inside("s.svg"), &[("as", "text")]).await;
    assert!(drawing.select_text("pre").contains("<script"), "{}", drawing.text());
    assert!(has(&content(&alice, &inside("a.mp3"), &[]).await, "audio[controls]"));
    assert!(content(&alice, &inside("huge.png"), &[]).await.text().contains("too large to show"));
    let html = content(&alice, &inside("page.html"), &[]).await;
    assert_eq!(html.select_text("pre code"), "<script>alert(1)</script>");
    assert!(content(&alice, &inside("report"), &[]).await.text().contains("PDF 1.7"), "without the name, only facts");
}

/// The address of the frame on a PDF's page.
async fn frame_url(who: &Client, path: &str) -> String {
    let request = who.request(Method::GET, "/files/key/view/content").query(&[("path", path)]);
    let page = send(request.header("hx-request", "true")).await;
    assert!(page.attribute(".hint a[download]", "href").starts_with("/files/key/download?path="), "{}", page.text());
    page.attribute("iframe", "src")
}

#[tokio::test]
async fn pdf_comes_from_the_other_origin_for_one_person_and_a_few_minutes() {
    let (portal, _, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "printf '%%PDF-1.7\\n0123456789' >'a b.pdf'; cp 'a b.pdf' b.PDF; echo '<script>alert(1)</script>' >page.html
         cp page.html fake.pdf; printf '%%PDF-1.7\\n' >huge.pdf; truncate -s 200M huge.pdf",
    );
    let inside = |name: &str| format!("{}/{name}", folder.path);
    // Only the page of a file that is called a PDF may have a frame, and only one of the dashboards' origin.
    for (name, frames) in [("a b.pdf", true), ("b.PDF", true), ("page.html", false)] {
        let page = send(alice.request(Method::GET, "/files/key/view").query(&[("path", inside(name))])).await;
        let policy = page.header("content-security-policy").to_owned();
        assert_eq!(policy.contains("frame-src"), frames, "{name}: {policy}");
        assert_eq!(policy.ends_with(&format!("; frame-src {}", portal.dashboards_url)), frames, "{name}: {policy}");
        assert_eq!(page.headers.get_all("content-security-policy").iter().count(), 1);
    }
    let source = frame_url(&alice, &inside("a b.pdf")).await;
    let path = source.strip_prefix(&portal.dashboards_url).expect("the dashboards' origin").to_owned();
    assert!(path.starts_with("/pdf/") && path.len() == "/pdf/".len() + 43, "{path}");
    let viewer = Client::new(&portal.dashboards_url);
    let pdf = viewer.get(&path).await;
    assert_eq!((pdf.status, pdf.text()), (200, "%PDF-1.7\n0123456789"));
    assert_eq!(pdf.header("content-type"), "application/pdf");
    assert_eq!(pdf.header("content-disposition"), "inline; filename=\"a b.pdf\"");
    assert_eq!(pdf.header("x-content-type-options"), "nosniff");
    assert_eq!(pdf.header("cache-control"), "private, no-store");
    assert_eq!(pdf.header("referrer-policy"), "no-referrer");
    assert_eq!((pdf.header("x-frame-options"), pdf.header("set-cookie")), ("", ""));
    let policy = format!("default-src 'none'; object-src 'none'; frame-ancestors {}", portal.url);
    assert_eq!(pdf.header("content-security-policy"), policy);
    assert_eq!(pdf.headers.get_all("content-security-policy").iter().count(), 1);
    let part = send(viewer.request(Method::GET, &path).header("range", "bytes=9-11")).await;
    assert_eq!((part.status, part.text(), part.header("content-range")), (206, "012", "bytes 9-11/19"));
    assert_eq!(part.header("content-type"), "application/pdf");
    assert_eq!(send(viewer.request(Method::GET, &path).header("range", "bytes=99-")).await.status, 416);

    // A page under the name of a PDF, and a file that is too large, have no frame.
    let fake = content(&alice, &inside("fake.pdf"), &[]).await;
    assert_eq!(fake.select_text("pre code"), "<script>alert(1)</script>");
    assert!(content(&alice, &inside("huge.pdf"), &[]).await.text().contains("This PDF is too large to show here"));
    // Nor does it help to put one in its place later.
    let other = frame_url(&alice, &inside("b.PDF")).await;
    let other = other.strip_prefix(&portal.dashboards_url).unwrap();
    assert_eq!(viewer.get(other).await.status, 200);
    for swap in ["cp page.html b.PDF", "cp huge.pdf b.PDF", "rm b.PDF", "ln -s /home/bob/.ssh/authorized_keys b.PDF"] {
        folder.tell(&format!("cd {} && {swap}", folder.path));
        let page = viewer.get(other).await;
        assert_eq!((page.status, page.header("content-type")), (404, "text/plain; charset=utf-8"), "{swap}");
        assert!(page.text().contains("no longer a PDF"), "{swap}: {}", page.text());
    }

    // A token opens nothing on the portal, and ends after some minutes or with the session.
    assert_eq!(alice.get(&path).await.status, 404);
    assert_eq!(viewer.get(&format!("/pdf/{}", "x".repeat(43))).await.status, 410);
    portal.clock.advance(599);
    assert_eq!(viewer.get(&path).await.status, 200);
    let next = frame_url(&alice, &inside("a b.pdf")).await;
    let next = next.strip_prefix(&portal.dashboards_url).unwrap();
    portal.clock.advance(1);
    assert_eq!(viewer.get(&path).await.status, 410);
    assert_eq!(viewer.get(next).await.status, 200);
    assert_eq!(alice.post("/sign-out", &[]).await.status, 303);
    let page = viewer.get(next).await;
    assert_eq!(page.status, 410);
    assert!(page.text().contains("has expired"), "{}", page.text());
}

#[tokio::test]
async fn odd_names_special_files_and_other_peoples_files() {
    let (portal, admin, alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "printf odd >$'bad\\xff\\xfe<b>\\n.txt'; mkfifo pipe; mkdir sub; ln -s nowhere lost; echo x >'it'\"'\"'s $(id).txt'",
    );
    let inside = |name: &str| format!("{}/{name}", folder.path);
    let odd = RemotePath::parse(&[folder.path.as_bytes(), b"/bad\xff\xfe<b>\n.txt"].concat()).unwrap();
    assert_eq!(content(&alice, &odd.to_encoded(), &[]).await.select_text("pre.file-text"), "odd");
    let page = send(alice.request(Method::GET, "/files/key/view").query(&[("path", odd.to_encoded())])).await;
    assert_eq!(page.select_text("h1"), "bad\u{FFFD}\u{FFFD}<b>\u{FFFD}.txt");
    assert_eq!(content(&alice, &inside("it's $(id).txt"), &[]).await.select_text("pre.file-text"), "x");
    for (path, words) in [
        (inside("pipe"), "Only regular files can be opened"),
        ("/dev/zero".to_owned(), "Only regular files can be opened"),
        (inside("missing"), "File not found"),
        (inside("lost"), "File not found"),
        (inside("sub"), "This is a folder"),
        ("/home/bob/.ssh/authorized_keys".to_owned(), "You can't read this file"),
    ] {
        let page = content(&alice, &path, &[]).await;
        assert!(page.select_text(".alert").contains(words), "{path}: {}", page.text());
        assert!(raw(&alice, &path, None).await.status >= 400, "{path}");
    }
    for bad in ["", "relative", "/a/../b", "/"] {
        let request = alice.request(Method::GET, "/files/key/view").query(&[("path", bad)]);
        assert_eq!(send(request).await.status, 404, "{bad:?}");
    }
    // Alice's connection is nobody else's.
    let bob = portal.member(&admin, "bob").await;
    bob.name_user("key", "alice").await;
    let secret = inside("it's $(id).txt");
    let page = content(&bob, &secret, &[]).await;
    assert!(page.select_text(".alert").contains("Not connected") && !has(&page, "pre"));
    let page = send(bob.request(Method::GET, "/files/nowhere/view").query(&[("path", &secret)])).await;
    assert_eq!(page.status, 404);
}
