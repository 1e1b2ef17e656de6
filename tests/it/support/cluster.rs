//! The real test cluster, started by `script/test` before these tests run.

use std::path::PathBuf;
use std::process::{Command, Output};

use portolan::domain::RemotePath;

use super::wait::note_seen;

/// The running test cluster.
pub struct Cluster {
    facts: serde_json::Value,
}

impl Cluster {
    /// The cluster that `PORTOLAN_CLUSTER_DIR` names.
    pub fn get() -> Self {
        let dir =
            std::env::var_os("PORTOLAN_CLUSTER_DIR").map_or_else(|| root().join("var/test/cluster"), PathBuf::from);
        let path = dir.join("cluster.json");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}. Run script/test, or script/cluster up", path.display()));
        Self { facts: serde_json::from_str(&text).unwrap() }
    }

    /// A port: `key`, `mfa`, `duo`, `password`, `robot` or `keypage`.
    pub fn port(&self, kind: &str) -> u16 {
        u16::try_from(self.facts["ports"][kind].as_u64().unwrap()).unwrap()
    }

    /// What `cluster.json` says of a person.
    pub fn person(&self, name: &str) -> &serde_json::Value {
        let people = self.facts["users"].as_array().unwrap();
        people.iter().find(|person| person["name"] == name).unwrap()
    }

    /// The lines of its host keys, `ssh-ed25519 AAAA…`.
    pub fn host_keys(&self) -> Vec<String> {
        let keys = self.facts["host_keys"].as_array().unwrap();
        keys.iter().map(|key| key["line"].as_str().unwrap().to_owned()).collect()
    }

    /// Installs a public key as the centre's key page does.
    pub fn install_key(&self, user: &str, line: &str) {
        let output = self.script(&["user", "key", user, line]);
        assert!(output.status.success(), "{output:?}");
    }

    /// The one-time code of this moment.
    pub fn code(&self, user: &str) -> String {
        let output = self.script(&["user", "totp", user]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The fingerprint of its host key.
    pub fn fingerprint(&self) -> &str {
        self.facts["host_keys"][0]["fingerprint"].as_str().unwrap()
    }

    /// Its folder; on its own hosts it is `/harbour`.
    pub fn dir(&self) -> PathBuf {
        self.facts["dir"].as_str().unwrap().into()
    }

    /// How many processes on the cluster have exactly this command line.
    pub fn count_processes(&self, line: &str) -> usize {
        let found = self.script(&["exec", "pgrep", "-fxc", line]);
        String::from_utf8(found.stdout).unwrap().trim().parse().unwrap()
    }

    /// The version of its Slurm: `22.05.8` on Debian 12, `24.11.5` on Debian 13.
    pub fn slurm_version(&self) -> String {
        let told = self.script(&["exec", "sinfo", "--version"]);
        let told = String::from_utf8(told.stdout).unwrap();
        told.split_whitespace().next_back().unwrap().to_owned()
    }

    /// Runs `script/cluster`.
    pub fn script(&self, args: &[&str]) -> Output {
        let output =
            Command::new(root().join("script/cluster")).arg("--dir").arg(self.dir()).args(args).output().unwrap();
        note_seen(|| format!("script/cluster {args:?}: {output:?}"));
        output
    }
}

/// The project's folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A path on the cluster.
pub fn remote_path(path: &str) -> RemotePath {
    RemotePath::parse(path.as_bytes()).unwrap()
}
