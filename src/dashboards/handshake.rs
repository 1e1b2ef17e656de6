//! Both ends of a connection to a dashboard prove to each other that they know the run's secret, without sending it:
//! a stranger who took the port cannot pass for the dashboard, and nobody else gets a byte from it.

use std::fmt;
use std::io;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use zeroize::Zeroizing;

/// The handshake must finish within this time, or the connection is closed.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Length of a secret and of a nonce, in bytes.
pub const SECRET_LEN: usize = 32;
const SECRET_HEX_LEN: usize = 2 * SECRET_LEN;

/// The secret that the job and the portal share for a run. Its `Debug` output hides it.
#[derive(Clone)]
pub struct DashboardSecret(Zeroizing<[u8; SECRET_LEN]>);

impl DashboardSecret {
    /// Parses the 64 hexadecimal digits that the job wrote.
    pub fn from_hex(text: &str) -> Option<Self> {
        decode_hex(text.as_bytes()).map(|bytes| Self(Zeroizing::new(bytes)))
    }

    /// The proof that one end knows the secret, valid for this connection only.
    fn proof(&self, who: &str, nonces: &[u8]) -> Option<Hmac<Sha256>> {
        let mac = Hmac::<Sha256>::new_from_slice(&*self.0).ok()?;
        Some(mac.chain_update(who).chain_update(nonces))
    }
}

impl fmt::Debug for DashboardSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Authenticates a new connection, which is then ready for HTTP. `nonce` must be random and never used again.
///
/// Fails with `UnexpectedEof` or a reset if nobody is there, `InvalidData` if it is not this dashboard, and
/// `TimedOut` if it stays silent.
pub async fn authenticate<S>(stream: &mut S, secret: &DashboardSecret, nonce: [u8; SECRET_LEN]) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    tokio::time::timeout(HANDSHAKE_TIMEOUT, exchange(stream, secret, nonce))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn exchange<S>(stream: &mut S, secret: &DashboardSecret, nonce: [u8; SECRET_LEN]) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let stranger = || io::Error::new(io::ErrorKind::InvalidData, "this is not the dashboard");
    let ours = encode_hex(&nonce);
    stream.write_all(format!("PORTOLAN1 {ours}\n").as_bytes()).await?;
    stream.flush().await?;
    // Exactly the server's line: what follows belongs to HTTP.
    let mut line = [0; SECRET_HEX_LEN + 1 + SECRET_HEX_LEN + 1];
    stream.read_exact(&mut line).await?;
    let (theirs, proof) = (&line[..SECRET_HEX_LEN], &line[SECRET_HEX_LEN + 1..SECRET_HEX_LEN + 1 + SECRET_HEX_LEN]);
    let is_line = line[SECRET_HEX_LEN] == b' ' && line[SECRET_HEX_LEN + 1 + SECRET_HEX_LEN] == b'\n';
    let proof = decode_hex(proof).filter(|_| is_line && decode_hex(theirs).is_some());
    let proof = proof.ok_or_else(stranger)?;
    let nonces = [ours.as_bytes(), theirs].concat();
    let dashboard = secret.proof("board", &nonces).ok_or_else(stranger)?;
    dashboard.verify_slice(&proof).map_err(|_| stranger())?;
    let portal = secret.proof("portal", &nonces).ok_or_else(stranger)?;
    let mut answer = encode_hex(&portal.finalize().into_bytes());
    answer.push('\n');
    stream.write_all(answer.as_bytes()).await?;
    stream.flush().await
}

fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect()
}

fn hex_digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0')
}

/// Lower case only, so that each value has one spelling.
fn decode_hex(text: &[u8]) -> Option<[u8; SECRET_LEN]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; SECRET_LEN];
    if text.len() != SECRET_HEX_LEN {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
