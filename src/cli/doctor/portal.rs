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

pub(super) async fn check_portal(config: &Config, vault: Option<&Vault>) -> Vec<DoctorFinding> {
    let client = http_client::client_builder(ANSWER_TIMEOUT).build();
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            return vec![DoctorFinding::bad("Portal", format!("No requests can be sent: {error}."))];
        }
    };
    let Some(finding) = check_running(config, &client).await else {
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

async fn check_running(config: &Config, client: &reqwest::Client) -> Option<DoctorFinding> {
    let answer = client.get(format!("http://{}/healthz", config.metrics.listen)).send().await.ok()?;
    let well = answer.status().is_success();
    let text = answer.text().await.unwrap_or_default();
    if well {
        return Some(DoctorFinding::good("Portal", "The portal is running and healthy."));
    }
    let problems: Vec<String> = serde_json::from_str::<serde_json::Value>(&text)
        .ok()
        .and_then(|body| serde_json::from_value(body.get("problems")?.clone()).ok())
        .unwrap_or_default();
    Some(DoctorFinding::bad("Portal", format!("The portal is running, but has problems: {}", problems.join(" "))))
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
    let why = reasons.last().cloned().unwrap_or_else(|| error.to_string());
    if is_https && (why.contains("certificate") || why.contains("UnknownIssuer")) {
        return format!("{url} has no valid certificate ({why}). Install one in the proxy, for example with certbot.");
    }
    format!("{url} can't be reached from here ({why}). Check the host name, the proxy and the firewall.")
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
