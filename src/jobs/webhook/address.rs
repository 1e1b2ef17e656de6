//! Webhook addresses. The portal runs inside a centre's network, so an address must not lead it to machines that its
//! owner could not reach. The portal resolves each name itself, checks every IP address behind it, and connects to
//! exactly those addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::Url;

const MAX_ADDRESS_LEN: usize = 2000;
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// An address that can be sent to. Its path is often a secret, so it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookAddress(Url);

/// Why an address is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookAddressError {
    /// It is not a URL.
    #[error(
        "This isn't a web address. Copy it from the service that will receive the messages; it starts with https://."
    )]
    NotAnAddress,
    #[error("The address must start with https:// so that nobody else can read the messages.")]
    NotEncrypted,
    /// It contains a user name or password.
    #[error("The address must not contain a user name or password.")]
    HasPassword,
    /// A port that is not a web port.
    #[error("This port isn't allowed for webhooks. Use the standard HTTPS port.")]
    Port,
    /// The name does not resolve.
    #[error("The host name wasn't found. Check the spelling.")]
    NoSuchHost,
    #[error("This address is on a private network. The portal only sends messages to the public internet.")]
    Private,
}

impl WebhookAddress {
    /// Parses an address without resolving it.
    pub fn parse(text: &str, allow_private: bool) -> Result<Self, WebhookAddressError> {
        let text = text.trim();
        if text.len() > MAX_ADDRESS_LEN {
            return Err(WebhookAddressError::NotAnAddress);
        }
        let mut url = Url::parse(text).map_err(|_| WebhookAddressError::NotAnAddress)?;
        match url.scheme() {
            "https" => {}
            // Plain HTTP is only allowed if the administrator opened private networks, and only to private addresses.
            "http" if allow_private => {}
            "http" => return Err(WebhookAddressError::NotEncrypted),
            _ => return Err(WebhookAddressError::NotAnAddress),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WebhookAddressError::HasPassword);
        }
        let port = url.port_or_known_default().ok_or(WebhookAddressError::Port)?;
        if port < 1024 && ![80, 443].contains(&port) {
            return Err(WebhookAddressError::Port);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(WebhookAddressError::NotAnAddress);
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    /// The host, for display.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The full address, only for sealing and for the request.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn url(&self) -> Url {
        self.0.clone()
    }

    /// The IP addresses behind it, every one checked.
    pub async fn resolve(&self, allow_private: bool) -> Result<Vec<SocketAddr>, WebhookAddressError> {
        let port = self.0.port_or_known_default().ok_or(WebhookAddressError::Port)?;
        let host = self.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let found: Vec<SocketAddr> = if let Ok(address) = bare.parse::<IpAddr>() {
            vec![SocketAddr::new(address, port)]
        } else {
            let found = tokio::net::lookup_host((bare, port));
            let found = tokio::time::timeout(RESOLVE_TIMEOUT, found).await;
            let found = found.map_err(|_| WebhookAddressError::NoSuchHost)?;
            found.map_err(|_| WebhookAddressError::NoSuchHost)?.collect()
        };
        if found.is_empty() {
            return Err(WebhookAddressError::NoSuchHost);
        }
        // A single private address is enough to reject: the name's owner could choose which one is used.
        if !allow_private && !found.iter().all(|address| is_public(address.ip())) {
            return Err(WebhookAddressError::Private);
        }
        if self.0.scheme() == "http" && found.iter().any(|address| is_public(address.ip())) {
            return Err(WebhookAddressError::NotEncrypted);
        }
        Ok(found)
    }
}

impl std::fmt::Debug for WebhookAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({})", self.host())
    }
}

/// Whether an address is on the public internet; unknown ranges are not.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Carrier-grade NAT, protocol assignments, old relays, benchmarks.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b)))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // An embedded IPv4 address: mapped or translated.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            embedded(high, low)
        }
        // Tunnels, documentation and other special uses of 2001::/23, and 3fff::/20.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // Everything allocated today.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_addresses_are_known_in_every_form() {
        for inner in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "100::1",
            "3fff::1",
        ] {
            assert!(!is_public(inner.parse().unwrap()), "{inner}");
        }
        for outer in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
            "2001:4860:4860::8888",
        ] {
            assert!(is_public(outer.parse().unwrap()), "{outer}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        use WebhookAddressError::{HasPassword, NotAnAddress, NotEncrypted, Port};
        for (text, problem) in [
            ("", NotAnAddress),
            ("hooks.example.org/x", NotAnAddress),
            ("file:///etc/passwd", NotAnAddress),
            ("gopher://example.org/", NotAnAddress),
            ("https://", NotAnAddress),
            ("http://example.org/", NotEncrypted),
            ("https://me:secret@example.org/", HasPassword),
            ("https://example.org:22/", Port),
            ("https://example.org:25/", Port),
        ] {
            assert_eq!(WebhookAddress::parse(text, false).unwrap_err(), problem, "{text}");
        }
        let long = format!("https://example.org/{}", "x".repeat(MAX_ADDRESS_LEN));
        assert_eq!(WebhookAddress::parse(&long, false).unwrap_err(), NotAnAddress);
        let good = WebhookAddress::parse(" https://hooks.example.org/services/T0/secret#x ", false).unwrap();
        assert_eq!(good.as_str(), "https://hooks.example.org/services/T0/secret");
        assert_eq!(format!("{good:?}"), "Address(hooks.example.org)");
    }

    #[tokio::test]
    async fn addresses_that_lead_inside_are_refused_however_they_are_written() {
        for text in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://10.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://0/",
        ] {
            let address = WebhookAddress::parse(text, false).unwrap();
            let found = address.resolve(false).await;
            assert!(
                matches!(found, Err(WebhookAddressError::Private | WebhookAddressError::NoSuchHost)),
                "{text}: {found:?}"
            );
        }
        let inside = WebhookAddress::parse("http://127.0.0.1:9999/x", true).unwrap();
        assert_eq!(inside.resolve(true).await.unwrap(), ["127.0.0.1:9999".parse().unwrap()]);
        let outside = WebhookAddress::parse("http://1.1.1.1/x", true).unwrap();
        assert_eq!(outside.resolve(true).await, Err(WebhookAddressError::NotEncrypted));
    }
}
