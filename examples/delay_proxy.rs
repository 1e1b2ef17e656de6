//! A network with a round-trip time: passes bytes on to another port, each way half of it later. For benchmarks.
//!
//! `delay_proxy PORT ROUND-TRIP-MS` prints the port that it listens on.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

const CHUNK: usize = 64 * 1024;
/// How many chunks may be on their way: far more than any SSH window, so that only time holds bytes back.
const ON_THE_WAY: usize = 1024;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number =
        || anyhow::Ok(arguments.next().ok_or_else(|| anyhow::anyhow!("PORT ROUND-TRIP-MS"))?.parse::<u64>()?);
    let (port, round_trip) = (u16::try_from(number()?)?, number()?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    #[expect(clippy::print_stdout, reason = "the caller reads the port")]
    {
        println!("{}", listener.local_addr()?.port());
    }
    loop {
        let (near, _) = listener.accept().await?;
        let far = TcpStream::connect(("127.0.0.1", port)).await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let delay = Duration::from_micros(round_trip * 500);
        let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
        tokio::spawn(pass(near_read, far_write, delay));
        tokio::spawn(pass(far_read, near_write, delay));
    }
}

async fn pass(mut from: impl AsyncRead + Unpin + Send + 'static, mut to: impl AsyncWrite + Unpin, delay: Duration) {
    let (send, mut receive) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
    tokio::spawn(async move {
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            if !matches!(from.read_buf(&mut chunk).await, Ok(1..)) {
                return;
            }
            if send.send((Instant::now() + delay, chunk)).await.is_err() {
                return;
            }
        }
    });
    while let Some((at, chunk)) = receive.recv().await {
        tokio::time::sleep_until(at).await;
        if to.write_all(&chunk).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
