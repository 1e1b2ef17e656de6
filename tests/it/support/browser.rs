//! A real browser: Debian's Chromium, driven through its driver.

use std::process::Stdio;

use fantoccini::wd::{PrintConfiguration, PrintSize};
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{Map, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::wait::{PATIENCE, note_seen, wait_for};

/// A browser window with its driver; both end when it is dropped.
pub struct Browser {
    pub window: Client,
    url: String,
    _driver: Child,
    profile: tempfile::TempDir,
}

impl Drop for Browser {
    /// A test that failed closes no window: then the browser would outlive its driver. Its processes are known by
    /// their profile, a folder that only this window has.
    fn drop(&mut self) {
        let profile = self.profile.path().to_string_lossy().into_owned();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&line).contains(&profile) {
                let pid = entry.file_name();
                let _ = std::process::Command::new("kill").arg("-KILL").arg(pid).status();
            }
        }
    }
}

/// Notes whether the next click hits what a path leads to. On the page after it, nothing is noted.
const WATCH_CLICK: &str = "const path = arguments[0]; window.missed = true; \
    document.addEventListener('click', (event) => { \
      const all = document.evaluate(path, document, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE); \
      for (let at = 0; at < all.snapshotLength; at++) { \
        if (all.snapshotItem(at).contains(event.target)) window.missed = false; \
      } \
    }, { capture: true, once: true });";

impl Browser {
    /// A fresh browser, as wide as a desk (1280) or a phone (390).
    pub async fn open(url: &str, width: u32) -> Self {
        let (driver, port) = driver().await;
        let profile = tempfile::tempdir().unwrap();
        let window = ClientBuilder::new(hyper_util_connector())
            .capabilities(capabilities(width, profile.path()))
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("a browser window");
        // With a new profile, some versions don't give their window the focus, and pages hear of no focus either.
        let focus = DevToolsCommand("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        window.issue_cmd(focus).await.expect("the focus");
        Self { window, url: url.to_owned(), _driver: driver, profile }
    }

    /// Opens a page of the portal.
    pub async fn go(&self, path: &str) {
        self.window.goto(&format!("{}{path}", self.url)).await.unwrap();
    }

    /// Types into the field with this name.
    pub async fn fill(&self, name: &str, text: &str) {
        let field = self.find(&format!("[name={name}]")).await;
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    /// Presses the button with exactly these words.
    pub async fn press(&self, words: &str) {
        let path = format!("//main//*[self::button or self::a or self::summary][normalize-space(.)='{words}']");
        self.click(&path, &format!("no button '{words}'")).await;
    }

    /// Goes back one page. The driver's own way waits for a page that a restored one never loads.
    pub async fn back(&self) {
        self.run("history.back()").await;
    }

    /// Clicks on what a path leads to. A part that renews itself may take it away or move it between finding and
    /// clicking: then something else was clicked or nothing, and it is looked for again.
    async fn click(&self, path: &str, problem: &str) {
        for _ in 0..20 {
            let found = self.window.wait().at_most(PATIENCE).for_element(Locator::XPath(path)).await;
            let Ok(found) = found else { panic!("{problem} on {}", self.seen().await) };
            self.settled().await;
            self.window.execute(WATCH_CLICK, vec![json!(path)]).await.unwrap();
            match found.click().await {
                Ok(()) if self.run("return window.missed === true").await == false => return,
                Ok(()) => {}
                Err(error) if error.is_stale_element_reference() => {}
                // It lies below a bar at the top or the bottom.
                Err(error) if error.to_string().contains("click intercepted") => {
                    let center = "const found = document.evaluate(arguments[0], document, null, \
                                  XPathResult.FIRST_ORDERED_NODE_TYPE, null).singleNodeValue; \
                                  found?.scrollIntoView({ block: 'center', behavior: 'instant' })";
                    self.window.execute(center, vec![json!(path)]).await.unwrap();
                }
                Err(error) => panic!("{problem}: {error}"),
            }
        }
        panic!("{problem}: it never stays for long enough on {}", self.seen().await);
    }

    /// Presses the button whose words begin so, in the row of a list that begins with this title.
    pub async fn press_in_row(&self, title: &str, words: &str) {
        let path = format!(
            "//main//li[.//a[normalize-space(.)='{title}']]\
             //*[self::button or self::a][starts-with(normalize-space(.), '{words}')]"
        );
        self.click(&path, &format!("no '{words}' beside '{title}'")).await;
    }

    /// Fills in the form of a new person and sends it.
    pub async fn fill_new_person(&self, name: &str) {
        for (field, value) in super::app::new_person(name) {
            self.fill(field, value).await;
        }
        self.press("Create account").await;
    }

    /// The first element that fits, waiting for it.
    pub async fn find(&self, selector: &str) -> fantoccini::elements::Element {
        let found = self.window.wait().at_most(PATIENCE).for_element(Locator::Css(selector)).await;
        let Ok(found) = found else { panic!("nothing fits {selector} on {}", self.seen().await) };
        self.settled().await;
        found
    }

    /// Waits until the page says something.
    pub async fn wait_for_text(&self, words: &str) {
        let quote = if words.contains('\'') { '"' } else { '\'' };
        let path = format!("//*[contains(normalize-space(.), {quote}{words}{quote})]");
        let found = self.window.wait().at_most(PATIENCE).for_element(Locator::XPath(&path)).await;
        assert!(found.is_ok(), "the page never said '{words}': {}", self.seen().await);
        self.settled().await;
    }

    /// The visible text of the page.
    pub async fn text(&self) -> String {
        // Asked of the page, not of an element: that one may be replaced in between.
        let text = self.run("return document.body ? document.body.innerText : ''").await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a script returns true. If it never does, the page of the last look is told.
    pub async fn wait_until_true(&self, what: &str, script: &str) {
        // In one call, so that what is told is what was judged.
        let look = format!(
            "const holds = (() => {{ {script} }})(); \
             return holds === true ? '' : `${{location.pathname}}: ${{holds}}\\n${{document.body?.innerText}}`"
        );
        wait_for(what, async || match self.run(&look).await.as_str() {
            Some("") => Ok(()),
            seen => Err(seen.unwrap_or_default().to_owned()),
        })
        .await;
    }

    /// The page as a failed wait tells it.
    async fn seen(&self) -> String {
        format!("{}:\n{}", self.path().await, self.text().await)
    }

    /// The path of the page.
    pub async fn path(&self) -> String {
        self.window.current_url().await.unwrap().path().to_owned()
    }

    /// Waits until what has come into the page is at work: htmx listens to new elements only a moment after they are
    /// seen, and a click before that would be lost.
    pub async fn settled(&self) {
        let script = "return document.querySelector('.htmx-added, .htmx-settling, .htmx-swapping') === null";
        self.wait_until_true("the page has settled", script).await;
    }

    /// Runs a script in the page and gives what it returns.
    pub async fn run(&self, script: &str) -> serde_json::Value {
        let value = self.window.execute(script, Vec::new()).await.unwrap();
        note_seen(|| format!("{script}: {value}"));
        value
    }

    /// Drops files or folders of this machine onto the page, as a mouse does.
    pub async fn drop_files(&self, paths: &[&std::path::Path]) {
        for kind in ["dragEnter", "dragOver", "drop"] {
            let data = json!({ "items": [], "files": paths, "dragOperationsMask": 1 });
            let params = json!({ "type": kind, "x": 200, "y": 300, "data": data });
            self.window.issue_cmd(DevToolsCommand("Input.dispatchDragEvent", params)).await.unwrap();
        }
    }

    /// Light or dark, as if the device said so.
    pub async fn prefer(&self, theme: &str) {
        self.run(&format!("document.documentElement.dataset.theme = '{theme}'")).await;
    }

    /// A picture of what is seen.
    pub async fn picture(&self) -> Vec<u8> {
        self.window.screenshot().await.unwrap()
    }

    /// How many sheets of A4 the page is on paper.
    pub async fn sheets(&self) -> usize {
        let paper = PrintConfiguration::builder().size(PrintSize::A4).build().unwrap();
        let pdf = self.window.print(paper).await.unwrap();
        let text = String::from_utf8_lossy(&pdf);
        text.matches("/Type /Page").count() - text.matches("/Type /Pages").count()
    }

    /// Ends the window; the driver ends with the value.
    pub async fn close(self) {
        let _ = self.window.clone().close().await;
    }
}

/// A command of the browser's own protocol, for what the driver's has no words for.
#[derive(Debug)]
struct DevToolsCommand(&'static str, serde_json::Value);

impl fantoccini::wd::WebDriverCompatibleCommand for DevToolsCommand {
    fn endpoint(
        &self,
        base: &reqwest::Url,
        session: Option<&str>,
    ) -> Result<reqwest::Url, <reqwest::Url as std::str::FromStr>::Err> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &reqwest::Url) -> (reqwest::Method, Option<String>) {
        (reqwest::Method::POST, Some(json!({ "cmd": self.0, "params": self.1 }).to_string()))
    }
}

/// A person who counts their clicks.
pub struct CountedClicks {
    pub browser: Browser,
    pub clicks: u32,
}

impl CountedClicks {
    pub fn new(browser: Browser) -> Self {
        Self { browser, clicks: 0 }
    }

    pub async fn press(&mut self, words: &str) {
        self.browser.press(words).await;
        self.clicks += 1;
    }
}

fn hyper_util_connector() -> hyper_util::client::legacy::connect::HttpConnector {
    hyper_util::client::legacy::connect::HttpConnector::new()
}

/// Starts the driver. It takes a free IPv4 port and then wants the same number for IPv6; where another program has
/// that one, it ends, and another number has to be tried.
async fn driver() -> (Child, u16) {
    for _ in 0..5 {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("chromedriver: run script/test, which installs it");
        if let Some(port) = driver_port(&mut driver).await {
            return (driver, port);
        }
    }
    panic!("chromedriver ended five times without naming its port");
}

async fn driver_port(driver: &mut Child) -> Option<u16> {
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some((_, rest)) = line.split_once("started successfully on port ") {
                return Some(rest.trim_end_matches('.').parse().unwrap());
            }
        }
        None
    };
    let port = tokio::time::timeout(PATIENCE, port).await.expect("chromedriver to start");
    // What it prints later must go somewhere, or it would stop.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    port
}

fn capabilities(width: u32, profile: &std::path::Path) -> Map<String, serde_json::Value> {
    let mut args: Vec<String> = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--lang=en",
        "--force-prefers-reduced-motion",
    ]
    .map(str::to_owned)
    .to_vec();
    args.push(format!("--user-data-dir={}", profile.display()));
    args.push(format!("--window-size={width},900"));
    let mut options = json!({ "args": args });
    if width < 500 {
        // A window cannot be as narrow as a phone; the page in it can.
        options["mobileEmulation"] = json!({ "deviceMetrics": { "width": width, "height": 844, "pixelRatio": 1.0 } });
    }
    json!({ "browserName": "chrome", "goog:chromeOptions": options }).as_object().unwrap().clone()
}
