//! The webhook message: text for chat services, the same as fields for programs, and a signature.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use crate::clock::UnixTime;
use crate::jobs::notification_digest;
use crate::store::notifications::Notification;

const MAX_LINES: usize = 20;
/// The most jobs listed with all their fields.
const MAX_JOBS: usize = 50;
const MAX_NAME_CHARS: usize = 200;

pub struct WebhookMessage {
    pub body: Vec<u8>,
    pub timestamp: String,
    /// `sha256=…`
    pub signature: String,
}

impl WebhookMessage {
    /// Builds the message for these notifications; `portal` is the portal's own address.
    pub fn from_notifications(notifications: &[Notification], portal: &str, secret: &[u8], now: UnixTime) -> Self {
        let lines = notification_digest::build_digests(notifications);
        let summary = notification_digest::summarize(notifications);
        let mut text: Vec<String> = Vec::new();
        if lines.len() > MAX_LINES {
            text.extend(summary.iter().map(|line| escape_chat(&line.text())));
        } else {
            for line in &lines {
                let on_cluster = if line.cluster.is_empty() { String::new() } else { format!(" on {}", line.cluster) };
                text.push(format!(
                    "{} {portal}{}",
                    escape_chat(&format!("{}{on_cluster}.", line.text().trim_end_matches('.'))),
                    line.href
                ));
            }
        }
        let (groups, about_jobs): (Vec<&Notification>, Vec<&Notification>) =
            notifications.iter().partition(|notification| notification.group_id.is_some());
        let jobs: Vec<_> =
            about_jobs.iter().take(MAX_JOBS).map(|notification| job_json(notification, portal)).collect();
        let alerts: Vec<_> =
            groups.iter().take(MAX_JOBS).map(|notification| alert_json(notification, portal)).collect();
        let ended = summary
            .iter()
            .find(|line| line.kind == notification_digest::NotificationKind::Ended)
            .map(|line| line.counts);
        let ended = ended.unwrap_or_default();
        let count = |kind: &str| notifications.iter().filter(|notification| notification.kind == kind).count();
        let body = json!({
            "text": text.join("\n"),
            "portolan": {
                "version": 1,
                "portal": portal,
                "sent_at": now.iso(),
                "counts": {
                    "started": count("started"),
                    "never": count("never"),
                    "ended": ended.all,
                    "done": ended.done,
                    "failed": ended.failed,
                    "cancelled": ended.cancelled,
                },
                "jobs": jobs,
                "more": about_jobs.len().saturating_sub(MAX_JOBS),
                "alerts": alerts,
            },
        });
        Self::sign(body.to_string().into_bytes(), secret, now)
    }

    /// A message that only confirms that messages arrive.
    pub fn test(portal: &str, secret: &[u8], now: UnixTime) -> Self {
        let text = format!("This is a test message from {portal}. Notifications about your jobs will arrive here.");
        let body =
            json!({ "text": text, "portolan": { "version": 1, "portal": portal, "sent_at": now.iso(), "test": true } });
        Self::sign(body.to_string().into_bytes(), secret, now)
    }

    fn sign(body: Vec<u8>, secret: &[u8], now: UnixTime) -> Self {
        let timestamp = now.0.to_string();
        let signature = signature(secret, &timestamp, &body);
        Self { body, timestamp, signature }
    }
}

/// `sha256=` and the hexadecimal HMAC-SHA-256 of timestamp, dot and body.
fn signature(secret: &[u8], timestamp: &str, body: &[u8]) -> String {
    use std::fmt::Write as _;
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    let mut text = "sha256=".to_owned();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn job_json(notification: &Notification, portal: &str) -> serde_json::Value {
    let id = match notification.task {
        -1 => notification.number.to_string(),
        task => format!("{}_{task}", notification.number),
    };
    let name: String = notification.name.chars().take(MAX_NAME_CHARS).collect();
    json!({
        "kind": notification.kind,
        "state": notification.state,
        "cluster": notification.slug,
        "id": id,
        "name": name,
        "at": notification.at.iso(),
        "url": format!("{portal}/jobs/{}/{id}", notification.slug),
    })
}

/// A usage alert of a group.
fn alert_json(notification: &Notification, portal: &str) -> serde_json::Value {
    let group = notification.group_id.map_or(0, |group| group.0);
    json!({
        "group": group,
        "text": notification.text,
        "at": notification.at.iso(),
        "url": format!("{portal}/groups/{group}/usage"),
    })
}

/// Chat services read `<!channel>` as a mention of everyone; escaping these three characters prevents that.
fn escape_chat(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::NotificationId;

    fn notification(id: i64, name: &str) -> Notification {
        Notification {
            id: NotificationId(id),
            kind: "ended".into(),
            at: UnixTime(1_794_820_320),
            is_read: false,
            number: 100 + id,
            task: -1,
            name: name.into(),
            state: "COMPLETED".into(),
            slug: "fir".into(),
            cluster: "Fir".into(),
            dashboard_id: None,
            group_id: None,
            text: String::new(),
        }
    }

    fn read(message: &WebhookMessage) -> serde_json::Value {
        serde_json::from_slice(&message.body).unwrap()
    }

    #[test]
    fn text_and_fields_say_the_same() {
        let message =
            WebhookMessage::from_notifications(&[notification(1, "align")], "https://p.example", b"s", UnixTime(5));
        let body = read(&message);
        assert_eq!(body["text"], "align completed on Fir. https://p.example/jobs/fir/101");
        assert_eq!(body["portolan"]["counts"]["done"], 1);
        assert_eq!(body["portolan"]["jobs"][0]["url"], "https://p.example/jobs/fir/101");
        assert_eq!(message.timestamp, "5");
    }

    #[test]
    fn alerts_of_groups_are_no_jobs() {
        let text = "def-lab has used 86% of the 100 core hours granted on Fir until 5 Jan 2027.";
        let alert = Notification {
            kind: "group".into(),
            group_id: Some(crate::domain::GroupId(3)),
            text: text.into(),
            number: 0,
            slug: String::new(),
            cluster: String::new(),
            ..notification(1, "")
        };
        let message = WebhookMessage::from_notifications(&[alert], "https://p.example", b"s", UnixTime(5));
        let body = read(&message);
        assert_eq!(body["text"], format!("{text} https://p.example/groups/3/usage"));
        assert_eq!(body["portolan"]["jobs"].as_array().unwrap().len(), 0);
        assert_eq!(body["portolan"]["alerts"][0]["text"], text);
    }

    #[test]
    fn hostile_names_call_nobody_and_stay_json() {
        for name in ["<!channel> \"quoted\" \\ | & <script>", "\u{202e}\u{0}\n\r", &"x".repeat(10_000)] {
            let message =
                WebhookMessage::from_notifications(&[notification(1, name)], "https://p.example", b"s", UnixTime(5));
            let text = read(&message)["text"].as_str().unwrap().to_owned();
            assert!(!text.contains('<') && !text.contains('\n') && !text.contains('\u{202e}'), "{text}");
            assert!(message.body.len() < 4000);
        }
    }

    #[test]
    fn many_are_few_lines() {
        let many: Vec<Notification> = (0..500).map(|id| notification(id, &format!("job {id}"))).collect();
        let message = WebhookMessage::from_notifications(&many, "https://p.example", b"s", UnixTime(5));
        let body = read(&message);
        assert_eq!(body["text"], "500 jobs completed");
        assert_eq!(body["portolan"]["more"], 450);
        assert!(message.body.len() < 60_000, "{}", message.body.len());
    }

    #[test]
    fn the_signature_is_that_of_the_manual() {
        // printf '1.{}' | openssl dgst -sha256 -hmac secret
        assert_eq!(
            signature(b"secret", "1", b"{}"),
            "sha256=1122767b193110cfec322b6f199b599edbf608ed087f2d27afb0b97d99523908"
        );
    }
}
