//! Browsing files in a real browser: from the navigation, with the keyboard, on a desk and on a phone.

use crate::accessibility::audit;
use crate::folders::{Folder, with_alice};
use crate::support::browser::Browser;

const DOWN: &str = "\u{E015}";
const ENTER: &str = "\u{E007}";
const SPACE: &str = " ";
const BACKSPACE: &str = "\u{E003}";

async fn press_key(browser: &Browser, key: &str) {
    browser.window.active_element().await.unwrap().send_keys(key).await.unwrap();
}

async fn is_so(browser: &Browser, what: &str, script: &str) {
    browser.wait_until_true(what, &format!("return Boolean({script})")).await;
    browser.settled().await;
}

/// Waits until a folder's rows are shown.
async fn is_in(browser: &Browser, path: &str, count: usize) {
    let shown = format!(
        "document.querySelector('.files-path')?.innerText === '{path}' \
         && document.querySelectorAll('#files-rows tr[data-name]').length === {count}"
    );
    is_so(browser, path, &shown).await;
}

async fn browse(width: u32) {
    let (portal, _, _alice) = with_alice().await;
    let long = "a-very-long-name-without-any-place-to-break_".repeat(5);
    let folder = Folder::new(
        "alice",
        &format!(
            "mkdir data; touch data/part-{{1..3}} .bashrc {long}.csv '<b id=evil>' $'bad\\xffname'
             printf hello >notes.txt; ln -s nowhere lost"
        ),
    );
    let browser = Browser::open(&portal.url, width).await;
    browser.sign_in("alice").await;
    browser.go("/").await;
    browser.run("document.querySelector('nav[aria-label=Main] a[href=\"/files\"]').click()").await;
    browser.wait_for_text("Files on Harbour key").await;
    audit(&browser, "places").await;

    // Typing a path leads to it; names are suggested on the way.
    let short = folder.path.replace("/scratch/alice", "$SCRATCH");
    let field = browser.find("#files-go").await;
    field.send_keys(&format!("{short}/")).await.unwrap();
    is_so(&browser, "suggestions", "document.querySelectorAll('#files-names option').length >= 5").await;
    press_key(&browser, ENTER).await;
    is_in(&browser, &folder.path, 6).await;
    audit(&browser, "a folder").await;

    // Down to the first entry, which is the folder, and into it.
    browser.run("document.activeElement.blur()").await;
    press_key(&browser, DOWN).await;
    is_so(&browser, "the first row", "document.activeElement.closest('tr')?.dataset.name === 'data'").await;
    press_key(&browser, ENTER).await;
    is_in(&browser, &format!("{}/data", folder.path), 3).await;

    // Ticks are counted, and stay when the rows are filtered.
    browser.run("document.activeElement.blur()").await;
    for _ in 0..2 {
        press_key(&browser, DOWN).await;
        press_key(&browser, SPACE).await;
    }
    let count = "document.querySelector('[data-files-count]').innerText";
    is_so(&browser, "two ticks", &format!("{count} === '2 selected'")).await;
    press_key(&browser, "/").await;
    is_so(&browser, "the filter", "document.activeElement.matches('[data-files-filter]')").await;
    press_key(&browser, "part-2").await;
    is_in(&browser, &format!("{}/data", folder.path), 1).await;
    is_so(&browser, "one tick is left", &format!("{count} === '1 selected'")).await;
    is_so(&browser, "the address follows", "location.search.includes('filter=part-2')").await;

    // Back up, by the keyboard.
    browser.run("document.activeElement.blur()").await;
    press_key(&browser, BACKSPACE).await;
    is_in(&browser, &folder.path, 6).await;
    browser.run("document.getElementById('files-hidden').click()").await;
    is_in(&browser, &folder.path, 7).await;
    browser.run("document.querySelector('[data-files-all]').click()").await;
    is_so(&browser, "all are ticked", &format!("{count} === '7 selected'")).await;
    browser.press("Size").await;
    is_so(&browser, "sorted by size", "document.querySelector('[aria-sort=descending] a')?.innerText === 'Size'").await;
    is_so(&browser, "the ticks stayed", &format!("{count} === '7 selected'")).await;
    audit(&browser, "a folder with ticks").await;

    browser.press("Add to favourites").await;
    browser.wait_for_text("Remove from favourites").await;
    browser.go("/files").await;
    browser.wait_for_text("Recent folders").await;
    let favourite =
        format!("[...document.querySelectorAll('.files-kept a')].some((one) => one.innerText === '{short}')");
    is_so(&browser, "it is among the favourites", &favourite).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_browsed_on_a_desk() {
    browse(1280).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_browsed_on_a_phone() {
    browse(390).await;
}

/// On a phone the first file is near the top; places, path and filter are folded, and the filter in use is named.
#[tokio::test(flavor = "multi_thread")]
async fn phone_shows_files_first() {
    let (portal, _, _alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir -p a/folder/further/down; touch a/folder/further/down/data-{1..9}.csv");
    let path = format!("{}/a/folder/further/down", folder.path);
    let phone = Browser::open(&portal.url, 390).await;
    phone.sign_in("alice").await;
    phone.go(&format!("/files/key?path={path}")).await;
    is_in(&phone, &path, 9).await;
    let top = "return Math.round(document.querySelector('.files-table tbody tr').getBoundingClientRect().top)";
    let top = phone.run(top).await.as_i64().unwrap();
    assert!(top <= 400, "the first row begins at {top} px");
    let wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(phone.run(wide).await, true, "nothing is wider than the screen");
    assert_eq!(phone.run("return document.getElementById('files-go').checkVisibility()").await, false, "it's folded");
    phone.find("#files-find > summary").await.click().await.unwrap();
    is_so(&phone, "it unfolds", "document.getElementById('files-go').checkVisibility()").await;
    phone.go(&format!("/files/key?path={path}&filter=data-3")).await;
    is_in(&phone, &path, 1).await;
    let words = phone.find("#files-find > summary").await.text().await.unwrap();
    assert!(words.contains("data-3"), "{words}");
    audit(&phone, "a folder on a phone").await;
    phone.close().await;
}

/// *Extract* is there for one archive, and for nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_archive_can_be_extracted() {
    let (portal, _, _alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir data.zip; touch notes.txt; tar -cf packed.tar notes.txt");
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("alice").await;
    browser.go(&format!("/files/key?path={}", folder.path)).await;
    is_in(&browser, &folder.path, 3).await;
    let tick = |name: &str| format!("document.querySelector(\"tr[data-name='{name}'] input\").click()");
    let offered = "document.querySelector('[data-files-extract]').checkVisibility()";
    for (ticks, is_offered) in [("packed.tar", true), ("notes.txt", false), ("packed.tar", false), ("data.zip", false)]
    {
        browser.run(&tick(ticks)).await;
        let expected = format!("({offered}) === {is_offered}");
        is_so(&browser, &format!("Extract after {ticks}"), &expected).await;
    }
    browser.close().await;
}

/// A new name usually keeps its ending.
#[tokio::test(flavor = "multi_thread")]
async fn rename_selects_the_name_without_its_ending() {
    let (portal, _, _alice) = with_alice().await;
    let folder = Folder::new("alice", "touch counts.csv");
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("alice").await;
    browser.go(&format!("/files/key?path={}", folder.path)).await;
    is_in(&browser, &folder.path, 1).await;
    browser.run("document.querySelector(\"tr[data-name='counts.csv'] input\").click()").await;
    browser.run("document.querySelector(\"[formaction='/files/key/rename']\").click()").await;
    let field = "document.getElementById('f-rename-to')";
    is_so(&browser, "the field has the focus", &format!("{field} && document.activeElement === {field}")).await;
    is_so(
        &browser,
        "only the name is selected",
        &format!("{field}.selectionStart === 0 && {field}.selectionEnd === 6"),
    )
    .await;
    press_key(&browser, "sums").await;
    press_key(&browser, ENTER).await;
    browser.wait_for_text("Renamed counts.csv to sums.csv.").await;
    browser.close().await;
}

/// A small copy leads to the folder that it goes to, which says so and shows the copy once it's there.
#[tokio::test(flavor = "multi_thread")]
async fn copy_appears_in_the_folder_it_goes_to() {
    let (portal, _, _alice) = with_alice().await;
    let folder = Folder::new("alice", "mkdir to; printf 1,2 >results.csv");
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("alice").await;
    browser.go(&format!("/files/key?path={}", folder.path)).await;
    is_in(&browser, &folder.path, 2).await;
    browser.run("document.querySelector(\"tr[data-name='results.csv'] input\").click()").await;
    browser.press("Copy").await;
    browser.fill("target", &format!("{}/to", folder.path)).await;
    browser.run("document.querySelector(\"form[action='/files/key/copy'] button.btn-primary\").click()").await;
    browser.wait_for_text("Copied results.csv.").await;
    is_in(&browser, &format!("{}/to", folder.path), 1).await;
    is_so(&browser, "no transfer is counted any more", "document.querySelector('.mainnav .nav-count') === null").await;
    is_so(&browser, "the copy is listed", "document.querySelector(\"tr[data-name='results.csv']\")").await;
    browser.close().await;
}

/// The address of a file's page.
fn view_page(folder: &Folder, name: &str) -> String {
    let path = format!("{}/{name}", folder.path);
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("path", &path).finish();
    format!("/files/key/view?{query}")
}

/// A PDF is seen on its page, but comes from the dashboards' origin; a page under the name of a PDF is only text.
#[tokio::test(flavor = "multi_thread")]
async fn pdf_is_shown_in_a_frame_of_the_other_origin() {
    let (portal, _, _alice) = with_alice().await;
    let folder = Folder::new(
        "alice",
        "cat >plot.pdf <<'END'
%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj
trailer<</Root 1 0 R>>
%%EOF
END
         echo '<body id=evil><script>parent.document.title = \"evil\"</script>' >fake.pdf",
    );
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("alice").await;
    browser.go(&view_page(&folder, "plot.pdf")).await;
    browser.wait_for_text("PDF 1.4").await;
    let source =
        format!("document.querySelector('iframe.file-frame').src.startsWith('{}/pdf/')", portal.dashboards_url);
    is_so(&browser, "the frame's origin", &source).await;
    let loaded = format!(
        "performance.getEntriesByType('resource').some((one) => one.name.startsWith('{}/pdf/'))",
        portal.dashboards_url
    );
    is_so(&browser, "the policy lets it load", &loaded).await;
    // What a policy or a header stops is replaced by an error page of the browser, which has another address.
    browser.window.enter_frame(0).await.unwrap();
    let here = format!("return location.href.startsWith('{}/pdf/')", portal.dashboards_url);
    browser.wait_until_true("the frame shows the file", &here).await;
    browser.window.enter_parent_frame().await.unwrap();
    audit(&browser, "a PDF").await;

    browser.go(&view_page(&folder, "fake.pdf")).await;
    browser.wait_for_text("<body id=evil>").await;
    let is_text = "document.querySelector('iframe, #evil') === null && document.title.startsWith('fake.pdf')";
    is_so(&browser, "it is only text", is_text).await;
    browser.close().await;
}
