//! Large files while the network breaks and the portal is killed: at the beginning, half-way, and just before the end.

use reqwest::Body;

use crate::files_downloads::{ask, numbers, read_rest, read_some};
use crate::files_uploads::{Uploader, assert_content, sample};
use crate::folders::Folder;
use crate::support::client::send_too_large;
use crate::support::cluster::remote_path;
use crate::support::program::{Installation, Server as Program};
use crate::support::relay::{Relay, with_alice_over};
use crate::support::server::Server;
use crate::support::wait::wait_until;
use crate::support::{Client, PASSWORD};

const PERCENTS: [usize; 3] = [1, 50, 99];
const MIB: usize = 1024 * 1024;

/// The program itself, with someone who is connected as alice.
async fn serve(server: &Server) -> (Installation, Program, Client) {
    let installation = Installation::new();
    let add = ["user", "add", "ada", "--admin", "--password-stdin"];
    assert!(installation.run_with_input(&add, PASSWORD).status.success());
    installation.add_clusters(server, &["own"]).await;
    let program = installation.serve().await;
    let ada = Client::new(&installation.url());
    ada.sign_in("ada", PASSWORD).await;
    server.allow("alice", &ada.make_key().await);
    ada.name_user("own", "alice").await;
    ada.post("/clusters/own/connect", &[]).await;
    ada.wait_until_connected("own").await;
    (installation, program, ada)
}

#[tokio::test]
async fn upload_goes_on_wherever_the_portal_was_killed() {
    let server = Server::start();
    let (installation, mut program, ada) = serve(&server).await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader { who: &ada, url: installation.url(), slug: "own", folder: &folder.path };
    let bytes = sample(8 * MIB + 5);
    for percent in PERCENTS {
        let name = format!("killed-{percent}");
        let at = tus.create(&name, bytes.len()).await;
        let sent = bytes.len() * percent / 100;
        let (sender, body) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
        let body = futures_util::stream::unfold(body, async |mut body| body.recv().await.map(|piece| (piece, body)));
        let sending = tokio::spawn(tus.part(&at, 0, b"").body(Body::wrap_stream(body)).send());
        sender.send(Ok(bytes[..sent].to_vec())).await.unwrap();
        let hidden = format!("test -n \"$(find {} -name '.portolan-upload-*' -size +0)\"", folder.path);
        wait_until("something is on the cluster", async || folder.is_true(&hidden)).await;
        program.stop("KILL");
        drop(sender);
        let _ = sending.await;
        program = installation.serve().await;
        ada.wait_until_connected("own").await;
        let offset = tus.offset(&at).await;
        assert!(offset <= sent, "{percent} %: {offset}");
        let page = tus.append(&at, offset, &bytes[offset..]).await;
        assert_eq!(page.status, 204, "{percent} %: {}", page.text());
        assert_content(&folder, &name, &bytes);
        folder.tell(&format!("test -z \"$(find {} -name '.portolan-*')\"", folder.path));
    }
    program.stop("TERM");
}

#[tokio::test]
async fn download_is_taken_up_wherever_the_portal_was_killed() {
    let server = Server::start();
    let (installation, mut program, ada) = serve(&server).await;
    let lines = 4_000_000;
    let folder = Folder::new("alice", &format!("seq {lines} >large"));
    let (path, expected) = (remote_path(&format!("{}/large", folder.path)), numbers(lines));
    for percent in PERCENTS {
        let mut response = ask(&ada, "own", &path, &[]).await;
        let first = read_some(&mut response, expected.len() * percent / 100).await;
        program.stop("KILL");
        let (first, _) = read_rest(response, first).await;
        assert!(expected.starts_with(&first), "{percent} %");
        program = installation.serve().await;
        ada.wait_until_connected("own").await;
        if first.len() < expected.len() {
            let range = format!("bytes={}-", first.len());
            let response = ask(&ada, "own", &path, &[("range", &range)]).await;
            assert_eq!(response.status(), 206, "{percent} %");
            let (all, is_whole) = read_rest(response, first).await;
            assert!(is_whole && all == expected, "{percent} %: {}", all.len());
        }
    }
    program.stop("TERM");
}

async fn upload_over_a_network_that_breaks_at(percent: usize) {
    let server = Server::start();
    let relay = Relay::to(server.port).await;
    let (portal, alice) = with_alice_over(&relay, &server).await;
    let folder = Folder::new("alice", "true");
    let tus = Uploader::new(&portal, &alice, "own", &folder.path);
    let bytes = sample(16 * MIB);
    let at = tus.create("file", bytes.len()).await;
    let sending = send_too_large(tus.part(&at, 0, &bytes));
    let ((), page) = tokio::join!(relay.cut_after(bytes.len() * percent / 100), sending);
    assert!(page.is_none_or(|page| page.status == 503));
    relay.mend();
    alice.connect("own").await;
    let offset = tus.offset(&at).await;
    assert!(offset < bytes.len(), "{offset}");
    let page = tus.append(&at, offset, &bytes[offset..]).await;
    assert_eq!(page.status, 204, "{}", page.text());
    assert_content(&folder, "file", &bytes);
}

#[tokio::test]
async fn upload_goes_on_after_the_network_broke_at_the_beginning() {
    upload_over_a_network_that_breaks_at(1).await;
}

#[tokio::test]
async fn upload_goes_on_after_the_network_broke_half_way() {
    upload_over_a_network_that_breaks_at(50).await;
}

#[tokio::test]
async fn upload_goes_on_after_the_network_broke_before_the_end() {
    upload_over_a_network_that_breaks_at(99).await;
}
