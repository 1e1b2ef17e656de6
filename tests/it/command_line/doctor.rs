//! What the doctor says about the instance it talked to, in words that an administrator understands.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::with_admin;
use crate::support::cluster::root;
use crate::support::program::stdout;

fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures/own-ca").join(name)
}

/// Some other server with a certificate of our own CA; gives its port.
fn serve_tls() -> u16 {
    let certificate = CertificateDer::from_pem_file(fixture("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream);
            // A client that doesn't trust the certificate ends the connection here.
            if stream.read(&mut [0; 4096]).is_ok() {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi");
                let _ = stream.flush();
            }
        }
    });
    port
}

#[tokio::test]
async fn doctor_names_the_instance() {
    let installation = with_admin();
    let data = installation.data().canonicalize().unwrap();
    let words = format!("on the data folder {}", data.display());
    let idle = stdout(&installation.run(&["doctor"]));
    assert!(idle.contains(&words) && idle.contains(env!("CARGO_PKG_VERSION")), "{idle}");
    assert!(idle.contains(&installation.url()), "{idle}");
    let server = installation.serve().await;
    let well = stdout(&installation.run(&["doctor"]));
    let running = format!("running and healthy: version {}", env!("CARGO_PKG_VERSION"));
    assert!(well.contains(&running), "{well}");
    assert!(well.contains(&format!("127.0.0.1:{}", installation.ports[2])), "{well}");

    // With the data folder of another portal, it does not take this one for that.
    let other = with_admin();
    let output = other
        .command(&["doctor"])
        .env("PORTOLAN_METRICS_LISTEN", format!("127.0.0.1:{}", installation.ports[2]))
        .output();
    let text = stdout(&output.unwrap());
    assert!(text.contains("Another portal responds at"), "{text}");
    drop(server);
}

/// A certificate of one's own CA is accepted once `SSL_CERT_FILE` names the CA; before, the doctor says how.
#[tokio::test]
async fn own_ca_is_trusted_with_ssl_cert_file() {
    let installation = with_admin();
    let server = installation.serve().await;
    let url = format!("https://localhost:{}", serve_tls());
    let mut doctor = installation.command(&["doctor"]);
    doctor.env("PORTOLAN_PORTAL_PUBLIC_URL", &url);
    let unknown = stdout(&doctor.output().unwrap());
    assert!(unknown.contains("this machine doesn't know the authority that issued it"), "{unknown}");
    assert!(unknown.contains("SSL_CERT_FILE"), "{unknown}");
    for debug in ["UnknownIssuer", "os error", "Error(", "Some("] {
        assert!(!unknown.contains(debug), "{debug} in {unknown}");
    }
    let trusted = stdout(&doctor.env("SSL_CERT_FILE", fixture("ca.pem")).output().unwrap());
    assert!(trusted.contains(&format!("Something other than this portal responds at {url}")), "{trusted}");
    drop(server);
}

#[tokio::test]
async fn unreachable_address_is_explained_in_words() {
    let installation = with_admin();
    let server = installation.serve().await;
    let nobody = crate::support::program::free_port();
    let url = format!("http://localhost:{nobody}");
    let output = installation.command(&["doctor"]).env("PORTOLAN_PORTAL_PUBLIC_URL", &url).output().unwrap();
    assert!(!output.status.success());
    let text = stdout(&output);
    assert!(text.contains("can't be reached from here: connection refused."), "{text}");
    assert!(!text.contains("os error"), "{text}");
    drop(server);
}
