//! What a board's job tells of itself in `state.json`. The file is its owner's, so everything in it may be made up: only
//! the port and the secret are used, and only towards the node that Slurm names.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::handshake::Secret;
use crate::clock::UnixTime;
use crate::sites::clean::clean_text;

/// The name of the file in the run's folder.
pub const FILE: &str = "state.json";
/// A longer file is none of ours.
pub const LONGEST: usize = 16 * 1024;
/// Longest sentence that is shown.
const SENTENCE: usize = 500;
const MOST_VERSIONS: usize = 20;
const LONGEST_VERSION: usize = 40;
/// Ports below belong to the system.
const FIRST_PORT: u16 = 1024;

/// Where a run is.
#[derive(Debug, Clone)]
pub enum Stage {
    /// Its environment is being made or looked at.
    Preparing,
    /// The program is being started.
    Starting,
    /// It answers.
    Ready(Door),
    /// It gave up; the message says why.
    Failed,
    /// It was stopped, or its time was up.
    Ended,
}

/// How a board that is ready is reached, on its node.
#[derive(Debug, Clone)]
pub struct Door {
    /// The port.
    pub port: u16,
    /// What both ends prove to know.
    pub secret: Secret,
}

/// What a job has told last.
#[derive(Debug, Clone)]
pub struct Report {
    /// Where it is.
    pub stage: Stage,
    /// When it said so, by the node's clock.
    pub at: UnixTime,
    /// What it says about it, fit to be shown; may be empty.
    pub message: String,
    /// The versions of what runs: `tensorboard` → `2.21.0`.
    pub versions: BTreeMap<String, String>,
}

/// Why there is no report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is longer than such a file can be.
    #[error("The board's report is too long to be one.")]
    TooLong,
    /// It is something else.
    #[error("The board's report cannot be read.")]
    Shape,
}

#[derive(Deserialize)]
struct Raw {
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

impl Report {
    /// Reads the file's content.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        if bytes.len() > LONGEST {
            return Err(Unreadable::TooLong);
        }
        let raw: Raw = serde_json::from_slice(bytes).map_err(|_| Unreadable::Shape)?;
        let stage = match raw.stage.as_str() {
            "preparing" => Stage::Preparing,
            "starting" => Stage::Starting,
            "ready" => {
                let port = raw.port.filter(|port| *port >= FIRST_PORT);
                let secret =
                    raw.secret.as_ref().and_then(|text| Secret::from_hex(text.expose_secret()));
                let door = port.zip(secret).ok_or(Unreadable::Shape)?;
                Stage::Ready(Door { port: door.0, secret: door.1 })
            }
            "failed" => Stage::Failed,
            "ended" => Stage::Ended,
            _ => return Err(Unreadable::Shape),
        };
        let fit = |text: &String, most| clean_text(text, most).replace('\n', " ");
        let versions = raw.versions.iter().take(MOST_VERSIONS);
        Ok(Self {
            stage,
            at: UnixTime(raw.at),
            message: fit(&raw.message, SENTENCE),
            versions: versions
                .map(|(name, version)| (fit(name, LONGEST_VERSION), fit(version, LONGEST_VERSION)))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Report, Unreadable> {
        Report::read(text.as_bytes())
    }

    #[test]
    fn a_report_is_read() {
        let secret = "5a".repeat(32);
        let text = format!(
            r#"{{"stage":"ready","at":1794820320,"message":"","port":40123,"secret":"{secret}","versions":{{"tensorboard":"2.21.0"}},"more":1}}"#
        );
        let report = read(&text).unwrap();
        let Stage::Ready(door) = &report.stage else { panic!("{report:?}") };
        assert_eq!((door.port, report.at), (40123, UnixTime(1_794_820_320)));
        assert_eq!(report.versions["tensorboard"], "2.21.0");
        assert!(!format!("{report:?}").contains(&secret), "a secret does not print");
        let report =
            read(r#"{"stage":"failed","message":"No\u001b[31m disk\u0000\n<b>."}"#).unwrap();
        assert!(matches!(report.stage, Stage::Failed));
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
            assert_eq!(read(&text).unwrap_err(), Unreadable::Shape, "{text}");
        }
        let long = format!(r#"{{"stage":"ended","message":"{}"}}"#, "x".repeat(LONGEST));
        assert_eq!(read(&long).unwrap_err(), Unreadable::TooLong);
        assert!(Report::read(&[0xff, 0xfe]).is_err());
    }
}
