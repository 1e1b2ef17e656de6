use super::*;
use crate::vault::MasterKey;

const PERSON: &str = "person:17";
const SESSION: &str = "person:17/session:9";
const KEY: &str = "person:17/key:5";
const SALT: [u8; SALT_LEN] = [7; SALT_LEN];

fn vault(digit: char) -> Vault {
    Vault::new(MasterKey::from_text(&digit.to_string().repeat(64)).unwrap())
}

fn password(text: &str) -> PasswordDerivedKey {
    derive_password_key(&SecretString::from(text.to_owned()), &SALT).unwrap()
}

fn same(a: &PersonKeychainKey, b: &PersonKeychainKey) -> bool {
    *a.0.0 == *b.0.0
}

/// Every copy of `sealed` with one bit changed or its end cut off.
fn damaged(sealed: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let changed = (0..sealed.len()).map(|position| {
        let mut copy = sealed.to_vec();
        copy[position] ^= 1;
        copy
    });
    changed.chain((0..sealed.len()).map(|end| sealed[..end].to_vec()))
}

#[test]
fn stretching_depends_on_password_and_salt_and_costs_what_a_check_costs() {
    let (memory, passes, lanes) = STRETCH_COST;
    let default = Argon2::default();
    assert_eq!(default.params().m_cost(), memory);
    assert_eq!(default.params().t_cost(), passes);
    assert_eq!(default.params().p_cost(), lanes);

    assert_eq!(*password("quiet harbour").0.0, *password("quiet harbour").0.0);
    assert_ne!(*password("quiet harbour").0.0, *password("quiet harbours").0.0);
    let other_salt = derive_password_key(&SecretString::from("quiet harbour"), &[8; SALT_LEN]).unwrap();
    assert_ne!(*password("quiet harbour").0.0, *other_salt.0.0);
}

#[test]
fn a_chain_opens_with_its_password_and_master_key_only() {
    let (right, keychain) = (password("quiet harbour"), PersonKeychainKey::generate().unwrap());
    let sealed = vault('a').lock_keychain(PERSON, &right, &keychain).unwrap();
    assert!(same(&vault('a').unlock_keychain(PERSON, &right, &sealed).unwrap(), &keychain));

    let wrong = password("loud harbour");
    assert!(vault('a').unlock_keychain(PERSON, &wrong, &sealed).is_err(), "wrong password");
    assert!(vault('b').unlock_keychain(PERSON, &right, &sealed).is_err(), "wrong master key");
    assert!(vault('a').unlock_keychain("person:1", &right, &sealed).is_err(), "other person");
    for changed in damaged(&sealed) {
        assert!(vault('a').unlock_keychain(PERSON, &right, &changed).is_err());
    }
}

#[test]
fn the_master_key_alone_gives_no_chain() {
    let (right, keychain) = (password("quiet harbour"), PersonKeychainKey::generate().unwrap());
    let sealed = vault('a').lock_keychain(PERSON, &right, &keychain).unwrap();
    let inner = vault('a').open(VaultPurpose::ChainByPassword, PERSON, &sealed).unwrap();
    assert_eq!(inner[0], VERSION);
    assert!(!inner.windows(KEY_LEN).any(|window| *window == keychain.0.0[..]));

    let mut newer = inner.to_vec();
    newer[0] = VERSION + 1;
    let newer = vault('a').seal(VaultPurpose::ChainByPassword, PERSON, &newer).unwrap();
    assert!(vault('a').unlock_keychain(PERSON, &right, &newer).is_err(), "unknown version");
    let moved = vault('a').seal(VaultPurpose::ChainByPassword, "person:1", &inner).unwrap();
    assert!(vault('a').unlock_keychain("person:1", &right, &moved).is_err(), "inner place counts too");
}

#[test]
fn a_new_password_locks_the_same_chain_again() {
    let (old, new) = (password("quiet harbour"), password("open water ahead"));
    let keychain = PersonKeychainKey::generate().unwrap();
    let key = keychain.seal_private(KEY, b"private").unwrap();
    let before = vault('a').lock_keychain(PERSON, &old, &keychain).unwrap();

    let opened = vault('a').unlock_keychain(PERSON, &old, &before).unwrap();
    let after = vault('a').lock_keychain(PERSON, &new, &opened).unwrap();
    assert!(vault('a').unlock_keychain(PERSON, &old, &after).is_err());
    let opened = vault('a').unlock_keychain(PERSON, &new, &after).unwrap();
    assert_eq!(&**opened.open_private(KEY, (&key).into()).unwrap(), b"private");
}

#[test]
fn a_session_opens_the_chain_with_its_token_only() {
    let keychain = PersonKeychainKey::generate().unwrap();
    let sealed = vault('a').lock_keychain_for_session(SESSION, "token", &keychain).unwrap();
    let open = |vault: &Vault, place: &str, token: &str, sealed: &[u8]| {
        vault.unlock_keychain_for_session(place, token, sealed)
    };
    assert!(same(&open(&vault('a'), SESSION, "token", &sealed).unwrap(), &keychain));
    assert!(open(&vault('a'), SESSION, "other", &sealed).is_err(), "wrong token");
    assert!(open(&vault('b'), SESSION, "token", &sealed).is_err(), "wrong master key");
    assert!(open(&vault('a'), "person:17/session:8", "token", &sealed).is_err(), "other session");
    for changed in damaged(&sealed) {
        assert!(open(&vault('a'), SESSION, "token", &changed).is_err());
    }
    assert!(
        vault('a').unlock_keychain(SESSION, &password("token"), &sealed).is_err(),
        "a session's lock is not a password's"
    );
}

#[test]
fn a_private_key_opens_on_its_chain_in_its_place_only() {
    let (keychain, stranger) = (PersonKeychainKey::generate().unwrap(), PersonKeychainKey::generate().unwrap());
    let sealed = keychain.seal_private(KEY, b"private").unwrap();
    let other = keychain.seal_private("person:17/key:6", b"another").unwrap();
    assert_eq!(&**keychain.open_private(KEY, (&sealed).into()).unwrap(), b"private");

    assert!(stranger.open_private(KEY, (&sealed).into()).is_err(), "other chain");
    for place in ["person:17/key:6", "person:1/key:5", ""] {
        assert!(keychain.open_private(place, (&sealed).into()).is_err(), "moved to {place:?}");
    }
    let mixed = SealedPrivateKeyRef { body: &sealed.body, own_key: &other.own_key };
    assert!(keychain.open_private(KEY, mixed).is_err(), "another key's own key");
    let mixed = SealedPrivateKeyRef { body: &other.body, own_key: &sealed.own_key };
    assert!(keychain.open_private(KEY, mixed).is_err(), "another key's body");
    for body in damaged(&sealed.body) {
        let changed = SealedPrivateKeyRef { body: &body, own_key: &sealed.own_key };
        assert!(keychain.open_private(KEY, changed).is_err());
    }
    for own_key in damaged(&sealed.own_key) {
        let changed = SealedPrivateKeyRef { body: &sealed.body, own_key: &own_key };
        assert!(keychain.open_private(KEY, changed).is_err());
    }
}

#[test]
fn unattended_use_needs_the_master_key_and_nothing_else() {
    let (keychain, stranger) = (PersonKeychainKey::generate().unwrap(), PersonKeychainKey::generate().unwrap());
    let sealed = keychain.seal_private(KEY, b"private").unwrap();
    assert!(vault('a').allow_unattended(&stranger, KEY, &sealed.own_key).is_err(), "not theirs");
    let unattended = vault('a').allow_unattended(&keychain, KEY, &sealed.own_key).unwrap();
    drop(keychain);

    let opened = vault('a').open_private_unattended(KEY, &sealed.body, &unattended).unwrap();
    assert_eq!(&**opened, b"private");
    assert!(vault('b').open_private_unattended(KEY, &sealed.body, &unattended).is_err(), "other master");
    let elsewhere = "person:17/key:6";
    assert!(vault('a').open_private_unattended(elsewhere, &sealed.body, &unattended).is_err());
    assert!(vault('a').open_private_unattended(KEY, &sealed.body, &sealed.own_key).is_err());
    for changed in damaged(&unattended) {
        assert!(vault('a').open_private_unattended(KEY, &sealed.body, &changed).is_err());
    }
}

#[test]
fn everything_moves_to_another_master_key_without_a_password() {
    let (old, new) = (vault('a'), vault('b'));
    let (right, keychain) = (password("quiet harbour"), PersonKeychainKey::generate().unwrap());
    let key = keychain.seal_private(KEY, b"private").unwrap();
    let by_password = old.lock_keychain(PERSON, &right, &keychain).unwrap();
    let by_session = old.lock_keychain_for_session(SESSION, "token", &keychain).unwrap();
    let unattended = old.allow_unattended(&keychain, KEY, &key.own_key).unwrap();
    let move_to_new = |purpose, place, sealed: &[u8]| old.reseal(&new, purpose, place, sealed).unwrap();

    let by_password = move_to_new(VaultPurpose::ChainByPassword, PERSON, &by_password);
    assert!(same(&new.unlock_keychain(PERSON, &right, &by_password).unwrap(), &keychain));
    assert!(old.unlock_keychain(PERSON, &right, &by_password).is_err());
    assert!(new.unlock_keychain(PERSON, &password("loud harbour"), &by_password).is_err());

    let by_session = move_to_new(VaultPurpose::ChainBySession, SESSION, &by_session);
    let opened = new.unlock_keychain_for_session(SESSION, "token", &by_session).unwrap();
    assert_eq!(&**opened.open_private(KEY, (&key).into()).unwrap(), b"private");

    let unattended = move_to_new(VaultPurpose::UnattendedKey, KEY, &unattended);
    assert_eq!(&**new.open_private_unattended(KEY, &key.body, &unattended).unwrap(), b"private");
}

/// Values sealed when version 1 was written. They must open forever.
#[test]
fn version_1_still_opens() {
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    };
    let by_password = hex(GOLDEN[0]);
    let by_session = hex(GOLDEN[1]);
    let (body, own_key, unattended) = (hex(GOLDEN[2]), hex(GOLDEN[3]), hex(GOLDEN[4]));
    let sealed = SealedPrivateKeyRef { body: &body, own_key: &own_key };
    let vault = vault('a');
    let keychain = vault.unlock_keychain(PERSON, &password("quiet harbour"), &by_password).unwrap();
    assert_eq!(&**keychain.open_private(KEY, sealed).unwrap(), b"private");
    let keychain = vault.unlock_keychain_for_session(SESSION, "token", &by_session).unwrap();
    assert_eq!(&**keychain.open_private(KEY, sealed).unwrap(), b"private");
    assert_eq!(&**vault.open_private_unattended(KEY, &body, &unattended).unwrap(), b"private");
}

/// Password, session, body, own key, unattended.
const GOLDEN: [&str; 5] = [
    "0e125bf877b62f3ea06b200f22fea56c4a9e58e2d577a723ef9bec89b2ba95c498a4c0b56030af42\
     e49b9f08653fe22bc8bc68407da8f7ca7c6375f0c607591ee76b06a0d8b44c5e7eb99f4395230782\
     dd3d499c048ca6c30e64c72bbe0307cf9099c5386bb8e431028eb3e3ff5e25a174",
    "f973023892dc556aa1f0b4ec0ad2c9f5cc2ae87369690f1a56ff650de92cc5b2ff12425fd0cd9426\
     9d542bab5cede5d108ea5018debdc750a45572429d21ab31517a0c09975d25bb063fa1b3dab1bca6\
     c0ae530d0c52597bf4462ab35049a655d4010fa46cb79589ce75793d20411ff08d",
    "01f079b8427b57e0cad6e7b06de28b44da9c45c532c6e2de9d55f83378c8772d2faebd245b903b06\
     fe187838672b3443",
    "01c25ccfe2cde3dbaf063b01175443893c8c3c1552715537c4870735a3bfb4205093072670425717\
     bdb755648e6346b9bb7ab2bec5b67996cf5eb54d715a62f3eea28c8e3d7d1e843f",
    "c624a9d6f98480b6945fdae09ef33a33feb046e74a0a903398d71c5ddc9f88d2ae45d03045301642\
     80149416ab0f44c894e8208de0ad3d28e132bbaea807c3610acead9d7000acab9b",
];

#[test]
fn nothing_secret_shows_in_debug_output() {
    let keychain = PersonKeychainKey::generate().unwrap();
    assert_eq!(format!("{keychain:?}"), "ChainKey");
    assert_eq!(format!("{:?}", password("quiet harbour")), "Stretched");
}
