use super::*;

fn load(file: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), file).unwrap();
    Config::load(Some(path.path()), env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

#[test]
fn nothing_at_all_is_a_working_configuration() {
    let config = Config::load(None, std::iter::empty()).unwrap();
    assert_eq!(config.portal.public_url.to_string(), "http://localhost:8080");
    assert_ne!(config.portal.public_url.host(), config.dashboards.public_url.host());
    assert!(config.metrics.listen.ip().is_loopback());
}

#[test]
fn the_environment_overrides_the_file() {
    let config = load(
        "data_dir = \"/a\"\n[portal]\nlisten = \"127.0.0.1:9000\"\n",
        &[("PORTOLAN_DATA_DIR", "/b"), ("PORTOLAN_PROXY_TRUSTED", "10.0.0.0/8, ::1/128"), ("HOME", "/x")],
    )
    .unwrap();
    assert_eq!(config.data_dir, PathBuf::from("/b"));
    assert_eq!(config.portal.public_url.to_string(), "http://localhost:9000", "the address follows the port");
    assert_eq!(config.proxy.trusted.len(), 2);
}

#[test]
fn old_names_are_understood_with_a_warning() {
    let config = load(
        "[boards]\nlisten = \"127.0.0.1:9001\"\n[notices]\nallow_private = true\n",
        &[("PORTOLAN_BOARDS_IDLE_MINUTES", "30")],
    )
    .unwrap();
    assert_eq!(config.dashboards.listen.port(), 9001);
    assert_eq!(config.dashboards.idle_minutes, 30);
    assert!(config.notifications.allow_private);
    let warnings = config.warnings.join(" ");
    for new in ["[dashboards]", "[notifications]", "PORTOLAN_DASHBOARDS_IDLE_MINUTES"] {
        assert!(warnings.contains(new), "{warnings}");
    }
}

#[test]
fn a_new_name_counts_more_than_an_old_one() {
    let config = load(
        "[boards]\nidle_minutes = 10\n[dashboards]\nidle_minutes = 20\n",
        &[("PORTOLAN_NOTIFICATIONS_ALLOW_PRIVATE", "false"), ("PORTOLAN_NOTICES_ALLOW_PRIVATE", "true")],
    )
    .unwrap();
    assert_eq!(config.dashboards.idle_minutes, 20);
    assert!(!config.notifications.allow_private);
    assert!(load("[boards]\nx = 1\n", &[]).is_err(), "unknown names stay refused");
}

#[test]
fn unknown_names_are_refused_with_the_nearest_one() {
    let error = load("[portal]\npublic_ulr = \"x\"\n", &[]).unwrap_err().to_string();
    assert!(error.contains("'portal.public_ulr'") && error.contains("'portal.public_url'"), "{error}");
    let error = load("", &[("PORTOLAN_DATADIR", "/x")]).unwrap_err().to_string();
    assert!(error.contains("PORTOLAN_DATA_DIR"), "{error}");
}

#[test]
fn dangerous_or_senseless_values_are_refused_in_words() {
    for (file, expected) in [
        ("[metrics]\nlisten = \"0.0.0.0:1\"", "loopback"),
        (
            "[portal]\npublic_url = \"https://a.org\"\n[dashboards]\npublic_url = \"https://a.org:444\"",
            "their own host name",
        ),
        ("[portal]\npublic_url = \"a.org/x\"", "isn't a URL"),
        ("[portal]\npublic_url = \"https://a.org/x\"", "isn't a URL"),
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
