//! The baseline for `script/bench web`: a bare axum handler that returns the bytes of a file.
//! Usage: `bare_axum FILE PORT`

use axum::response::Html;
use axum::routing::get;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, port] = arguments.as_slice() else { anyhow::bail!("usage: bare_axum FILE PORT") };
    let page: &'static str = std::fs::read_to_string(file)?.leak();
    let router = axum::Router::new().route("/", get(async move || Html(page)));
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    Ok(axum::serve(listener, router).await?)
}
