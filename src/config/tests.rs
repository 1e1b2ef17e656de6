use super::*;

fn load(file: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), file).unwrap();
    Config::load(
        Some(path.path()),
        env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    )
}

#[test]
fn nothing_at_all_is_a_working_configuration() {
    let config = Config::load(None, std::iter::empty()).unwrap();
    assert_eq!(config.portal.public_url.to_string(), "http://localhost:8080");
    assert_ne!(config.portal.public_url.host(), config.boards.public_url.host());
    assert!(config.metrics.listen.ip().is_loopback());
}

#[test]
fn the_environment_overrides_the_file() {
    let config = load(
        "data_dir = \"/a\"\n[portal]\nlisten = \"127.0.0.1:9000\"\n",
        &[
            ("PORTOLAN_DATA_DIR", "/b"),
            ("PORTOLAN_PROXY_TRUSTED", "10.0.0.0/8, ::1/128"),
            ("HOME", "/x"),
        ],
    )
    .unwrap();
    assert_eq!(config.data_dir, PathBuf::from("/b"));
    assert_eq!(
        config.portal.public_url.to_string(),
        "http://localhost:9000",
        "the address follows the port"
    );
    assert_eq!(config.proxy.trusted.len(), 2);
}

#[test]
fn unknown_names_are_refused_with_the_nearest_one() {
    let error = load("[portal]\npublic_ulr = \"x\"\n", &[]).unwrap_err().to_string();
    assert!(
        error.contains("'portal.public_ulr'") && error.contains("'portal.public_url'"),
        "{error}"
    );
    let error = load("", &[("PORTOLAN_DATADIR", "/x")]).unwrap_err().to_string();
    assert!(error.contains("PORTOLAN_DATA_DIR"), "{error}");
}

#[test]
fn dangerous_or_senseless_values_are_refused_in_words() {
    for (file, expected) in [
        ("[metrics]\nlisten = \"0.0.0.0:1\"", "loopback"),
        (
            "[portal]\npublic_url = \"https://a.org\"\n[boards]\npublic_url = \"https://a.org:444\"",
            "host name of their own",
        ),
        ("[portal]\npublic_url = \"a.org/x\"", "not an address"),
        ("[portal]\npublic_url = \"https://a.org/x\"", "not an address"),
        ("[sessions]\nidle_hours = 0", "at least 1"),
        ("[activity]\nkeep_days = 1", "at least 30"),
        ("data_dir = [", "TOML parse error"),
        ("[sessions]\nidle_hours = \"x\"", "invalid type"),
    ] {
        let error = load(file, &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{file}: {error}");
    }
    let error = load("", &[("PORTOLAN_SESSIONS_IDLE_HOURS", "soon")]).unwrap_err().to_string();
    assert!(error.contains("whole number"), "{error}");
}

#[test]
fn public_addresses_are_kept_as_browsers_send_them() {
    for (text, authority) in [
        ("https://Lab.example.org:443/", "lab.example.org"),
        ("http://localhost:8080", "localhost:8080"),
        ("http://[::1]:80", "[::1]"),
        ("http://[::1]:81", "[::1]:81"),
    ] {
        assert_eq!(PublicUrl::try_from(text.to_owned()).unwrap().authority(), authority);
    }
}
