//! The real test cluster, started by `script/test` before these tests run.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The running test cluster.
pub struct Cluster {
    facts: serde_json::Value,
}

impl Cluster {
    /// The cluster that `PORTOLAN_CLUSTER_DIR` names.
    pub fn get() -> Self {
        let dir = std::env::var_os("PORTOLAN_CLUSTER_DIR")
            .map_or_else(|| root().join("var/test/cluster"), PathBuf::from);
        let path = dir.join("cluster.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("{}: {error}. Run script/test, or script/cluster up", path.display())
        });
        Self { facts: serde_json::from_str(&text).unwrap() }
    }

    /// A port: `key` or `mfa`.
    pub fn port(&self, kind: &str) -> u16 {
        u16::try_from(self.facts["ports"][kind].as_u64().unwrap()).unwrap()
    }

    /// The fingerprint of its host key.
    pub fn fingerprint(&self) -> &str {
        self.facts["host_keys"][0]["fingerprint"].as_str().unwrap()
    }

    /// Runs `script/cluster`.
    pub fn script(&self, args: &[&str]) -> Output {
        let dir = self.facts["dir"].as_str().unwrap();
        Command::new(root().join("script/cluster"))
            .args(["--dir", dir])
            .args(args)
            .output()
            .unwrap()
    }
}

/// The project's folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
