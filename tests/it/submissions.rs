//! Submitting jobs to the real cluster: one order is one job, with the script as it was handed over.

use std::collections::BTreeSet;
use std::time::Duration;

use portolan::auth::activity::Actor;
use portolan::clock::Clock;
use portolan::domain::{PersonId, SubmissionId};
use portolan::jobs::submissions::{Submission, SubmissionState, SubmitError, SubmitRequest, SubmitRequestError};

use crate::queue::cancel;
use crate::support::app::hurry;
use crate::support::cluster::Cluster;
use crate::support::server::{Server, site_at};
use crate::support::wait::{note_seen, wait_for_value, wait_until};
use crate::support::{Client, TestApp};

/// A job that only waits.
pub const HELD: &str = "#!/bin/bash\n#SBATCH --hold --time=5 --output=/dev/null\nsleep 100\n";

impl TestApp {
    /// An order of someone's, from a form that nobody has sent before.
    pub async fn order(&self, name: &str, slug: &str, script: &str) -> SubmitRequest {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let form = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        SubmitRequest {
            person: PersonId(self.person_id(name).await),
            cluster: self.cluster_id(slug).await,
            form_token: format!("form-{form}"),
            script: script.to_owned(),
            job_name: "it's a <test>".to_owned(),
            folders: Vec::new(),
            recipe: "Test".to_owned(),
            recipe_version: Some(3),
            recipe_id: None,
            answers: "{}".to_owned(),
            sweep: String::new(),
        }
    }

    /// Hands an order over as its owner.
    pub async fn submit(&self, order: &SubmitRequest) -> SubmissionId {
        self.app.submissions.submit(&actor(order), order.clone()).await.unwrap()
    }

    /// Waits until the fate of a submission is known.
    pub async fn settled(&self, id: SubmissionId) -> Submission {
        let one = self.app.submissions.wait(id, Duration::from_mins(1)).await.unwrap().unwrap();
        assert!(one.state.is_settled(), "{one:?}");
        one
    }

    /// A submission as it is now.
    pub async fn submission(&self, id: SubmissionId) -> Submission {
        let submission = self.app.submissions.wait(id, Duration::ZERO).await.unwrap().unwrap();
        note_seen(|| format!("{submission:#?}"));
        submission
    }
}

pub fn actor(order: &SubmitRequest) -> Actor {
    Actor { id: Some(order.person), name: "someone".into(), address: String::new() }
}

/// Whether no job on the cluster carries the token of any of these, whoever knows of it.
pub fn are_no_jobs(all: &[&Submission]) -> bool {
    let told = jobs();
    all.iter().all(|one| !told.contains(&one.token))
}

/// All jobs of the last hour: number, name and comment, one to a line.
fn jobs() -> String {
    let ask =
        "squeue -h -a -t all -O JobArrayID:_,Name:_,Comment:_; sacct -a -X -n -P -S now-1hour -o JobID,JobName,Comment";
    let told = Cluster::get().script(&["exec", "sh", "-c", ask]);
    assert!(told.status.success(), "{told:?}");
    String::from_utf8_lossy(&told.stdout).into_owned()
}

/// Each of these has become one job. Gives the numbers; the jobs are cancelled.
pub fn one_job_each(user: &str, all: &[Submission]) -> Vec<u64> {
    let told = jobs();
    let number = |line: &str| line.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
    let mut numbers = Vec::new();
    for one in all {
        assert_eq!(one.state, SubmissionState::Accepted, "{one:?}");
        let mine = u64::try_from(one.number.unwrap()).unwrap();
        let found: BTreeSet<u64> = told.lines().filter(|line| line.contains(&one.token)).map(number).collect();
        assert_eq!(found, BTreeSet::from([mine]), "{one:?}");
        numbers.push(mine);
    }
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    cancel(user, &words.join(" "));
    numbers
}

/// A portal in a hurry with one member who is connected to a site on the test cluster.
async fn connected_to(name: &str, change: impl FnOnce(&mut portolan::sites::Site)) -> TestApp {
    let portal = TestApp::live().await;
    let admin = portal.set_up("ada").await;
    let member = portal.member(&admin, name).await;
    let mut site = site_at("key", Cluster::get().port("key"));
    change(&mut site);
    portal.add_site(&site).await;
    member.prepare("key", name).await;
    member.connect("key").await;
    portal
}

/// What Slurm knows of a job.
fn show(number: u64) -> String {
    let number = number.to_string();
    let told = Cluster::get().script(&["exec", "scontrol", "-o", "show", "job", &number]);
    String::from_utf8(told.stdout).unwrap()
}

/// As people of each shell hand it over: quotes, blanks and odd letters included.
#[tokio::test(flavor = "multi_thread")]
async fn submission_becomes_one_job_with_exactly_its_script() {
    let very = async |user: &'static str| {
        let (portal, _, member) = crate::queue::connected(user).await;
        let script = format!("{HELD}# it's \"$HOME\" \\n !! %s ünï `id`\n\n");
        let mut order = portal.order(user, "key", &script).await;
        let folder = format!("/scratch/{user}/a test's folder/{}", order.form_token);
        order.folders = vec![format!("{folder}/one"), format!("{folder}/two")];
        let one = portal.settled(portal.submit(&order).await).await;
        let number = one.number.unwrap().to_string();
        let write = ["exec", "scontrol", "write", "batch_script", &number, "-"];
        let kept = String::from_utf8(Cluster::get().script(&write).stdout).unwrap();
        assert_eq!(kept.trim_end_matches('\n'), script.trim_end_matches('\n'), "{user}");
        let shown = show(number.parse().unwrap());
        assert!(shown.contains(&format!("Comment=portolan:{}", one.token)), "{shown}");
        assert!(shown.contains(&format!("WorkDir={folder}/one")), "{shown}");
        let activity = member.get("/account/activity").await;
        assert!(activity.text().contains("Submitted a job"), "{}", activity.text());
        one_job_each(user, &[one]);
        let tidy = ["exec", "--as", user, "rm", "-r", &format!("/scratch/{user}/a test's folder")];
        assert!(Cluster::get().script(&tidy).status.success(), "both folders were made");
    };
    tokio::join!(very("bob"), very("tessa"), very("fin"));
}

/// The page says what is happening, leads to the job once that is known, and is its owner's alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_leads_from_the_button_to_the_job() {
    let (portal, admin, bob) = crate::queue::connected("bob").await;
    let mut stream = bob.request(reqwest::Method::GET, "/events").send().await.unwrap();
    let id = portal.submit(&portal.order("bob", "key", HELD).await).await;
    let mut heard = String::new();
    while !heard.contains("event: submissions") {
        heard += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
    }
    let path = format!("/submissions/{id}");
    let one = portal.settled(id).await;
    let job = format!("/jobs/key/{}", one.number.unwrap());
    // One of the two leads to the other, whatever the list of jobs knows by now.
    let (page, at_job) = (bob.get(&path).await, bob.get(&job).await);
    assert!(page.status == 303 || page.text().contains("Submitted as job"));
    assert!(at_job.status == 200 || at_job.location() == path, "{}", at_job.status);
    wait_for_value("the job is known", async || bob.get(&path).await.location().to_owned(), |seen| *seen == job).await;
    assert_eq!(bob.get(&job).await.status, 200);
    let part = bob.request(reqwest::Method::GET, &format!("{path}/fragment")).header("hx-request", "1");
    let part = crate::support::client::send(part).await;
    assert_eq!(part.header("hx-redirect"), job, "an open page goes there by itself");
    for (path, form) in [("", false), ("/fragment", false), ("/again", true), ("/cancel", true)] {
        let path = format!("/submissions/{id}{path}");
        let answer = if form { admin.post(&path, &[]).await } else { admin.get(&path).await };
        assert_eq!(answer.status, 404, "{path}");
    }
    assert_eq!(bob.get("/submissions/999999").await.status, 404);
    assert_eq!(bob.get("/jobs/key/999999999").await.status, 404);
    one_job_each("bob", &[one]);
}

/// Nobody waits for a read of the queue to see their new job: here there is none at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_job_has_its_page_as_soon_as_slurm_has_accepted_it() {
    let portal = TestApp::start_with(|config| {
        hurry(config);
        config.queue_pace.is_on = false;
    })
    .await;
    let admin = portal.set_up("ada").await;
    let bob = portal.member(&admin, "bob").await;
    portal.add_cluster("key").await;
    bob.prepare("key", "bob").await;
    bob.connect("key").await;
    let script = HELD.replace("--hold", "--hold --cpus-per-task=2 --mem=300M");
    let id = portal.submit(&portal.order("bob", "key", &script).await).await;
    let one = portal.settled(id).await;
    let job = format!("/jobs/key/{}", one.number.unwrap());
    assert_eq!(bob.get(&format!("/submissions/{id}")).await.location(), job);
    let page = bob.get(&job).await;
    assert_eq!((page.status, page.select_text("h1").as_str()), (200, "it's a <test>"));
    assert!(page.select_text(".job-head").contains("Pending"), "{}", page.select_text("main"));
    let facts = page.select_text(".job-facts");
    assert!(facts.contains("2 cores") && facts.contains("300 MB") && facts.contains("5 min"), "{facts}");
    assert!(!crate::queue::row(&bob.get("/jobs").await, &one.number.unwrap().to_string()).is_empty());
    let array = HELD.replace("--hold", "--hold --array=1-4%2");
    let array = portal.settled(portal.submit(&portal.order("bob", "key", &array).await).await).await;
    let row = crate::queue::row(&bob.get("/jobs").await, &array.number.unwrap().to_string());
    assert!(row.contains("4 tasks"), "{row}");
    assert_eq!(bob.get(&format!("/jobs/key/{}", array.number.unwrap())).await.status, 200);
    one_job_each("bob", &[one, array]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_sent_again_is_the_same_job() {
    let portal = connected_to("bob", |_| ()).await;
    let order = portal.order("bob", "key", HELD).await;
    let clicks = (0..8).map(|_| portal.submit(&order));
    let ids = futures_util::future::join_all(clicks).await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let one = portal.settled(ids[0]).await;
    assert_eq!(portal.submit(&order).await, ids[0], "however late");
    let other = portal.order("bob", "key", HELD).await;
    let other = portal.settled(portal.submit(&other).await).await;
    assert_eq!(portal.settled(ids[0]).await, one);
    let numbers = one_job_each("bob", &[one, other]);
    assert_ne!(numbers[0], numbers[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_submission_is_no_job_and_keeps_slurms_message() {
    let portal = connected_to("bob", |_| ()).await;
    let script = HELD.replace("--hold", "--account=nobodys");
    let order = portal.order("bob", "key", &script).await;
    let one = portal.settled(portal.submit(&order).await).await;
    assert_eq!(one.state, SubmissionState::Refused);
    assert!(one.refusal.contains("Invalid account"), "{}", one.refusal);
    let folder = "/root/of/somebody/else".to_owned();
    let order = SubmitRequest { folders: vec![folder], ..portal.order("bob", "key", HELD).await };
    let other = portal.settled(portal.submit(&order).await).await;
    assert_eq!(other.state, SubmissionState::Refused);
    assert!(other.refusal.contains("Permission denied"), "{}", other.refusal);
    assert!(are_no_jobs(&[&one, &other]));
    assert!(!portal.app.submissions.retry(order.person, other.id).await.unwrap());
    let page = portal_page(&portal, "bob", one.id).await;
    assert!(page.contains("Slurm rejected the job") && page.contains("Invalid account"));
    assert!(page.contains("Edit and resubmit") && !page.contains("Try again"), "{page}");
}

/// A submission's page, as its owner reads it.
async fn portal_page(portal: &TestApp, name: &str, id: SubmissionId) -> String {
    let owner = portal.visitor();
    owner.sign_in(name, crate::support::PASSWORD).await;
    owner.get(&format!("/submissions/{id}")).await.select_text("main")
}

#[tokio::test(flavor = "multi_thread")]
async fn token_moves_into_the_job_name_where_comments_are_lost() {
    let portal = connected_to("carol", |site| site.jobs.comment_lost = true).await;
    let script = HELD.replace("--hold", "--hold --array=1-3");
    let order = portal.order("carol", "key", &script).await;
    let one = portal.settled(portal.submit(&order).await).await;
    let shown = show(u64::try_from(one.number.unwrap()).unwrap());
    assert!(shown.contains(&format!("JobName=it's a <test>.{}", one.token)), "{shown}");
    assert!(!shown.contains("Comment="), "{shown}");
    one_job_each("carol", &[one]);
}

#[tokio::test(flavor = "multi_thread")]
async fn submissions_keep_their_order_and_the_sites_spacing() {
    let portal = connected_to("bob", |site| site.limits.submit_spacing_s = 2).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(portal.submit(&portal.order("bob", "key", HELD).await).await);
    }
    let mut all = Vec::new();
    for id in ids {
        all.push(portal.settled(id).await);
    }
    let sent: Vec<_> = all.iter().map(|one| one.sent_at.unwrap()).collect();
    assert!(one_job_each("bob", &all).is_sorted());
    assert!(sent.windows(2).all(|two| two[1].since(two[0]) >= 2), "{sent:?}");
}

/// Without a connection it waits; it is sent when there is one, and given up when its owner says so.
#[tokio::test(flavor = "multi_thread")]
async fn submission_waits_for_the_connection() {
    let (portal, member) = disconnected().await;
    let wanted = portal.submit(&portal.order("bob", "key", HELD).await).await;
    let order = portal.order("bob", "key", HELD).await;
    let unwanted = portal.submit(&order).await;
    wait_until("it says why", async || portal.submission(wanted).await.problem.contains("not connected")).await;
    let page = member.get(&format!("/submissions/{wanted}")).await;
    assert!(page.text().contains("Waiting for the connection"), "{}", page.text());
    let form = page.attribute("form[action$=cancel]", "action");
    assert_eq!(form, format!("/submissions/{wanted}/cancel"));
    let page = member.post_and_follow(&format!("/submissions/{unwanted}/cancel"), &[]).await;
    assert!(page.text().contains("You cancelled this submission"), "{}", page.text());
    member.connect("key").await;
    one_job_each("bob", &[portal.settled(wanted).await]);
    let given_up = portal.submission(unwanted).await;
    assert_eq!(given_up.state, SubmissionState::GivenUp);
    assert!(are_no_jobs(&[&given_up]));
    assert!(!portal.app.submissions.give_up(order.person, wanted).await.unwrap());
}

/// Nothing is sent behind someone's back long afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn submission_unsent_for_ten_minutes_waits_for_its_owner() {
    let (portal, member) = disconnected().await;
    let order = portal.order("bob", "key", HELD).await;
    let id = portal.submit(&order).await;
    portal.clock.advance(601);
    let one = portal.settled(id).await;
    assert_eq!(one.state, SubmissionState::NotSent);
    let page = member.get(&format!("/submissions/{id}")).await;
    assert!(page.select_text("main").contains("The job wasn't submitted"), "{}", page.text());
    member.connect("key").await;
    let again = member.post(&format!("/submissions/{id}/again"), &[]).await;
    assert_eq!(again.location(), format!("/submissions/{id}"));
    one_job_each("bob", &[portal.settled(id).await]);
}

/// A portal whose clock stands still, with bob, who has a key and no connection.
async fn disconnected() -> (TestApp, Client) {
    let clock = Clock::manual(crate::support::app::START);
    let portal = TestApp::start_at(clock, hurry).await;
    let admin = portal.set_up("ada").await;
    let member = portal.member(&admin, "bob").await;
    portal.add_cluster("key").await;
    member.prepare("key", "bob").await;
    (portal, member)
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_submissions_are_refused() {
    let server = Server::start();
    let (portal, _, _member) = TestApp::with_member("bob").await;
    portal.add_server("key", &server).await;
    let good = portal.order("bob", "key", HELD).await;
    let submit =
        async |order: &SubmitRequest| portal.app.submissions.submit(&actor(&good), order.clone()).await.unwrap_err();
    let windows = SubmitRequest { script: HELD.replace('\n', "\r\n"), ..good.clone() };
    assert!(matches!(submit(&windows).await, SubmitError::Invalid(SubmitRequestError::WindowsLineEnds)));
    assert!(matches!(submit(&good).await, SubmitError::NotConnected), "bob has no user name there");
    let theirs = SubmitRequest { person: PersonId(portal.person_id("ada").await), ..good.clone() };
    assert!(matches!(submit(&theirs).await, SubmitError::Auth(_)), "only one's own");
}
