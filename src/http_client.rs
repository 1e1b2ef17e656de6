//! Builds every HTTP client for requests that leave the portal.

use std::time::Duration;

/// A client that follows no redirects, ignores proxy settings and gives up after `within`.
pub fn client_builder(within: Duration) -> reqwest::ClientBuilder {
    // Fails only if a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(within).redirect(reqwest::redirect::Policy::none()).no_proxy()
}
