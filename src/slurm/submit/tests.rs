use proptest::prelude::*;

use super::*;

const NONCE: &str = "k3v9q2xw";

#[test]
fn the_token_travels_in_one_of_two_ways() {
    assert_eq!(args(SubmitTokenField::Comment, "tok", "a b"), ["--parsable", "--comment=portolan:tok"]);
    assert_eq!(args(SubmitTokenField::JobName, "tok", "a b"), ["--parsable", "--job-name=a b.tok"]);
    for carrier in [SubmitTokenField::Comment, SubmitTokenField::JobName] {
        assert_eq!(SubmitTokenField::from_stored(carrier.as_str()), carrier);
    }
}

#[test]
fn numbers_are_found_among_what_sites_print() {
    for said in [
        "20012\n",
        "20012;lab\n",
        "Welcome to 3 days of maintenance!\n12 jobs wait.\n20012",
        "20012\nRemember to check your quota.\n",
    ] {
        assert_eq!(parse_sbatch_answer(0, said, ""), SbatchAnswer::Accepted(20012), "{said}");
    }
    // `--wait` in a script: the ID is printed first, and then the command times out.
    assert_eq!(parse_sbatch_answer(137, "20012\n", ""), SbatchAnswer::Accepted(20012));
    for none in ["", "0\n", "-3\n", "20012 jobs\n", "2;a b\n", "99999999999999999999999\n"] {
        assert_eq!(parse_sbatch_answer(0, none, ""), SbatchAnswer::Unclear(none.trim().to_owned()), "{none}");
    }
}

#[test]
fn what_slurm_says_against_it() {
    let said = |words: &str| parse_sbatch_answer(1, "", &format!("sbatch: error: {words}\n"));
    for refused in [
        "Batch job submission failed: Invalid account or account/partition combination specified",
        "Batch job submission failed: Requested node configuration is not available",
        "Unable to open file x",
    ] {
        assert!(matches!(said(refused), SbatchAnswer::Refused(words) if words.contains(refused)));
    }
    for unsure in [
        "Batch job submission failed: Socket timed out on send/recv operation",
        "Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "Batch job submission failed: Zero Bytes were transmitted or received",
        "Batch job submission failed: Unexpected message received",
    ] {
        assert!(matches!(said(unsure), SbatchAnswer::Unconfirmed(_)), "{unsure}");
    }
    let busy = "Batch job submission failed: Rate limit exceeded, please retry momentarily";
    assert!(matches!(said(busy), SbatchAnswer::RetryLater(_)));
    assert!(matches!(parse_sbatch_answer(137, "", ""), SbatchAnswer::Unconfirmed(_)));
    assert!(matches!(parse_sbatch_answer(124, "", "sbatch: error: x"), SbatchAnswer::Unconfirmed(_)));
    assert!(matches!(parse_sbatch_answer(127, "", "sh: 1: sbatch: not found"), SbatchAnswer::Refused(_)));
    assert!(matches!(parse_sbatch_answer(1, "", "Choose a project first."), SbatchAnswer::Unclear(_)));
    assert!(matches!(parse_sbatch_answer(1, "", ""), SbatchAnswer::Unclear(_)));
}

#[test]
fn banners_lose_their_colours_and_keep_their_lines() {
    let said = "\u{1b}[1;31mGPU type required\u{1b}[0m\n\n  e.g. --gpus=h100:1\u{202e}\n";
    assert_eq!(combine_output("out\n", said), "GPU type required\ne.g. --gpus=h100:1\nout");
}

/// As `squeue` and `sacct` print it, including an array and a name with a line break.
#[test]
fn tokens_are_found_wherever_they_are() {
    let m = format!("_{NONCE}");
    let queue = format!("Welcome!\n20020_[1-3]{m}sbatch{m}portolan:abc{m}\n20021{m}a\n7 b.def{m}(null){m}\n");
    assert_eq!(find_in_queue(queue.as_bytes(), NONCE, "abc"), Some(20020));
    assert_eq!(find_in_queue(queue.as_bytes(), NONCE, "xyz"), None);
    assert_eq!(find_in_queue(queue.as_bytes(), NONCE, "def"), Some(20021), "no record out of a name");
    let history = format!(
        "20023_1{m}x{m}{m}sbatch --comment=portolan:abc{m}\n20024{m}b\nc.def{m}other{m}{m}\n20025+1{m}b.def{m}{m}{m}\n"
    );
    assert_eq!(find_in_history(history.as_bytes(), NONCE, "abc"), Some(20023), "by its submit line");
    assert_eq!(find_in_history(history.as_bytes(), NONCE, "def"), Some(20024));
    assert_eq!(find_in_history(history.as_bytes(), NONCE, ""), None);
    assert_eq!(find_in_history(history.as_bytes(), "bad", "def"), None);
}

#[test]
fn only_good_names_are_asked_for() {
    let queue = queue_args(NONCE, "alice").unwrap().join(" ");
    let format = "JobArrayID:_k3v9q2xw,Name:_k3v9q2xw,Comment:_k3v9q2xw";
    assert_eq!(queue, format!("-h -a -t all -u alice -O {format}"));
    let history = history_args(NONCE, "alice", UnixTime(5)).unwrap().join(" ");
    assert!(history.contains("--starttime=uts5"), "{history}");
    for bad in ["", "-x", "a b", "a:b"] {
        assert_eq!(queue_args(NONCE, bad), None);
        assert_eq!(history_args(NONCE, bad, UnixTime(5)), None);
    }
}

proptest! {
    #[test]
    fn any_answer_is_survived(code in -1_i32..300, out in "(?s).{0,80}", err in "(?s).{0,80}") {
        let _ = parse_sbatch_answer(code, &out, &err);
        let _ = (find_in_queue(out.as_bytes(), NONCE, "a"), find_in_history(out.as_bytes(), NONCE, "a"));
    }
}
