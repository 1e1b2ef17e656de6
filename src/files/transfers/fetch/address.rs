//! Web addresses that people download from. The portal runs inside a centre's network, so an address must not lead it to
//! machines that its owner could not reach: it resolves each name itself, checks every IP address behind it, and connects
//! to exactly those addresses, again for every redirect.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::Url;

use crate::jobs::webhook::is_public;

const MAX_ADDRESS_LEN: usize = 2000;
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// An address that can be downloaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchAddress(Url);

/// Why an address is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FetchAddressError {
    #[error("This isn't a web address. Enter one that starts with https:// or http://.")]
    NotAnAddress,
    #[error("The address must not contain a user name or password.")]
    HasPassword,
    #[error("This port isn't allowed. Use an address with a standard web port.")]
    Port,
    #[error("The host name wasn't found. Check the spelling.")]
    NoSuchHost,
    #[error("This address is on a private network. The portal only downloads from the public internet.")]
    Private,
}

impl FetchAddress {
    /// Parses an address without resolving it.
    pub fn parse(text: &str) -> Result<Self, FetchAddressError> {
        let text = text.trim();
        if text.len() > MAX_ADDRESS_LEN {
            return Err(FetchAddressError::NotAnAddress);
        }
        Self::check(Url::parse(text).map_err(|_| FetchAddressError::NotAnAddress)?)
    }

    /// Where a redirect leads.
    pub(super) fn follow(&self, location: &str) -> Result<Self, FetchAddressError> {
        if location.len() > MAX_ADDRESS_LEN {
            return Err(FetchAddressError::NotAnAddress);
        }
        Self::check(self.0.join(location).map_err(|_| FetchAddressError::NotAnAddress)?)
    }

    fn check(mut url: Url) -> Result<Self, FetchAddressError> {
        if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
            return Err(FetchAddressError::NotAnAddress);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchAddressError::HasPassword);
        }
        let port = url.port_or_known_default().ok_or(FetchAddressError::Port)?;
        if port < 1024 && ![80, 443].contains(&port) {
            return Err(FetchAddressError::Port);
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn url(&self) -> Url {
        self.0.clone()
    }

    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    pub(super) fn path(&self) -> &str {
        self.0.path()
    }

    /// The IP addresses behind it, every one checked.
    pub async fn resolve(&self, allow_private: bool) -> Result<Vec<SocketAddr>, FetchAddressError> {
        let port = self.0.port_or_known_default().ok_or(FetchAddressError::Port)?;
        let host = self.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let found: Vec<SocketAddr> = if let Ok(address) = bare.parse::<IpAddr>() {
            vec![SocketAddr::new(address, port)]
        } else {
            let found = tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((bare, port))).await;
            let found = found.map_err(|_| FetchAddressError::NoSuchHost)?;
            found.map_err(|_| FetchAddressError::NoSuchHost)?.collect()
        };
        if found.is_empty() {
            return Err(FetchAddressError::NoSuchHost);
        }
        // A single private address is enough to reject: the name's owner could choose which one is used.
        if !allow_private && !found.iter().all(|address| is_public(address.ip())) {
            return Err(FetchAddressError::Private);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_web_address_is_refused() {
        use FetchAddressError::{HasPassword, NotAnAddress, Port};
        for (text, problem) in [
            ("", NotAnAddress),
            ("example.org/x", NotAnAddress),
            ("file:///etc/passwd", NotAnAddress),
            ("ftp://example.org/", NotAnAddress),
            ("gopher://127.0.0.1:70/", NotAnAddress),
            ("https://me:secret@example.org/", HasPassword),
            ("http://example.org:22/", Port),
        ] {
            assert_eq!(FetchAddress::parse(text).unwrap_err(), problem, "{text}");
        }
        let address = FetchAddress::parse(" https://example.org/a/b.zip?x=1#part ").unwrap();
        assert_eq!((address.as_str(), address.path()), ("https://example.org/a/b.zip?x=1", "/a/b.zip"));
        assert_eq!(address.follow("../c").unwrap().as_str(), "https://example.org/c");
        assert_eq!(address.follow("file:///etc/passwd").unwrap_err(), NotAnAddress);
    }

    #[tokio::test]
    async fn private_addresses_are_refused_however_they_are_written() {
        for private in [
            "http://127.0.0.1:8080/",
            "http://localhost:8080/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://017700000001/",
            "http://169.254.169.254/latest/meta-data/",
            "http://10.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://0.0.0.0/",
        ] {
            let address = FetchAddress::parse(private).unwrap();
            assert_eq!(address.resolve(false).await, Err(FetchAddressError::Private), "{private}");
        }
        assert!(FetchAddress::parse("http://127.0.0.1:8080/").unwrap().resolve(true).await.is_ok());
        assert!(FetchAddress::parse("https://1.1.1.1/").unwrap().resolve(false).await.is_ok());
    }
}
