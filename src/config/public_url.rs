//! The URL that people type: scheme, host and port, nothing else.

use std::fmt;

use serde::Deserialize;

/// `https://portolan.example.org` or `http://localhost:8080`: no path, no user, no query.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PublicUrl {
    https: bool,
    host: String,
    authority: String,
    text: String,
}

impl PublicUrl {
    fn new(https: bool, host: String, port: Option<u16>) -> Self {
        // Browsers leave the default port out of Host and Origin.
        let usual = if https { 443 } else { 80 };
        let authority = match port.filter(|port| *port != usual) {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        };
        let scheme = if https { "https" } else { "http" };
        Self { https, host, text: format!("{scheme}://{authority}"), authority }
    }

    /// A plain URL for this machine.
    pub fn http(host: &str, port: u16) -> Self {
        Self::new(false, host.to_owned(), Some(port))
    }

    pub const fn is_https(&self) -> bool {
        self.https
    }

    /// The host without the port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The `Host` header that a browser sends.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Whether this is the `Origin` header that a browser sends.
    pub fn is_origin(&self, text: &str) -> bool {
        self.text == text
    }

    /// Whether it points to this machine only.
    pub fn is_local(&self) -> bool {
        matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "[::1]")
    }

    /// The full URL of a path.
    pub fn join(&self, path: &str) -> String {
        format!("{self}{path}")
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for PublicUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = || {
            format!(
                "'{text}' isn't a URL such as https://portolan.example.org (scheme, host and optional port, but no path)"
            )
        };
        let (https, rest) = if let Some(rest) = text.strip_prefix("https://") {
            (true, rest)
        } else {
            (false, text.strip_prefix("http://").ok_or_else(wrong)?)
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest).to_lowercase();
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host.to_owned(), Some(port.parse::<u16>().map_err(|_| wrong())?))
            }
            _ => (rest, None),
        };
        let good = |c: char| c.is_ascii_alphanumeric() || ".-[]:".contains(c);
        let bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || !host.chars().all(good) || (host.contains(':') && !bracketed) {
            return Err(wrong());
        }
        Ok(Self::new(https, host, port))
    }
}
