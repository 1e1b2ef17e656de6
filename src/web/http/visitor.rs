//! Who sent a request: the client's address, as far as trusted proxies report it, and the browser's user agent.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use ipnet::IpNet;

use crate::app::AppState;
use crate::auth::RequestClient;

/// How much of a user agent is kept.
const MAX_USER_AGENT_CHARS: usize = 200;

/// The client of a request, on either origin.
pub struct Visitor(pub RequestClient);

impl<S> FromRequestParts<S> for Visitor
where
    AppState: FromRef<S>,
    S: Sync,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(Self(visitor_from_request(parts, &AppState::from_ref(state).config.proxy.trusted)))
    }
}

pub fn visitor_from_request(parts: &Parts, trusted: &[IpNet]) -> RequestClient {
    let peer = parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::from([0, 0, 0, 0]), |ConnectInfo(address)| address.ip().to_canonical());
    let user_agent = parts.headers.get(header::USER_AGENT).map_or("", |value| value.to_str().unwrap_or(""));
    RequestClient {
        address: client_address(peer, &parts.headers, trusted),
        user_agent: crate::text::strip_hidden(user_agent, MAX_USER_AGENT_CHARS),
    }
}

/// Walks `X-Forwarded-For` from the right for as long as a trusted proxy wrote the entry.
fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut hops: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    let mut address = peer;
    while is_trusted(&address) {
        match hops.pop().map(parse_hop) {
            Some(Some(hop)) => address = hop,
            // An entry that isn't an address isn't trusted, nor is anything before it.
            Some(None) | None => break,
        }
    }
    address
}

fn parse_hop(text: &str) -> Option<IpAddr> {
    let address = text.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip())).ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(peer: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(address("9.9.9.9", &["1.1.1.1"], &[]), "9.9.9.9");
        assert_eq!(address("9.9.9.9", &["1.1.1.1"], &["10.0.0.0/8"]), "9.9.9.9");
        assert_eq!(address("10.0.0.1", &["1.1.1.1"], &["10.0.0.0/8"]), "1.1.1.1");
        assert_eq!(address("10.0.0.1", &["6.6.6.6, 1.1.1.1"], &["10.0.0.0/8"]), "1.1.1.1", "a forged first entry");
        assert_eq!(address("10.0.0.1", &["1.1.1.1", "10.0.0.2"], &["10.0.0.0/8"]), "1.1.1.1", "two proxies");
        assert_eq!(address("10.0.0.1", &["1.1.1.1, nonsense"], &["10.0.0.0/8"]), "10.0.0.1");
        assert_eq!(address("10.0.0.1", &["[2001:db8::1]:80"], &["10.0.0.0/8"]), "2001:db8::1");
        assert_eq!(address("10.0.0.1", &[], &["10.0.0.0/8"]), "10.0.0.1");
    }
}
