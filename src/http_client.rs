//! The one way to make HTTP clients for requests that leave the portal.

use std::time::Duration;

/// A client that follows no redirects and no proxy settings, and gives up after `within`.
pub fn client_builder(within: Duration) -> reqwest::ClientBuilder {
    // Fails only if a provider was installed before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .timeout(within)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
}
