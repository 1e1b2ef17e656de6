//! Checks the running portal from outside: through the proxy, over TLS, at its public address.

use std::time::Duration;

use serde::Deserialize;

use super::DoctorFinding;
use crate::clock::Clock;
use crate::config::Config;
use crate::http_client;
use crate::probe::{self, DASHBOARD_ORIGIN_HEADER};
use crate::vault::Vault;

/// A portal that takes longer than this counts as down.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// What the portal reports about the doctor's own request.
#[derive(Debug, Deserialize)]
struct DoctorProbeReply {
    forwarded_proto: Option<String>,
    forwarded_for: Option<String>,
    client_address: String,
}

/// What a portal reports about itself at the address for monitoring.
#[derive(Debug, Deserialize)]
struct InstanceReply {
    version: String,
    #[serde(default)]
    problems: Vec<String>,
    /// Reported only to a doctor with the same master key.
    data_dir: Option<String>,
}

pub(super) async fn check_portal(config: &Config, vault: Option<&Vault>) -> Vec<DoctorFinding> {
    // Building fails only without any certificate authority.
    let Ok(client) = http_client::client_builder(ANSWER_TIMEOUT).build() else {
        return vec![DoctorFinding::bad(
            "Portal",
            "No requests can be sent, because no certificate authorities were found. Install the package ca-certificates, or check the file that SSL_CERT_FILE names.",
        )];
    };
    let Some(finding) = check_running(config, &client, vault).await else {
        return vec![DoctorFinding::warning(
            "Portal",
            "The portal isn't running, so its public address wasn't checked. Start it with: portolan serve",
        )];
    };
    let mut findings = vec![finding];
    if let Some(vault) = vault {
        findings.extend(check_public_address(config, &client, vault).await);
    }
    findings.push(check_dashboard_origin(config, &client).await);
    findings.extend(check_tls(config));
    findings
}

/// Asks whoever listens for monitoring; none if nobody does.
async fn check_running(config: &Config, client: &reqwest::Client, vault: Option<&Vault>) -> Option<DoctorFinding> {
    let mut request = client.get(format!("http://{}/healthz", config.metrics.listen));
    if let Some(vault) = vault {
        request = request.header(probe::PROBE_HEADER, probe::sign_probe(vault, Clock::system().now()));
    }
    let answer = request.send().await.ok()?;
    let is_well = answer.status().is_success();
    let text = answer.text().await.unwrap_or_default();
    let reply = serde_json::from_str::<InstanceReply>(&text).ok();
    Some(judge_instance(config, reply, is_well, vault.is_some()))
}

fn judge_instance(config: &Config, reply: Option<InstanceReply>, is_well: bool, can_prove: bool) -> DoctorFinding {
    const WHAT: &str = "Portal";
    let address = config.metrics.listen;
    let Some(reply) = reply else {
        return DoctorFinding::bad(
            WHAT,
            format!("Something other than a portal responds at {address}. Check metrics.listen."),
        );
    };
    let own = probe::data_dir_name(&config.data_dir);
    let is_same_version = reply.version == env!("CARGO_PKG_VERSION");
    // Versions before 0.3 report no folder.
    let is_other = reply.data_dir.as_ref().map_or(can_prove && is_same_version, |theirs| *theirs != own);
    if is_other {
        let theirs =
            reply.data_dir.map_or_else(|| "another master key".to_owned(), |dir| format!("the data folder {dir}"));
        return DoctorFinding::bad(
            WHAT,
            format!(
                "Another portal responds at {address}: version {} with {theirs}. Run doctor with the same --config and PORTOLAN_* variables as the portal that you mean.",
                reply.version
            ),
        );
    }
    if !is_well {
        let problems = reply.problems.join(" ");
        return DoctorFinding::bad(WHAT, format!("The portal is running, but has problems: {problems}"));
    }
    if !is_same_version {
        return DoctorFinding::warning(
            WHAT,
            format!(
                "The portal is running and healthy, but is version {} and this program is {}. Restart the portal.",
                reply.version,
                env!("CARGO_PKG_VERSION")
            ),
        );
    }
    DoctorFinding::good(
        WHAT,
        format!("The portal is running and healthy: version {}, checked at {address}.", reply.version),
    )
}

async fn check_public_address(config: &Config, client: &reqwest::Client, vault: &Vault) -> Vec<DoctorFinding> {
    const WHAT: &str = "Public address";
    let url = &config.portal.public_url;
    let mark = probe::sign_probe(vault, Clock::system().now());
    let answer = match client.get(url.join("/healthz")).header(probe::PROBE_HEADER, mark).send().await {
        Ok(answer) => answer,
        Err(error) => {
            return vec![DoctorFinding::bad(WHAT, explain_unreachable(url.is_https(), &error, &url.to_string()))];
        }
    };
    let status = answer.status();
    if status.as_u16() == 421 {
        return vec![DoctorFinding::bad(
            WHAT,
            format!(
                "The portal is reachable at {url}, but receives another host name. Configure the proxy to pass on the Host header unchanged."
            ),
        )];
    }
    let Ok(seen) = answer
        .text()
        .await
        .map_err(drop)
        .and_then(|text| serde_json::from_str::<DoctorProbeReply>(&text).map_err(drop))
    else {
        return vec![DoctorFinding::bad(
            WHAT,
            format!(
                "Something other than this portal responds at {url} (status {status}). Check portal.public_url and the proxy."
            ),
        )];
    };
    let mut findings = vec![DoctorFinding::good(WHAT, format!("The portal is reachable at {url}."))];
    findings.extend(check_proxy(config, &seen));
    findings
}

/// Dashboards have their own origin, which must lead here too.
async fn check_dashboard_origin(config: &Config, client: &reqwest::Client) -> DoctorFinding {
    const WHAT: &str = "Dashboards";
    let url = &config.dashboards.public_url;
    match client.get(url.join("/")).send().await {
        Err(error) => DoctorFinding::bad(WHAT, explain_unreachable(url.is_https(), &error, &url.to_string())),
        Ok(answer) if answer.headers().contains_key(DASHBOARD_ORIGIN_HEADER) => {
            DoctorFinding::good(WHAT, format!("Dashboards are reachable at {url}."))
        }
        Ok(_) => DoctorFinding::bad(
            WHAT,
            format!(
                "Something other than this portal's dashboards responds at {url}. Check dashboards.public_url and the proxy."
            ),
        ),
    }
}

/// The cause is in the error's source chain; its first line alone says little.
fn explain_unreachable(is_https: bool, error: &reqwest::Error, url: &str) -> String {
    let mut reasons = Vec::new();
    let mut source: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(reason) = source {
        reasons.push(reason.to_string());
        source = reason.source();
    }
    let why = reasons.last().cloned().unwrap_or_else(|| "there was no answer".to_owned());
    match certificate_problem(&why) {
        Some(problem) if is_https => format!("The certificate of {url} isn't accepted: {problem}"),
        _ => {
            let why = reason_in_words(&why);
            format!("{url} can't be reached from here: {why}. Check the host name, the proxy and the firewall.")
        }
    }
}

/// What is wrong with a certificate and what to do. The TLS library's own words are names from its source code.
fn certificate_problem(why: &str) -> Option<&'static str> {
    if !why.contains("certificate") {
        return None;
    }
    Some(if why.contains("UnknownIssuer") {
        "this machine doesn't know the authority that issued it. Install a certificate from a public authority in the proxy, for example with certbot. If it comes from your own CA, set SSL_CERT_FILE (see \u{201c}Your own CA\u{201d} in ADMIN.md)."
    } else if why.contains("not valid yet") || why.contains("NotValidYet") {
        "it isn't valid yet. Check the clock of this machine and of the proxy."
    } else if why.contains("expired") || why.contains("Expired") {
        "it has expired. Renew it in the proxy."
    } else if why.contains("not valid for name") || why.contains("NotValidForName") {
        "it was issued for another host name. Install one for this name in the proxy."
    } else {
        "the proxy presents one that doesn't pass the checks. Install a new one, for example with certbot."
    })
}

/// The operating system's words without the number that Rust adds.
fn reason_in_words(why: &str) -> String {
    let why = why.split(" (os error").next().unwrap_or(why);
    let mut letters = why.trim_end_matches('.').chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn check_proxy(config: &Config, seen: &DoctorProbeReply) -> Vec<DoctorFinding> {
    const WHAT: &str = "Proxy";
    let mut findings = Vec::new();
    match (&seen.forwarded_for, config.proxy.trusted.is_empty()) {
        (Some(_), true) => findings.push(DoctorFinding::warning(
            WHAT,
            format!(
                "A proxy forwards visitors' addresses, but proxy.trusted is empty, so every visitor appears to come from {} and shares one sign-in limit. Set proxy.trusted to the proxy's address.",
                seen.client_address
            ),
        )),
        (None, false) => findings.push(DoctorFinding::warning(
            WHAT,
            "proxy.trusted is set, but there was no X-Forwarded-For header. Configure the proxy to send it, and make sure that nobody can bypass the proxy.",
        )),
        (Some(_), false) | (None, true) => {
            findings.push(DoctorFinding::good(WHAT, format!("The portal sees visitors as {}.", seen.client_address)));
        }
    }
    let https = config.portal.public_url.is_https();
    if https && seen.forwarded_proto.as_deref().is_some_and(|proto| proto != "https") {
        findings.push(DoctorFinding::warning(
            WHAT,
            "portal.public_url starts with https, but the proxy was reached over plain http. Configure it to redirect http to https.",
        ));
    }
    findings
}

fn check_tls(config: &Config) -> Option<DoctorFinding> {
    let url = &config.portal.public_url;
    if url.is_https() || url.is_local() {
        return None;
    }
    Some(DoctorFinding::bad(
        "TLS",
        format!(
            "{url} isn't encrypted, so passwords can be intercepted. Put a proxy with a certificate in front of the portal and use https."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::DoctorVerdict;

    #[test]
    fn certificates_are_explained_without_names_from_source_code() {
        for (why, words) in [
            ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
            ("invalid peer certificate: Expired", "has expired"),
            ("invalid peer certificate: certificate expired: verification time 1 (UNIX), but", "has expired"),
            ("invalid peer certificate: NotValidForName", "another host name"),
            ("invalid peer certificate: certificate not valid for name \"x\"; certificate is", "another host name"),
            ("invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))", "Install a new one"),
        ] {
            let problem = certificate_problem(why).unwrap();
            assert!(problem.contains(words), "{why}: {problem}");
            assert!(!problem.contains("Unknown") && !problem.contains("Other("), "{problem}");
        }
        assert_eq!(certificate_problem("Connection refused (os error 111)"), None);
        assert_eq!(reason_in_words("Connection refused (os error 111)"), "connection refused");
    }

    #[test]
    fn another_portal_is_not_taken_for_this_one() {
        let config = Config::load(None, std::iter::empty()).unwrap();
        let reply = |data_dir: Option<String>| {
            Some(InstanceReply { version: env!("CARGO_PKG_VERSION").into(), problems: Vec::new(), data_dir })
        };
        let own = probe::data_dir_name(&config.data_dir);
        let good = judge_instance(&config, reply(Some(own)), true, true);
        assert_eq!(good.verdict, DoctorVerdict::Good, "{}", good.words);
        for data_dir in [None, Some("/srv/other".to_owned())] {
            let other = judge_instance(&config, reply(data_dir), true, true);
            assert_eq!(other.verdict, DoctorVerdict::Bad);
            assert!(other.words.starts_with("Another portal responds at"), "{}", other.words);
        }
        assert_eq!(judge_instance(&config, reply(None), true, false).verdict, DoctorVerdict::Good, "no proof asked");
    }
}
