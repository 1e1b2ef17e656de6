//! The portal's end of the handshake, against servers that the tests play.

use super::*;

const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const NONCE: [u8; SECRET_LEN] = [7; SECRET_LEN];

/// Runs the handshake against a server that sends `answer` whatever it receives.
async fn against(answer: impl Fn(&str) -> Vec<u8>) -> io::Result<()> {
    let (mut portal, mut dashboard) = tokio::net::UnixStream::pair().unwrap();
    let secret = DashboardSecret::from_hex(SECRET).unwrap();
    let mut line = [0; 75];
    let play = async {
        dashboard.read_exact(&mut line).await.unwrap();
        let text = str::from_utf8(&line).unwrap();
        let nonce = text.strip_prefix("PORTOLAN1 ").unwrap().trim_end();
        dashboard.write_all(&answer(nonce)).await.unwrap();
        dashboard.shutdown().await.unwrap();
    };
    tokio::join!(authenticate(&mut portal, &secret, NONCE), play).0
}

/// How a server answers a nonce.
type Playing<'a> = &'a dyn Fn(&str) -> Vec<u8>;

/// The right line of a server.
fn line(secret: &str, who: &str, nonce: &str) -> Vec<u8> {
    let theirs = "ab".repeat(SECRET_LEN);
    let secret = DashboardSecret::from_hex(secret).unwrap();
    let proof = secret.proof(who, format!("{nonce}{theirs}").as_bytes()).unwrap();
    format!("{theirs} {}\n", encode_hex(&proof.finalize().into_bytes())).into_bytes()
}

#[tokio::test]
async fn only_the_board_itself_is_believed() {
    against(|nonce| line(SECRET, "board", nonce)).await.unwrap();
    let other = SECRET.replace("00", "01");
    let wrong: [(&str, Playing); 6] = [
        ("another secret", &|nonce| line(&other, "board", nonce)),
        ("our own proof sent back", &|nonce| line(SECRET, "portal", nonce)),
        ("an older nonce", &|_| line(SECRET, "board", &"00".repeat(SECRET_LEN))),
        ("capital letters", &|nonce| line(SECRET, "board", nonce).to_ascii_uppercase()),
        ("another protocol", &|_| vec![b'x'; 200]),
        ("zeros", &|_| vec![0; 130]),
    ];
    for (what, answer) in wrong {
        assert_eq!(against(answer).await.unwrap_err().kind(), io::ErrorKind::InvalidData, "{what}");
    }
    let short = against(|nonce| line(SECRET, "board", nonce)[..129].to_vec()).await;
    assert_eq!(short.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test(start_paused = true)]
async fn a_silent_end_is_left() {
    let (mut portal, _board) = tokio::net::UnixStream::pair().unwrap();
    let secret = DashboardSecret::from_hex(SECRET).unwrap();
    let result = authenticate(&mut portal, &secret, NONCE).await;
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::TimedOut);
}

#[test]
fn a_secret_has_one_spelling_and_does_not_print() {
    for text in ["", "00", &SECRET[1..], &SECRET.to_uppercase(), &format!("{SECRET}0"), &"é".repeat(32)] {
        assert!(DashboardSecret::from_hex(text).is_none(), "{text}");
    }
    assert_eq!(format!("{:?}", DashboardSecret::from_hex(SECRET).unwrap()), "Secret(…)");
}
