//! The client of `script/bench dashboards`: sends a dashboard the same requests through the portal or a plain tunnel.
//!
//! Usage: `bench_dashboards latency PATH COUNT | rate PATH CONNECTIONS SECONDS | download PATH`
//! or `bench_dashboards guests PATH GUESTS SECONDS EVERY-MS`.
//! The target is `BENCH_ADDRESS`; through a tunnel with `BENCH_SECRET` (the run's secret, for the handshake), or
//! through the portal with `BENCH_HOST`, `BENCH_COOKIE` and `BENCH_PREFIX`.

#![expect(clippy::print_stdout, reason = "figures are printed for the script that asked")]

use std::time::{Duration, Instant};

use anyhow::Context as _;
use portolan::dashboards::handshake::{DashboardSecret, authenticate};
use portolan::entropy;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Where requests go, and what they carry.
#[derive(Clone)]
struct Target {
    address: String,
    secret: Option<DashboardSecret>,
    head: String,
    prefix: String,
}

impl Target {
    fn from_env() -> anyhow::Result<Self> {
        let var = |name: &str| std::env::var(name).unwrap_or_default();
        let secret = var("BENCH_SECRET");
        let host = if secret.is_empty() { var("BENCH_HOST") } else { "localhost".to_owned() };
        let cookie = var("BENCH_COOKIE");
        let cookie = if cookie.is_empty() { String::new() } else { format!("Cookie: {cookie}\r\n") };
        Ok(Self {
            address: std::env::var("BENCH_ADDRESS").context("BENCH_ADDRESS")?,
            secret: DashboardSecret::from_hex(&secret),
            head: format!("Host: {host}\r\n{cookie}"),
            prefix: var("BENCH_PREFIX"),
        })
    }

    async fn connect(&self) -> anyhow::Result<Connection> {
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        if let Some(secret) = &self.secret {
            authenticate(&mut stream, secret, entropy::random_bytes()?).await?;
        }
        Ok(Connection { stream: BufReader::with_capacity(256 * 1024, stream) })
    }

    fn request(&self, path: &str) -> String {
        format!("GET {}{path} HTTP/1.1\r\n{}\r\n", self.prefix, self.head)
    }
}

struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Sends a request, reads the whole response and returns the length of its body.
    async fn send(&mut self, request: &str) -> anyhow::Result<u64> {
        self.stream.write_all(request.as_bytes()).await?;
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        anyhow::ensure!(line.starts_with("HTTP/1.1 200"), "the answer was {line}");
        let (mut length, mut is_chunked) = (None, false);
        loop {
            line.clear();
            self.stream.read_line(&mut line).await?;
            let lower = line.trim().to_ascii_lowercase();
            if lower.is_empty() {
                break;
            }
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<u64>()?);
            }
            is_chunked |= lower == "transfer-encoding: chunked";
        }
        match length {
            Some(length) => self.skip(length).await,
            None if is_chunked => self.skip_chunks().await,
            None => anyhow::bail!("the answer does not say how long it is"),
        }
    }

    async fn skip(&mut self, length: u64) -> anyhow::Result<u64> {
        let mut left = length;
        while left > 0 {
            let buffer = self.stream.fill_buf().await?;
            anyhow::ensure!(!buffer.is_empty(), "the answer was cut off with {left} bytes to come");
            let taken = buffer.len().min(usize::try_from(left)?);
            self.stream.consume(taken);
            left -= u64::try_from(taken)?;
        }
        Ok(length)
    }

    async fn skip_chunks(&mut self) -> anyhow::Result<u64> {
        let mut all = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).await?;
            let size = u64::from_str_radix(line.trim(), 16)?;
            all += self.skip(size).await?;
            let mut end = [0; 2];
            self.stream.read_exact(&mut end).await?;
            if size == 0 {
                return Ok(all);
            }
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let target = Target::from_env()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["latency", path, count] => latency(&target, path, count.parse()?).await,
        ["rate", path, connections, seconds] => rate(&target, path, connections.parse()?, seconds.parse()?).await,
        ["download", path] => download(&target, path).await,
        ["guests", path, guests, seconds, every] => {
            let every = Duration::from_millis(every.parse()?);
            self::guests(&target, path, guests.parse()?, seconds.parse()?, every).await
        }
        _ => anyhow::bail!("usage: bench_dashboards latency | rate | download | guests …"),
    }
}

/// Prints the median time of a request on one connection, in microseconds.
async fn latency(target: &Target, path: &str, count: usize) -> anyhow::Result<()> {
    let request = target.request(path);
    let mut connection = target.connect().await?;
    let mut times = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        connection.send(&request).await?;
        times.push(began.elapsed());
    }
    println!("{}", percentile(&mut times, 50));
    Ok(())
}

/// Prints the requests per second over this many connections.
async fn rate(target: &Target, path: &str, connections: usize, seconds: u64) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (target, request) = (target.clone(), target.request(path));
        tasks.spawn(async move {
            let mut connection = target.connect().await?;
            let mut done = 0_u64;
            while Instant::now() < until {
                connection.send(&request).await?;
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    let mut all = 0;
    while let Some(done) = tasks.join_next().await {
        all += done??;
    }
    println!("{}", all / seconds);
    Ok(())
}

/// Prints the bytes read, and the bytes per millisecond.
async fn download(target: &Target, path: &str) -> anyhow::Result<()> {
    let request = target.request(path);
    let mut connection = target.connect().await?;
    let began = Instant::now();
    let bytes = connection.send(&request).await?;
    let milliseconds = began.elapsed().as_millis().max(1);
    println!("{bytes} {}", u128::from(bytes) / milliseconds);
    Ok(())
}

/// Prints the median and the 99th percentile in microseconds, for guests who each send a request now and then.
async fn guests(target: &Target, path: &str, guests: u32, seconds: u64, every: Duration) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut tasks = JoinSet::new();
    for number in 0..guests {
        let (target, request) = (target.clone(), target.request(path));
        tasks.spawn(async move {
            // Spread the guests out, so that they don't all start at the same moment.
            let mut next = tokio::time::Instant::now() + every * number / guests;
            let mut connection = target.connect().await?;
            connection.send(&request).await?;
            let mut times = Vec::new();
            while Instant::now() < until {
                tokio::time::sleep_until(next).await;
                next += every;
                let began = Instant::now();
                connection.send(&request).await?;
                times.push(began.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut all = Vec::new();
    while let Some(times) = tasks.join_next().await {
        all.extend(times??);
    }
    println!("{} {}", percentile(&mut all, 50), percentile(&mut all, 99));
    Ok(())
}

fn percentile(times: &mut [Duration], percent: usize) -> u128 {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)].as_micros()
}
