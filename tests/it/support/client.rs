//! Someone's browser without a screen: keeps cookies, follows nothing, says where it comes from.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use reqwest::cookie::{CookieStore as _, Jar};
use reqwest::{Method, RequestBuilder};
use scraper::{Html, Selector};

use super::wait::note_seen;

/// Someone's browser.
#[derive(Clone)]
pub struct Client {
    url: String,
    http: reqwest::Client,
    jar: Arc<Jar>,
}

/// An answer.
pub struct Page {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    body: String,
}

impl Client {
    /// A browser without cookies.
    pub fn new(url: &str) -> Self {
        let jar = Arc::new(Jar::default());
        let http = portolan::http_client::client_builder(Duration::from_mins(1))
            .cookie_provider(jar.clone())
            // These tests speak no TLS; reading the machine's certificates would take most of their time.
            .tls_certs_only([])
            // A connection that the portal is about to close (after a body that was too large) would be used again.
            .pool_max_idle_per_host(0)
            .build()
            .unwrap();
        Self { url: url.to_owned(), http, jar }
    }

    /// A request that can be changed before it is sent.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    /// Opens a page.
    pub async fn get(&self, path: &str) -> Page {
        send(self.request(Method::GET, path)).await
    }

    /// Sends a form, as a page of the portal does.
    pub async fn post(&self, path: &str, form: &[(&str, &str)]) -> Page {
        send(self.request(Method::POST, path).header("origin", &self.url).form(form)).await
    }

    /// Sends a form and goes where the answer leads.
    pub async fn post_and_follow(&self, path: &str, form: &[(&str, &str)]) -> Page {
        let answer = self.post(path, form).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        self.get(answer.location()).await
    }

    /// Signs in with name and password.
    pub async fn sign_in(&self, name: &str, password: &str) -> Page {
        self.post("/sign-in", &[("name", name), ("password", password), ("next", "/")]).await
    }

    /// Whether the home page opens.
    pub async fn is_signed_in(&self) -> bool {
        self.get("/").await.status == 200
    }

    /// All cookies as one header.
    pub fn cookies(&self) -> String {
        let url = self.url.parse().unwrap();
        self.jar.cookies(&url).map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    }

    /// Sets a cookie.
    pub fn set_cookie(&self, cookie: &str) {
        self.jar.add_cookie_str(cookie, &self.url.parse().unwrap());
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<String> {
        self.cookies().split("; ").find_map(|pair| pair.strip_prefix(&format!("{name}=")).map(str::to_owned))
    }
}

/// Sends a request and reads the whole answer.
pub async fn send(request: RequestBuilder) -> Page {
    read_answer(request.send().await.unwrap()).await
}

/// Sends a body that is too large. The portal answers and closes the connection without reading all of it: a client
/// that is still sending then finds a broken pipe, and may never see the answer. Nothing is given in that case, which
/// is a refusal, too.
pub async fn send_too_large(request: RequestBuilder) -> Option<Page> {
    let answered = async { try_read_answer(request.send().await?).await };
    match answered.await {
        Ok(page) => Some(page),
        Err(error) if was_cut_off(&error) => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// Whether the other side closed the connection while a request was being sent, or its answer read.
fn was_cut_off(error: &reqwest::Error) -> bool {
    // The answer's head arrived, the rest of it didn't.
    if error.is_decode() {
        return true;
    }
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        }
        cause = error.source();
    }
    false
}

async fn read_answer(response: reqwest::Response) -> Page {
    try_read_answer(response).await.unwrap()
}

async fn try_read_answer(response: reqwest::Response) -> Result<Page, reqwest::Error> {
    let path = response.url().path().to_owned();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let is_html = headers
        .get("content-type")
        .is_some_and(|value| value.to_str().is_ok_and(|value| value.starts_with("text/html")));
    let body = response.text().await?;
    let body = if is_html { collapse_line_breaks(&body) } else { body };
    let page = Page { status, headers, body };
    note_seen(|| format!("{path}: {} {}\n{}", page.status, page.location(), page.text()));
    Ok(page)
}

/// Line breaks of a page as single spaces, which is how a browser shows them: where a template wraps a line is nothing
/// that a test should know. What is preformatted stays as it is.
fn collapse_line_breaks(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while !rest.is_empty() {
        let preformatted = ["<pre", "<textarea"].into_iter().filter_map(|tag| rest.find(tag)).min();
        let (flowing, after) = rest.split_at(preformatted.unwrap_or(rest.len()));
        for (number, line) in flowing.split('\n').enumerate() {
            if number > 0 {
                text.truncate(text.trim_end().len());
                text.push(' ');
            }
            text.push_str(if number > 0 { line.trim_start() } else { line });
        }
        let end = ["</pre>", "</textarea>"].into_iter().filter_map(|tag| after.find(tag)).min();
        let (kept, next) = after.split_at(end.unwrap_or(after.len()));
        text.push_str(kept);
        rest = next;
    }
    text
}

impl Page {
    /// The body. In pages, line breaks are single spaces.
    pub fn text(&self) -> &str {
        &self.body
    }

    /// A header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Where it sends the browser.
    pub fn location(&self) -> &str {
        self.header("location")
    }

    /// The text of the first element that fits.
    pub fn select_text(&self, selector: &str) -> String {
        let all = self.select_all(selector);
        all.into_iter().next().unwrap_or_else(|| panic!("nothing fits {selector} in {}", self.body))
    }

    /// The texts of all elements that fit.
    pub fn select_all(&self, selector: &str) -> Vec<String> {
        let html = Html::parse_document(&self.body);
        html.select(&Selector::parse(selector).unwrap())
            .map(|element| element.text().collect::<String>().trim().to_owned())
            .collect()
    }

    /// An attribute of the first element that fits.
    pub fn attribute(&self, selector: &str, name: &str) -> String {
        let all = self.attributes(selector, name);
        all.into_iter().next().unwrap_or_else(|| panic!("no {selector}[{name}]"))
    }

    /// An attribute of all elements that fit and have it.
    pub fn attributes(&self, selector: &str, name: &str) -> Vec<String> {
        let html = Html::parse_document(&self.body);
        let selector = Selector::parse(selector).unwrap();
        let all = html.select(&selector);
        all.filter_map(|element| element.attr(name)).map(str::to_owned).collect()
    }
}
