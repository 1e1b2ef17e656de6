//! The mark with which `portolan doctor` proves to the running portal that it has the same master key, so that the
//! portal may report how it sees the request.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::clock::UnixTime;
use crate::vault::{Vault, VaultPurpose};

/// The header that carries the mark.
pub const PROBE_HEADER: &str = "x-portolan-probe";

/// The header by which the dashboard origin identifies itself.
pub const DASHBOARD_ORIGIN_HEADER: &str = "x-portolan-dashboards";

/// Seconds for which a mark is valid, before and after it was made.
const PROBE_VALID_SECS: i64 = 60;

pub fn sign_probe(vault: &Vault, now: UnixTime) -> String {
    let signature = vault.sign(VaultPurpose::DoctorProbe, now.0.to_string().as_bytes());
    format!("{}.{}", now.0, URL_SAFE_NO_PAD.encode(signature))
}

/// A data folder's full path, by which the doctor recognises the portal that runs on it.
pub fn data_dir_name(dir: &Path) -> String {
    dir.canonicalize().unwrap_or_else(|_| dir.to_owned()).display().to_string()
}

/// Whether a mark was made just now under our master key.
pub fn verify_probe(vault: &Vault, mark: &str, now: UnixTime) -> bool {
    let Some((time, signature)) = mark.split_once('.') else {
        return false;
    };
    let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else {
        return false;
    };
    let recent = time.parse::<i64>().is_ok_and(|time| now.since(UnixTime(time)).abs() <= PROBE_VALID_SECS);
    recent && vault.verify(VaultPurpose::DoctorProbe, time.as_bytes(), &signature)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::MasterKey;

    #[test]
    fn a_mark_is_good_for_a_minute_under_one_key() {
        let vault = Vault::new(MasterKey::generate().unwrap());
        let other = Vault::new(MasterKey::generate().unwrap());
        let mark = sign_probe(&vault, UnixTime(1000));
        assert!(verify_probe(&vault, &mark, UnixTime(1060)));
        assert!(!verify_probe(&vault, &mark, UnixTime(1061)));
        assert!(!verify_probe(&other, &mark, UnixTime(1000)));
        assert!(!verify_probe(&vault, &mark.replace("1000", "1001"), UnixTime(1000)));
        assert!(!verify_probe(&vault, "x", UnixTime(1000)));
    }
}
