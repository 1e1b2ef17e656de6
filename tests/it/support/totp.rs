//! The app on the phone: makes one-time codes from the key that the portal shows.

use totp_rs::{Builder, Secret};

use super::{Client, PASSWORD, TestApp};

/// The code of a key at a moment.
pub fn code(key: &str, now: i64) -> String {
    let secret = Secret::try_from_base32(key.replace(' ', "")).unwrap();
    let totp = Builder::new().with_secret(secret).build_noncompliant();
    totp.generate(u64::try_from(now).unwrap()).to_string()
}

/// Turns the second factor on for someone; gives the key and the recovery codes.
pub async fn turn_on(portal: &TestApp, person: &Client) -> (String, Vec<String>) {
    let page = person.get("/account/second-factor").await;
    let key = page.select_text(".code code");
    let sealed = page.attribute("input[name=sealed]", "value");
    let code = code(&key, portal.clock.now().0);
    let form = [("sealed", sealed.as_str()), ("code", &code), ("password", PASSWORD)];
    let page = person.post("/account/second-factor", &form).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let codes = page.select_text(".code code").lines().map(str::to_owned).collect();
    (key, codes)
}
