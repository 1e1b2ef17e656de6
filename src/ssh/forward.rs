//! Port forwarding through an open connection to a node of the cluster: a socket in the connection's own folder,
//! which nobody else can reach.

use std::path::{Path, PathBuf};
use std::time::Duration;

use openssh::{Error, ForwardType, Socket};
use openssh_mux_client::Error as Fault;

use super::connection::ClusterConnection;

/// The master answers immediately or not at all.
const MASTER_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_SOCKET_PATH: usize = 107;
const MAX_SOCKET_NAME: usize = 24;

/// Why a port could not be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// Not a valid node name.
    #[error("The portal can't connect to a node with this name.")]
    BadHost,
    /// The socket's name is invalid or too long.
    #[error("The path of the run folder is too long for the connection's socket.")]
    BadName,
    #[error("You're not connected to the cluster.")]
    NotConnected,
    /// ssh refused the request.
    #[error("The cluster doesn't allow port forwarding over this connection.")]
    Refused,
}

impl ClusterConnection {
    /// The path of a forward's socket, whether or not it exists.
    pub fn forward_path(&self, name: &str) -> Result<PathBuf, ForwardError> {
        let is_name = (1..=MAX_SOCKET_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        // Names without the prefix in that folder belong to ssh.
        let path = self.master().folder().file(&format!("f-{name}"));
        let fits = is_name && path.as_os_str().len() <= MAX_SOCKET_PATH;
        fits.then_some(path).ok_or(ForwardError::BadName)
    }

    /// Forwards to a port of a host, as the login node reaches it, and returns the socket's path. `name` is up to 24
    /// letters, digits and dashes. An existing forward with the same name and target is replaced, so it is safe to
    /// call again after a restart. A forward may exist although nothing listens at its end.
    pub async fn forward(&self, name: &str, host: &str, port: u16) -> Result<PathBuf, ForwardError> {
        let path = self.forward_path(name)?;
        let target = parse_target(host, port)?;
        // A leftover from an earlier run of the portal; fine if it does not exist.
        let _ = await_master(self.session.close_port_forward(ForwardType::Local, &*path, target.clone())).await;
        remove_socket(&path);
        await_master(self.session.request_port_forward(ForwardType::Local, &*path, target)).await?;
        Ok(path)
    }

    /// Closes a forward. Connections through it continue until either end closes them.
    pub async fn close_forward(&self, name: &str, host: &str, port: u16) -> Result<(), ForwardError> {
        let path = self.forward_path(name)?;
        let target = parse_target(host, port)?;
        let closed = await_master(self.session.close_port_forward(ForwardType::Local, &*path, target)).await;
        remove_socket(&path);
        match closed {
            // It did not exist: already closed, or the connection is a new one.
            Ok(()) | Err(ForwardError::Refused) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// A node of the cluster. ssh would read colons and brackets as addresses, a slash as a socket.
fn parse_target(host: &str, port: u16) -> Result<Socket<'_>, ForwardError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let is_host = (1..=253).contains(&host.len())
        && host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && host.bytes().all(good);
    if !is_host || port == 0 {
        return Err(ForwardError::BadHost);
    }
    Ok(Socket::TcpSocket { host: host.into(), port })
}

/// Waits for the master's reply to a request.
async fn await_master(request: impl Future<Output = Result<(), Error>>) -> Result<(), ForwardError> {
    match tokio::time::timeout(MASTER_TIMEOUT, request).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Error::SshMux(Fault::RequestFailure(_) | Fault::PermissionDenied(_)))) => Err(ForwardError::Refused),
        Ok(Err(_)) | Err(_) => Err(ForwardError::NotConnected),
    }
}

/// ssh leaves its sockets behind.
fn remove_socket(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "Could not remove a forwarding socket");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_host_names_are_connected_to() {
        for host in ["c1", "nc10203.narval.calcul.quebec", "10.1.2.3", "gpu-a01"] {
            assert!(parse_target(host, 6006).is_ok(), "{host}");
        }
        let long = "a".repeat(254);
        for host in ["", "a:22", "[::1]", "::1", "a b", "/run/x", "-a", ".", "a/b", "a\n", "é", "a_b", &long] {
            assert_eq!(parse_target(host, 6006), Err(ForwardError::BadHost), "{host}");
        }
        assert_eq!(parse_target("c1", 0), Err(ForwardError::BadHost));
    }
}
