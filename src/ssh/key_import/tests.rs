use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use secrecy::ExposeSecret as _;

use super::*;
use crate::ssh::keys::tests::verifies;
use crate::ssh::keys::{PublicKey, RSA_SHA2_512, SshSignError};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/keys").join(name)
}

fn file(name: &str) -> String {
    std::fs::read_to_string(folder(name)).unwrap()
}

/// Names of the keys in a folder, without public halves.
fn names(name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder(name)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.contains('.'))
        .collect();
    names.sort();
    names
}

fn passphrase() -> SecretString {
    SecretString::from("harbour light")
}

fn error(text: &str) -> KeyImportError {
    import(text, Some(&passphrase())).unwrap_err()
}

/// The same file with its body changed.
fn patched(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let text = file(name);
    let lines: Vec<&str> = text.lines().collect();
    let (begin, end) = (lines[0], lines[lines.len() - 1]);
    let mut body = STANDARD.decode(lines[1..lines.len() - 1].concat()).unwrap();
    change(&mut body);
    format!("{begin}\n{}\n{end}\n", STANDARD.encode(body))
}

fn replace(body: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let at: Vec<usize> = (0..body.len()).filter(|at| body[*at..].starts_with(from)).collect();
    assert_eq!(at.len(), 1, "the bytes occur once");
    body[at[0]..][..to.len()].copy_from_slice(to);
}

#[test]
fn every_format_is_accepted_and_signs() {
    let names = names("accepted");
    assert!(names.len() >= 30);
    for name in names {
        let text = file(&format!("accepted/{name}"));
        let key = import(&text, Some(&passphrase())).unwrap_or_else(|error| panic!("{name}: {error}"));
        let public = PublicKey::parse(&file(&format!("accepted/{name}.pub"))).unwrap();
        assert_eq!(key.public().blob(), public.blob(), "{name}");
        if name != "openssh_odd_comment" && name.starts_with("openssh") {
            assert_eq!(key.public(), &public, "{name}: its comment too");
        }

        let signature = key.sign(b"data", RSA_SHA2_256).unwrap();
        assert!(verifies(&public, b"data", &signature), "{name}");
        assert!(!verifies(&public, b"date", &signature), "{name}");
        let stored = PrivateKey::from_bytes(&key.to_bytes().unwrap()).unwrap();
        assert_eq!(stored.public(), key.public(), "{name}");
        assert!(verifies(&public, b"data", &stored.sign(b"data", RSA_SHA2_512).unwrap()), "{name}");

        let expected = match name.split('_').nth(1).unwrap() {
            "rsa" if name.contains("4096") => "RSA 4096 bits",
            "rsa" => "RSA 3072 bits",
            "p256" | "scrypt" => "ECDSA P-256",
            "p384" | "sha512" => "ECDSA P-384",
            "p521" => "ECDSA P-521",
            _ => "Ed25519",
        };
        assert_eq!(key.public().kind(), expected, "{name}");
        if expected.starts_with("RSA") {
            assert!(matches!(key.sign(b"data", 0), Err(SshSignError::Sha1Refused)));
        } else {
            assert!(verifies(&public, b"data", &key.sign(b"data", 0).unwrap()));
        }
        if name.ends_with("_locked") {
            let wrong = SecretString::from("harbour lights");
            assert_eq!(import(&text, Some(&wrong)).unwrap_err(), KeyImportError::WrongPassphrase);
            assert_eq!(import(&text, None).unwrap_err(), KeyImportError::PassphraseNeeded);
            let empty = SecretString::from("");
            assert_eq!(import(&text, Some(&empty)).unwrap_err(), KeyImportError::PassphraseNeeded);
        } else {
            assert!(import(&text, None).is_ok(), "{name}");
        }
    }
}

#[test]
fn every_refusal_has_its_own_reason_and_quotes_nothing() {
    for name in names("refused") {
        let text = file(&format!("refused/{name}"));
        let expected = match name.split('_').next().unwrap() {
            "certificate" => KeyImportError::Certificate,
            "dsa" => KeyImportError::Dsa,
            "encryption" => KeyImportError::OtherEncryption,
            "garbage" => KeyImportError::NotAKey,
            "kind" => KeyImportError::OtherKind,
            "legacy" => KeyImportError::LegacyEncryption,
            "public" => KeyImportError::PublicKey,
            "putty" => KeyImportError::Putty,
            "rsa" => KeyImportError::RsaTooShort { bits: 2048 },
            "security" => KeyImportError::SecurityKey,
            "several" => KeyImportError::SeveralKeys,
            other => panic!("no reason is called {other}"),
        };
        let error = error(&text);
        assert_eq!(error, expected, "{name}");
        assert_eq!(import(&text, None).unwrap_err(), expected, "{name} without a passphrase");
        let words = text.split_whitespace().filter(|word| word.len() > 20);
        for word in words.chain([passphrase().expose_secret()]) {
            assert!(!format!("{error} {error:?}").contains(word), "{name}");
        }
    }
}

#[test]
fn white_space_from_forms_and_clipboards_does_not_matter() {
    for name in ["openssh_ed25519", "openssh_rsa_3072", "pem_p256_parameters", "pkcs8_ed25519"] {
        let text = file(&format!("accepted/{name}"));
        let public = import(&text, None).unwrap().public().clone();
        for variant in [
            text.replace('\n', "\r\n"),
            text.replace('\n', "\r"),
            text.replace('\n', " "),
            text.replace('\n', "\n  "),
            text.trim_end().to_owned(),
            format!("\u{feff}\n\n \t{text}\n\n"),
            format!("Bag Attributes\n    friendlyName: x\n{text}"),
            format!("{text}{}\n", public.to_line()),
        ] {
            assert_eq!(import(&variant, None).unwrap().public(), &public, "{name}");
        }
    }
}

#[test]
fn a_comment_from_a_file_stays_on_its_line() {
    let key = import(&file("accepted/openssh_odd_comment"), None).unwrap();
    assert_eq!(key.public().comment(), "caf\u{fffd} ssh-rsa AAAA two lines");
}

#[test]
fn nonsense_is_not_a_key() {
    for text in ["", " \n", "hello", "ssh-keygen -t ed25519", "\0\0\0", "-----", "----- BEGIN x"] {
        assert_eq!(error(text), KeyImportError::NotAKey, "{text:?}");
    }
    let whole = file("accepted/openssh_ed25519");
    for text in [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n%%%%\n-----END PRIVATE KEY-----",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----",
        &whole[..whole.len() / 2],
        &whole.replace("END OPENSSH", "END RSA"),
    ] {
        assert_eq!(error(text), KeyImportError::Damaged, "{text:?}");
    }
    assert_eq!(error(&format!("{whole}{}", " ".repeat(MAX_KEY_FILE_BYTES))), KeyImportError::TooLong);
}

/// Each of these would keep a processor busy for minutes, or forever.
#[test]
fn absurd_costs_are_refused_before_they_are_paid() {
    for rounds in [[0, 0, 1, 1], [0x7f, 0xff, 0xff, 0xff], [0xff; 4]] {
        let bcrypt = patched("accepted/openssh_rounds_locked", |body| {
            replace(body, &[0, 0, 0, 32, 0, 0, 0, 1], &[&rounds[..], &[0, 0, 0, 1]].concat());
        });
        assert_eq!(error(&bcrypt), KeyImportError::TooManyRounds);
    }
    let pbkdf2 = patched("accepted/pkcs8_sha512_locked", |body| {
        replace(body, &[2, 3, 0, 0x9c, 0x40], &[2, 3, 0x7f, 0xff, 0xff]);
    });
    assert_eq!(error(&pbkdf2), KeyImportError::TooManyRounds);
    let scrypt = patched("accepted/pkcs8_scrypt_locked", |body| {
        replace(body, &[2, 1, 8, 2, 1, 1], &[2, 1, 0x7f, 2, 1, 0x7f]);
    });
    assert_eq!(error(&scrypt), KeyImportError::TooManyRounds);
}

#[test]
fn several_keys_in_one_container_are_several_keys() {
    let several = patched("accepted/openssh_ed25519", |body| {
        replace(body, &[0, 0, 0, 1, 0, 0, 0, 51], &[0, 0, 0, 2, 0, 0, 0, 51]);
    });
    assert_eq!(error(&several), KeyImportError::SeveralKeys);
}

#[test]
fn halves_that_do_not_belong_together_are_damage() {
    use crate::ssh::keys::build;
    use ssh_key::EcdsaCurve::{NistP256, NistP384, NistP521};
    let mismatch = Some(KeyBuildError::Mismatch);
    assert_eq!(build::ed25519(&[1; 32], Some(&[2; 32])).err(), mismatch);
    assert_eq!(build::ed25519(&[1; 31], None).err(), mismatch);
    for (curve, size) in [(NistP256, 32), (NistP384, 48), (NistP521, 66)] {
        assert!(build::ecdsa(curve, &[1], None).is_ok());
        assert_eq!(build::ecdsa(curve, &[1], Some(&[4; 65])).err(), mismatch);
        assert_eq!(build::ecdsa(curve, &[0; 32], None).err(), mismatch, "zero");
        assert_eq!(build::ecdsa(curve, &vec![0xff; size], None).err(), mismatch, "too large");
        assert_eq!(build::ecdsa(curve, &vec![1; size + 1], None).err(), mismatch, "too long");
    }
}

/// With one prime of two bits the signer would take 2^3000 steps.
#[test]
fn a_lopsided_rsa_key_is_refused() {
    use crate::ssh::keys::build::{RsaKeyNumbers, rsa};
    use ::rsa::BigUint;
    let three = BigUint::from(3u8);
    let other = (BigUint::from(1u8) << 3100_usize) + BigUint::from(1u8);
    let modulus = (&three * &other).to_bytes_be();
    let numbers = RsaKeyNumbers {
        modulus: &modulus,
        public_exponent: &[1, 0, 1],
        private_exponent: &[1],
        primes: [&[3], &other.to_bytes_be()],
    };
    assert_eq!(rsa(numbers).err(), Some(KeyBuildError::Mismatch));
    let long = vec![0xff; 1025];
    let numbers = RsaKeyNumbers { modulus: &long, ..numbers };
    assert_eq!(rsa(numbers).err(), Some(KeyBuildError::RsaTooLong(8200)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens to a file on its way, the result is a key or a message, and the key is the right one.
    #[test]
    fn damaged_files_never_panic(
        name in prop::sample::select(vec![
            "openssh_ed25519", "openssh_p521", "pem_p256", "pkcs8_p384", "pkcs8_ed25519",
        ]),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let name = format!("accepted/{name}");
        let text = patched(&name, |body| {
            let at = at.index(body.len());
            body[at] = byte;
            if let Some(cut) = cut {
                body.truncate(cut.index(body.len()));
            }
        });
        let says_both_halves = name != "accepted/pkcs8_ed25519";
        if let (Ok(key), true) = (import(&text, None), says_both_halves) {
            let public = PublicKey::parse(&file(&format!("{name}.pub"))).unwrap();
            prop_assert_eq!(key.public().blob(), public.blob());
        }
    }
}
