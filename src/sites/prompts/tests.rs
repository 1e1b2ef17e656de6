//! The exact texts of real servers, and texts that should fool nobody.

use proptest::prelude::*;

use super::*;
use crate::text::{MAX_LINES, is_hidden};

const DUO: &str = "Duo two-factor login for name\n\nEnter a passcode or select one of the following options:\n\n \
                   1. Duo Push to My phone (iOS)\n\nPasscode or option (1-1): ";

fn kind(raw: &str) -> PromptKind {
    LoginPrompt::parse(raw).kind
}

#[test]
fn duo_lists_its_choices() {
    let prompt = LoginPrompt::parse(&format!("(alice@fir.alliancecan.ca) {DUO}"));
    assert_eq!(prompt.hop.as_deref(), Some("fir.alliancecan.ca"));
    assert!(prompt.text.starts_with("Duo two-factor login for name\n"), "{}", prompt.text);
    let phone = PromptChoice { answer: "1".to_owned(), label: "Duo Push to My phone (iOS)".to_owned(), is_push: true };
    assert_eq!(prompt.kind, PromptKind::DuoMenu { choices: vec![phone] });
    assert!(!prompt.is_secret());
    assert_eq!(prompt.input_mode(), "text", "a security key types letters");

    let PromptKind::DuoMenu { choices } = kind(
        "Duo two-factor login for jdoe\r\n\r\nEnter a passcode or select one of the following options:\r\n\r\n \
         1. Duo Push to XXX-XXX-3089\r\n 2. Phone call to XXX-XXX-3089\r\n 3. SMS passcodes to XXX-XXX-3089\r\n\r\n\
         Passcode or option (1-3): ",
    ) else {
        panic!("not a menu")
    };
    let pushes: Vec<_> = choices.iter().map(|c| (c.answer.as_str(), c.is_push)).collect();
    assert_eq!(pushes, [("1", true), ("2", false), ("3", false)]);
}

#[test]
fn a_menu_without_choices_takes_a_code() {
    assert_eq!(kind("Passcode or option (1-1): "), PromptKind::OneTimeCode);
}

#[test]
fn a_one_time_password_is_a_code() {
    let prompt = LoginPrompt::parse("(hicham@login.olivia.sigma2.no) One-time password (OATH) for `hicham': ");
    assert_eq!(prompt.kind, PromptKind::OneTimeCode);
    assert_eq!(prompt.hop.as_deref(), Some("login.olivia.sigma2.no"));
    assert_eq!(prompt.text, "One-time password (OATH) for `hicham':");
    assert_eq!(prompt.input_mode(), "numeric");
    assert_eq!(kind("(hicham@login.olivia.sigma2.no) Password: "), PromptKind::Password);
}

#[test]
fn other_words_for_a_code() {
    for raw in [
        "Verification code: ",
        "(alice@[127.0.0.1]:2202) Verification code: ",
        "OTP:",
        "Enter PASSCODE: ",
        "YubiKey for `alice':",
        "Second Factor (optional): ",
        "Your password will expire in 3 days.\nVerification code: ",
        "Please enter your authentication code\n> ",
        "One-time password (OATH) for `newpassword': ",
        "Code de vérification :",
    ] {
        assert_eq!(kind(raw), PromptKind::OneTimeCode, "{raw:?}");
    }
    assert_eq!(LoginPrompt::parse("YubiKey for `alice':").input_mode(), "text");
}

#[test]
fn passwords_old_and_new() {
    for (raw, expected) in [
        ("alice@login1's password: ", PromptKind::Password),
        ("alice@token.example.org's password: ", PromptKind::Password),
        ("Password for alice@otp.example.org: ", PromptKind::Password),
        ("Mot de passe : ", PromptKind::Password),
        ("First Factor: ", PromptKind::Password),
        ("newton@login1's password: ", PromptKind::Password),
        (
            "You are required to change your password immediately (administrator enforced).\nCurrent password: ",
            PromptKind::CurrentPassword,
        ),
        ("(current) UNIX password: ", PromptKind::CurrentPassword),
        ("New password: ", PromptKind::NewPassword),
        ("Enter new UNIX password: ", PromptKind::NewPassword),
        ("BAD PASSWORD: The password is too short\nNew password: ", PromptKind::NewPassword),
        ("Retype new password: ", PromptKind::RetypePassword),
        ("Re-enter new password: ", PromptKind::RetypePassword),
        ("Confirm new password:", PromptKind::RetypePassword),
        ("Enter passphrase for key '/home/alice/.ssh/id_ed25519': ", PromptKind::Passphrase),
    ] {
        assert_eq!(kind(raw), expected, "{raw:?}");
        assert!(LoginPrompt::parse(raw).is_secret(), "{raw:?}");
    }
}

#[test]
fn what_is_not_clear_stays_open() {
    for raw in ["", "   \n ", "Enter your password followed by your OTP: ", "Favourite colour? "] {
        assert_eq!(kind(raw), PromptKind::Other, "{raw:?}");
        assert!(LoginPrompt::parse(raw).is_secret());
    }
    let host_key = "Are you sure you want to continue connecting (yes/no/[fingerprint])? ";
    assert_eq!(kind(host_key), PromptKind::YesNo);
}

#[test]
fn the_prefix_tells_who_asks() {
    for (raw, hop, text) in [
        ("(alice@login1) Password: ", Some("login1"), "Password:"),
        ("(alice@realm@login1) Password: ", Some("login1"), "Password:"),
        ("(alice@login1) \n\nPassword: ", Some("login1"), "Password:"),
        ("alice@login1's password: ", Some("login1"), "alice@login1's password:"),
        ("(current) UNIX password: ", None, "(current) UNIX password:"),
        ("(not one@ host) Password: ", None, "(not one@ host) Password:"),
        ("Password (alice@elsewhere): ", None, "Password (alice@elsewhere):"),
        ("(a@b) (root@c) Password: ", Some("b"), "(root@c) Password:"),
    ] {
        let prompt = LoginPrompt::parse(raw);
        assert_eq!(prompt.hop.as_deref(), hop, "{raw:?}");
        assert_eq!(prompt.text, text, "{raw:?}");
    }
}

#[test]
fn tricks_and_floods_are_taken_out() {
    let prompt = LoginPrompt::parse("(a@b) \u{1B}[2J\u{1B}[31mPass\u{200B}word\u{202E}:\u{7} ");
    assert_eq!((prompt.text.as_str(), &prompt.kind), ("Password:", &PromptKind::Password));
    assert!(!prompt.is_truncated);
    let flood = LoginPrompt::parse(&format!("{}Password: ", "x".repeat(100_000)));
    assert!(flood.is_truncated && flood.text.chars().count() == MAX_PROMPT_CHARS);
    assert!(LoginPrompt::parse(&"a\n".repeat(200)).is_truncated);
}

#[test]
fn every_kind_has_words_for_people() {
    for raw in [DUO, "OTP:", "Password:", "New password:", "Retype new password:", "?", "(y/n)"] {
        let prompt = LoginPrompt::parse(raw);
        assert!(prompt.help().ends_with('.') && !prompt.help().contains("  "), "{}", prompt.help());
        assert!(!prompt.title().ends_with('.'));
        assert!(prompt.retry_help().ends_with('.'));
    }
}

proptest! {
    #[test]
    fn whatever_a_server_sends_is_bounded_and_plain(
        raw in "(\\PC|[\u{0}-\u{1F}\u{7F}-\u{9F}]|\n|\u{1B}\\[|\u{202E}| 1\\. |`|'|@|\\(|\\)|password|option){0,400}"
    ) {
        let prompt = LoginPrompt::parse(&raw);
        prop_assert!(prompt.text.chars().count() <= MAX_PROMPT_CHARS);
        prop_assert!(prompt.text.lines().count() <= MAX_LINES);
        prop_assert!(!prompt.text.chars().any(|c| c != '\n' && is_hidden(c)));
        if let Some(hop) = &prompt.hop {
            prop_assert!(!hop.chars().any(|c| is_hidden(c) || c.is_whitespace()));
        }
        if let PromptKind::DuoMenu { choices } = &prompt.kind {
            prop_assert!(choices.iter().all(|c| !c.label.contains('\n') && c.answer.len() <= 2));
        }
        prop_assert!(!prompt.title().is_empty() && !prompt.input_mode().is_empty());
    }
}
