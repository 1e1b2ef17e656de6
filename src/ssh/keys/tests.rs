use rsa::signature::Verifier as _;
use ssh_key::public::KeyData;
use ssh_key::{Algorithm, HashAlg};

use super::*;

/// Verifies a signature in SSH's format, with code that had no part in making it.
pub(in crate::ssh) fn verifies(public: &PublicKey, data: &[u8], signature: &[u8]) -> bool {
    let signature = Signature::try_from(signature).unwrap();
    let key = ssh_key::PublicKey::from_bytes(public.blob()).unwrap();
    let KeyData::Rsa(key) = key.key_data() else {
        return key.key_data().verify(data, &signature).is_ok();
    };
    let number = |number: &ssh_key::Mpint| rsa::BigUint::from_bytes_be(number.as_positive_bytes().unwrap());
    let key = rsa::RsaPublicKey::new(number(&key.n), number(&key.e)).unwrap();
    let bytes = rsa::pkcs1v15::Signature::try_from(signature.as_bytes()).unwrap();
    match signature.algorithm() {
        Algorithm::Rsa { hash: Some(HashAlg::Sha256) } => {
            rsa::pkcs1v15::VerifyingKey::<rsa::sha2::Sha256>::new(key).verify(data, &bytes).is_ok()
        }
        Algorithm::Rsa { hash: Some(HashAlg::Sha512) } => {
            rsa::pkcs1v15::VerifyingKey::<rsa::sha2::Sha512>::new(key).verify(data, &bytes).is_ok()
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_generated_key_signs_and_reads_back() {
    let key = PrivateKey::generate("alice at Portolan").unwrap();
    assert_eq!(key.public().kind(), "Ed25519");
    assert_eq!(key.public().comment(), "alice at Portolan");
    assert!(key.public().to_line().starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA"));
    assert!(key.public().to_line().ends_with(" alice at Portolan"));

    let again = PrivateKey::from_bytes(&key.to_bytes().unwrap()).unwrap();
    assert_eq!(again.public(), key.public());
    let signature = again.sign(b"data", 0).unwrap();
    assert!(verifies(key.public(), b"data", &signature));
    assert!(!verifies(key.public(), b"other", &signature));
    assert_ne!(PrivateKey::generate("").unwrap().public().blob(), key.public().blob());
}

#[test]
fn stored_bytes_that_were_cut_or_are_no_key_are_refused() {
    let bytes = PrivateKey::generate("x").unwrap().to_bytes().unwrap();
    for end in 0..bytes.len() {
        assert!(PrivateKey::from_bytes(&bytes[..end]).is_err(), "{end}");
    }
    assert!(PrivateKey::from_bytes(b"garbage").is_err());
}

#[test]
fn nothing_secret_shows_in_debug_output() {
    assert_eq!(format!("{:?}", PrivateKey::generate("x").unwrap()), "PrivateKey");
}

#[test]
fn a_public_line_reads_back_and_is_fingerprinted() {
    // As `ssh-keygen -l` of OpenSSH 9.2 shows it.
    let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    let key = PublicKey::parse(&format!("  {line}\t two  words \n")).unwrap();
    assert_eq!(key.fingerprint(), "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU");
    assert_eq!(key.comment(), "two words");
    assert_eq!(key.to_line(), format!("{line} two words"));
    let plain = PublicKey::parse(line).unwrap();
    assert_eq!(plain.to_line(), line);
    assert_eq!(PublicKey::parse(&plain.to_line()).unwrap(), plain);

    for bad in [
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        "ssh-ed25519 %%%",
        &line.replace("ssh-ed25519 ", "ssh-rsa "),
        &format!("{line}\n{line}"),
        &format!("no-pty {line}"),
        &format!("{line} {}", "x".repeat(17_000)),
    ] {
        assert_eq!(PublicKey::parse(bad), Err(PublicKeyError::NotAKey), "{bad}");
    }
}

#[test]
fn a_comment_cannot_become_a_second_line() {
    let key = PrivateKey::generate("me\nssh-rsa AAAA\r\u{2028}\u{202e}x\0").unwrap();
    assert_eq!(key.public().comment(), "me ssh-rsa AAAA x");
    assert_eq!(key.public().to_line().lines().count(), 1);
    let long = PrivateKey::generate(&"é".repeat(500)).unwrap();
    assert_eq!(long.public().comment().chars().count(), 200);
}
