//! The values of a site's file that must be exactly right: names, hosts, links and fingerprints. Each is checked when
//! it is parsed, so that later code can rely on it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::domain::{HostName, NameError, Slug};

macro_rules! word {
    ($(#[$doc:meta])* $name:ident($vis:vis $inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name($vis $inner);

        impl $name {
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

word!(
    /// The short name of a site: `fir`, `trillium-gpu`.
    SiteName(pub Slug)
);
word!(
    /// A host of a site, safe to pass to `ssh`.
    SiteHost(pub HostName)
);
word!(
    /// A link for people to open: https, or http on this very machine.
    SiteLink(String)
);
word!(
    /// A host key's fingerprint as centres publish it: `SHA256:` and 43 base64 characters.
    HostKeyFingerprint(String)
);

impl FromStr for SiteName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.parse().map(Self)
    }
}

impl FromStr for SiteHost {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.parse().map(Self)
    }
}

impl FromStr for SiteLink {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let plain = text.len() <= 500 && text.chars().all(|c| c.is_ascii_graphic() && !"\"'<>\\^`{|}".contains(c));
        let address = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://").filter(|rest| is_this_machine(host_of(rest))));
        if plain && address.is_some_and(|rest| is_host(host_of(rest))) {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError("Enter a URL that starts with https:// and has no spaces."))
    }
}

impl SiteLink {
    /// The host that the link leads to.
    pub fn host(&self) -> &str {
        host_of(self.0.split_once("//").map_or("", |(_, rest)| rest))
    }
}

/// The part between `//` and the port or the path.
fn host_of(rest: &str) -> &str {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// No user name and no colon: what a person reads is where the browser goes.
fn is_host(host: &str) -> bool {
    let named = !host.is_empty()
        && host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c));
    named || (host.starts_with('[') && is_this_machine(host))
}

impl FromStr for HostKeyFingerprint {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
        let body = text.strip_prefix("SHA256:").unwrap_or_default();
        if body.len() == 43 && body.chars().all(good) {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError(
            "Enter the fingerprint as the centre publishes it: SHA256: followed by 43 letters, digits, + or /.",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_https_or_local() {
        for good in [
            "https://docs.alliancecan.ca/wiki/Fir",
            "https://example.org",
            "https://example.org:8443/a?b=c#d",
            "http://127.0.0.1:8090/keys",
            "http://localhost/keys",
            "http://[::1]:8090/keys",
        ] {
            assert_eq!(good.parse::<SiteLink>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "http://example.org/",
            "http://localhost.example.org/",
            "http://127.0.0.1@example.org/",
            "http://localhost:80@example.org/",
            "https://you@example.org/",
            "https://",
            "https:///x",
            "javascript:alert(1)",
            "//example.org",
            "https://example.org/a b",
            "https://example.org/\"x",
            "https://exämple.org/",
            "https://example.org\n",
        ] {
            assert!(bad.parse::<SiteLink>().is_err(), "{bad:?}");
        }
        assert!(format!("https://e.org/{}", "a".repeat(500)).parse::<SiteLink>().is_err());
    }

    #[test]
    fn fingerprints_have_the_published_form() {
        let good = "SHA256:NJgHnZFzGX0zYyUwCMUdWccvfCaTgKmZKzPaqL8VNM8";
        assert_eq!(good.parse::<HostKeyFingerprint>().unwrap().to_string(), good);
        for bad in [
            "",
            "NJgHnZFzGX0zYyUwCMUdWccvfCaTgKmZKzPaqL8VNM8",
            "SHA256:NJgHnZFzGX0zYyUwCMUdWccvfCaTgKmZKzPaqL8VNM",
            "SHA256:NJgHnZFzGX0zYyUwCMUdWccvfCaTgKmZKzPaqL8VNM8=",
            "MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48",
        ] {
            assert!(bad.parse::<HostKeyFingerprint>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn hosts_and_names_are_those_of_the_domain() {
        assert_eq!("fir.alliancecan.ca".parse::<SiteHost>().unwrap().to_string(), "fir.alliancecan.ca");
        assert!("-oProxyCommand=x".parse::<SiteHost>().is_err());
        assert!("Fir".parse::<SiteName>().is_err());
    }
}
