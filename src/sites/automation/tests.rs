//! Lines for the key page, the letter to support, and test results.

use super::*;
use crate::sites::presets;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHRLUH6NPvy9Qqezjh/qEshDnKHI+XaGmleb1letsoUC alice@portal";

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_key_line_has_all_three_restrictions() {
    let line = authorized_keys_line(&[address("203.0.113.7")], "/home/alice/portolan-commands", KEY).unwrap();
    assert_eq!(line, format!("restrict,from=\"203.0.113.7\",command=\"/home/alice/portolan-commands\" {KEY}"));
    let both = [address("203.0.113.7"), address("2001:db8::7")];
    let line = authorized_keys_line(&both, "bin/portolan-commands", KEY).unwrap();
    assert!(line.starts_with("restrict,from=\"203.0.113.7,2001:db8::7\",command=\"bin/"), "{line}");
    let mapped = authorized_keys_line(&[address("::ffff:203.0.113.7")], "/x", KEY).unwrap();
    assert!(mapped.contains("from=\"203.0.113.7\""), "{mapped}");
    assert!(authorized_keys_line(&[address("127.0.0.1")], "/x", KEY).is_ok(), "a rehearsal");
}

#[test]
fn what_would_not_work_is_refused_with_a_reason() {
    let out = [address("203.0.113.7")];
    assert_eq!(authorized_keys_line(&[], "/x", KEY), Err(AutomationKeyLineError::NoAddress));
    for inside in ["10.0.0.5", "192.168.1.2", "172.16.0.1", "100.64.0.1", "0.0.0.0", "fe80::1", "fd00::1", "::"] {
        let error = authorized_keys_line(&[address(inside)], "/x", KEY).unwrap_err();
        assert_eq!(error, AutomationKeyLineError::InsideAddress(address(inside)));
        assert!(error.to_string().starts_with(inside));
    }
    for command in ["", " ", "/x\" ssh-rsa", "/x\ny", "-x", "/x;id", "/x $(id)", "/x ", "/é"] {
        assert_eq!(authorized_keys_line(&out, command, KEY), Err(AutomationKeyLineError::Command), "{command:?}");
    }
    let (kind, body) = ("ssh-ed25519", KEY.split(' ').nth(1).unwrap());
    for key in [
        String::new(),
        kind.to_owned(),
        format!("ssh-rsa {body}"),
        format!("{kind} not/base64!"),
        format!("restrict,from=\"*\" {KEY}"),
        format!("{KEY}\n{KEY}"),
        "ssh-dss AAAAB3NzaC1kc3M=".to_owned(),
    ] {
        assert_eq!(authorized_keys_line(&out, "/x", &key), Err(AutomationKeyLineError::PublicKey), "{key:?}");
    }
    let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n";
    assert_eq!(authorized_keys_line(&out, "/x", private), Err(AutomationKeyLineError::PrivateKey));
    let odd = format!("{kind} {body} \"odd\"");
    assert!(authorized_keys_line(&out, "/x", &odd).unwrap().ends_with(body), "an odd comment is dropped");
}

#[test]
fn every_outcome_is_explained_in_sentences() {
    use AutomationTestOutcome as O;
    let refused = O::CommandRefused("sacct".to_owned());
    for outcome in [O::Works, O::NotEnrolled, O::KeyNotAccepted, O::Closed, O::AsksForSecondFactor, O::NoSlurm, refused]
    {
        let sentences = explain_outcome(&outcome);
        assert!(!sentences.is_empty());
        assert!(sentences.iter().all(|s| !s.contains("  ")), "{sentences:?}");
    }
}

#[test]
fn the_letter_says_what_runs_from_where_and_how_often() {
    let request = AutomationRequestLetter {
        person: "Alice Smith",
        user_name: "alice",
        portal: "portolan.example.org",
        addresses: &[address("203.0.113.7"), address("2001:db8::7")],
        command: "/home/alice/portolan-commands",
    };
    let site = presets().iter().find(|site| site.name.as_str() == "rorqual").unwrap();
    let text = access_request_letter(site, &request).unwrap();
    for part in [
        "robot.rorqual.alliancecan.ca",
        "alice",
        "203.0.113.7, 2001:db8::7",
        "from=\"203.0.113.7,2001:db8::7\"",
        "sacctmgr",
        "per minute",
        "Alice Smith",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    let saga = presets().iter().find(|site| site.name.as_str() == "saga").unwrap();
    assert_eq!(access_request_letter(saga, &request), None);
}
