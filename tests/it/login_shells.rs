//! Login shells of every kind: tcsh, fish, and a bash that talks before it works.

use crate::support::TestApp;
use crate::support::cluster::Cluster;
use crate::support::connections::run;
use crate::support::server::Server;

#[tokio::test]
async fn connecting_and_discovery_work_with_every_login_shell() {
    let server = Server::start();
    let (portal, _, alice) = TestApp::with_member("alice").await;
    let key = alice.make_key().await;
    for user in ["tessa", "fin", "bella"] {
        portal.add_server(user, &server).await;
        server.allow(user, &key);
        alice.name_user(user, user).await;
        alice.connect(user).await;
        let shell = Cluster::get().person(user)["shell"].as_str().unwrap().to_owned();
        let learnt: serde_json::Value =
            serde_json::from_str(&portal.stored_connection("alice", user).await.discovered).unwrap();
        assert_eq!((&learnt["user"], &learnt["shell"]), (&user.into(), &shell.clone().into()));
        assert_eq!(learnt["home"], format!("/home/{user}"), "{shell}");
        let page = alice.get(&format!("/clusters/{user}")).await;
        for words in [&*Cluster::get().slurm_version(), "def-smith", "t4", "squeue, sbatch"] {
            assert!(page.text().contains(words), "{shell}: {words} in {}", page.text());
        }
        let line = portal.connection("alice", user).await;
        for odd in ["two words", "$HOME `id` \\ !! 'quoted' \"too\"", "~/*", "-n", "å æ 名"] {
            let said = run(&line, "printf", &["[%s]", odd]).await.unwrap();
            assert_eq!((said.stdout_text(), said.stderr_text()), (format!("[{odd}]"), String::new()));
        }
        let missing = run(&line, "no-such-program", &[]).await.unwrap();
        assert_eq!(missing.code, 127, "{shell}: {}", missing.stderr_text());
    }
}
