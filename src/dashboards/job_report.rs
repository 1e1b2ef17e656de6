//! What a dashboard's job reports about itself in `state.json`. Its owner can write anything into that file, so only
//! the port and the secret are used, and only towards the node that Slurm names.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::handshake::DashboardSecret;
use crate::clock::UnixTime;
use crate::text::clean_text;

/// The name of the file in the run's folder.
pub const REPORT_FILE: &str = "state.json";
/// A longer file was not written by us.
pub const MAX_REPORT_LEN: usize = 16 * 1024;
/// The longest message that is shown.
const MAX_MESSAGE_LEN: usize = 500;
const MAX_VERSIONS: usize = 20;
const MAX_VERSION_LEN: usize = 40;
/// Lower ports belong to the system.
const MIN_PORT: u16 = 1024;

/// How far a run's job is.
#[derive(Debug, Clone)]
pub enum DashboardStage {
    /// Its environment is being created or checked.
    Preparing,
    /// The program is starting.
    Starting,
    Ready(DashboardEndpoint),
    /// It gave up; the message says why.
    Failed,
    /// It was stopped, or its time limit was reached.
    Ended,
}

impl DashboardStage {
    /// The code that the job writes and the database stores.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Ready(_) => "ready",
            Self::Failed => "failed",
            Self::Ended => "ended",
        }
    }
}

/// Where a ready dashboard listens on its node.
#[derive(Debug, Clone)]
pub struct DashboardEndpoint {
    pub port: u16,
    /// What both ends prove to know.
    pub secret: DashboardSecret,
}

/// What a job last reported.
#[derive(Debug, Clone)]
pub struct DashboardReport {
    pub stage: DashboardStage,
    /// When it reported, by the node's clock.
    pub at: UnixTime,
    /// Its message, safe to show; may be empty.
    pub message: String,
    /// The versions that run: `tensorboard` → `2.21.0`.
    pub versions: BTreeMap<String, String>,
}

/// Why there is no report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DashboardReportError {
    /// It is longer than such a file can be.
    #[error("The dashboard's status file is too long.")]
    TooLong,
    /// It is not a report.
    #[error("The dashboard's status file can't be read.")]
    Malformed,
}

#[derive(Deserialize)]
struct RawDashboardReport {
    stage: String,
    #[serde(default)]
    at: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    secret: Option<SecretString>,
    #[serde(default)]
    versions: BTreeMap<String, String>,
}

impl DashboardReport {
    /// Parses the file's content.
    pub fn parse(bytes: &[u8]) -> Result<Self, DashboardReportError> {
        if bytes.len() > MAX_REPORT_LEN {
            return Err(DashboardReportError::TooLong);
        }
        let raw: RawDashboardReport = serde_json::from_slice(bytes).map_err(|_| DashboardReportError::Malformed)?;
        let stage = match raw.stage.as_str() {
            "preparing" => DashboardStage::Preparing,
            "starting" => DashboardStage::Starting,
            "ready" => {
                let port = raw.port.filter(|port| *port >= MIN_PORT);
                let secret = raw.secret.as_ref().and_then(|text| DashboardSecret::from_hex(text.expose_secret()));
                let door = port.zip(secret).ok_or(DashboardReportError::Malformed)?;
                DashboardStage::Ready(DashboardEndpoint { port: door.0, secret: door.1 })
            }
            "failed" => DashboardStage::Failed,
            "ended" => DashboardStage::Ended,
            _ => return Err(DashboardReportError::Malformed),
        };
        let fit = |text: &String, most| clean_text(text, most).replace('\n', " ");
        let versions = raw.versions.iter().take(MAX_VERSIONS);
        Ok(Self {
            stage,
            at: UnixTime(raw.at),
            message: fit(&raw.message, MAX_MESSAGE_LEN),
            versions: versions
                .map(|(name, version)| (fit(name, MAX_VERSION_LEN), fit(version, MAX_VERSION_LEN)))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DashboardReport, DashboardReportError> {
        DashboardReport::parse(text.as_bytes())
    }

    #[test]
    fn a_report_is_read() {
        let secret = "5a".repeat(32);
        let text = format!(
            r#"{{"stage":"ready","at":1794820320,"message":"","port":40123,"secret":"{secret}","versions":{{"tensorboard":"2.21.0"}},"more":1}}"#
        );
        let report = read(&text).unwrap();
        let DashboardStage::Ready(door) = &report.stage else { panic!("{report:?}") };
        assert_eq!((door.port, report.at), (40123, UnixTime(1_794_820_320)));
        assert_eq!(report.versions["tensorboard"], "2.21.0");
        assert!(!format!("{report:?}").contains(&secret), "a secret does not print");
        let report = read(r#"{"stage":"failed","message":"No\u001b[31m disk\u0000\n<b>."}"#).unwrap();
        assert!(matches!(report.stage, DashboardStage::Failed));
        assert_eq!(report.message, "No disk <b>.");
    }

    #[test]
    fn what_is_no_report_is_refused() {
        let secret = "5a".repeat(32);
        let ready = |rest: &str| format!(r#"{{"stage":"ready"{rest}}}"#);
        for text in [
            String::new(),
            "[]".to_owned(),
            "null".to_owned(),
            r#"{"stage":"READY"}"#.to_owned(),
            r#"{"stage":1}"#.to_owned(),
            r#"{"stage":"ended","at":"now"}"#.to_owned(),
            ready(""),
            ready(r#","port":8080"#),
            ready(&format!(r#","secret":"{secret}""#)),
            ready(&format!(r#","port":22,"secret":"{secret}""#)),
            ready(&format!(r#","port":70000,"secret":"{secret}""#)),
            ready(&format!(r#","port":-1,"secret":"{secret}""#)),
            ready(&format!(r#","port":8080,"secret":"{}""#, secret.to_uppercase())),
        ] {
            assert_eq!(read(&text).unwrap_err(), DashboardReportError::Malformed, "{text}");
        }
        let long = format!(r#"{{"stage":"ended","message":"{}"}}"#, "x".repeat(MAX_REPORT_LEN));
        assert_eq!(read(&long).unwrap_err(), DashboardReportError::TooLong);
        assert!(DashboardReport::parse(&[0xff, 0xfe]).is_err());
    }
}
