use proptest::prelude::*;

use super::*;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::units::TimeLimit;

const NOW: UnixTime = UnixTime(1_794_820_320);

fn job(reason: &str) -> SlurmJob {
    SlurmJob { reason: reason.to_owned(), time_limit: TimeLimit::Minutes(60), ..SlurmJob::default() }
}

fn of(reason: &str) -> WaitExplanation {
    explain_wait(&WaitingJob::new(&job(reason), NOW))
}

/// Every reason in Slurm's list that applies to pending jobs.
const ALL: &str = "None Prolog Priority Dependency Resources PartitionNodeLimit PartitionTimeLimit PartitionDown \
    PartitionInactive JobHeldAdmin JobHeldUser BeginTime Licenses AssociationJobLimit AssociationResourceLimit \
    AssociationTimeLimit Reservation ReqNodeNotAvail FrontEndDown SchedDefer NodeDown BadConstraints SystemFailure \
    JobLaunchFailure NonZeroExitCode RaisedSignal TimeLimit InactiveLimit InvalidAccount InvalidQOS QOSUsageThreshold \
    QOSJobLimit QOSResourceLimit QOSTimeLimit Cleaning QOSNotAllowed AccountNotAllowed DependencyNeverSatisfied \
    QOSGrpCpuLimit QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit QOSGrpJobsLimit QOSGrpMemLimit QOSGrpNodeLimit \
    QOSGrpSubmitJobsLimit QOSGrpWallLimit QOSMaxCpuPerJobLimit QOSMaxCpuMinutesPerJobLimit QOSMaxNodePerJobLimit \
    QOSMaxWallDurationPerJobLimit QOSMaxCpuPerUserLimit QOSMaxJobsPerUserLimit QOSMaxNodePerUserLimit \
    QOSMaxSubmitJobPerUserLimit QOSMinCpuNotSatisfied AssocGrpCpuLimit AssocGrpCPUMinutesLimit \
    AssocGrpCPURunMinutesLimit AssocGrpJobsLimit AssocGrpMemLimit AssocGrpNodeLimit AssocGrpSubmitJobsLimit \
    AssocGrpWallLimit AssocMaxJobsLimit AssocMaxCpuPerJobLimit AssocMaxCpuMinutesPerJobLimit AssocMaxNodePerJobLimit \
    AssocMaxWallDurationPerJobLimit AssocMaxSubmitJobLimit JobHoldMaxRequeue JobArrayTaskLimit BurstBufferResources \
    BurstBufferStageIn BurstBufferOperation PowerNotAvail PowerReserved AssocMaxCpuPerNode AssocGrpMemMinutes \
    AssocGrpMemRunMinutes AssocMaxMemPerJob AssocMaxMemPerNode AssocMaxMemMinutesPerJob AssocMaxLicensePerJob \
    QOSMaxCpuPerNode QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes QOSMaxMemoryPerJob QOSMaxMemoryPerNode \
    QOSMaxMemoryPerUser QOSMaxMemoryMinutesPerJob QOSMinMemory QOSMinNode QOSMinGRES QOSMinLicense QOSMinBB \
    QOSMinEnergy QOSMinBilling QOSMinUnknown DeadLine MaxJobsPerAccount MaxSubmitJobsPerAccount MaxCpuPerAccount \
    MaxMemoryPerAccount MaxNodePerAccount PartitionConfig AccountingPolicy FedJobLock OutOfMemory MaxMemPerLimit \
    ReservationDeleted ReservationInvalid Constraints";

#[test]
fn all_of_slurms_reasons_have_words() {
    let mut all: Vec<String> = ALL.split_whitespace().map(str::to_owned).collect();
    for what in ["Unknown", "Energy", "GRES", "License", "BB", "Billing"] {
        for form in [
            "AssocGrp#",
            "AssocGrp#Minutes",
            "AssocGrp#RunMinutes",
            "AssocMax#PerJob",
            "AssocMax#PerNode",
            "AssocMax#MinutesPerJob",
            "QOSGrp#",
            "QOSGrp#Minutes",
            "QOSGrp#RunMinutes",
            "QOSMax#PerJob",
            "QOSMax#PerNode",
            "QOSMax#PerUser",
            "QOSMax#MinutesPerJob",
            "QOSMin#",
            "Max#PerAccount",
        ] {
            all.push(form.replace('#', what));
        }
    }
    for reason in all {
        let why = of(&reason);
        assert!(!why.sentence.contains("can't explain"), "{reason}");
        assert!(!why.headline.is_empty() && why.headline.len() <= 42, "{reason}: {}", why.headline);
        assert!(why.sentence.ends_with('.') && why.slurm == reason, "{reason}: {}", why.sentence);
        assert!(!why.sentence.contains("  ") && !why.sentence.contains("as many memory"), "{}", why.sentence);
        if why.kind == WaitKind::Never {
            assert!(!why.advice.is_empty(), "{reason} says nothing to do");
        }
    }
}

#[test]
fn how_serious() {
    for (reason, kind) in [
        ("", WaitKind::Soon),
        ("Priority", WaitKind::Normal),
        ("(Resources)", WaitKind::Normal),
        ("DependencyNeverSatisfied", WaitKind::Never),
        ("PartitionTimeLimit", WaitKind::Never),
        ("QOSMaxWallDurationPerJobLimit", WaitKind::Never),
        ("AssocMaxWallDurationPerJobLimit", WaitKind::Never),
        ("QOSMaxCpuPerJobLimit", WaitKind::Never),
        ("QOSMaxCpuPerNode", WaitKind::Never),
        ("BadConstraints", WaitKind::Never),
        ("AssocGrpBillingMinutes", WaitKind::Limit),
        ("AssocGrpCpuLimit", WaitKind::Limit),
        ("QOSMaxJobsPerUserLimit", WaitKind::Limit),
        ("JobHeldUser", WaitKind::Held),
        ("launch failed requeued held", WaitKind::Held),
        ("launch_failed_requeued_held", WaitKind::Held),
        ("BeginTime", WaitKind::Later),
        ("ReqNodeNotAvail, Reserved for maintenance", WaitKind::Site),
        ("ReqNodeNotAvail,_Reserved_for_maintenance", WaitKind::Site),
        ("ReqNodeNotAvail,_UnavailableNodes:c[1-4]", WaitKind::Normal),
        ("ReqNodeNotAvail, May be reserved for other job", WaitKind::Normal),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            WaitKind::Normal,
        ),
        ("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved", WaitKind::Normal),
        ("PartitionDown", WaitKind::Site),
    ] {
        assert_eq!(of(reason).kind, kind, "{reason}");
    }
    assert!(of("JobHeldUser").advice[0].contains("release"));
    assert!(of("AssocGrpBillingMinutes").sentence.contains("used up"));
    assert!(of("AssocGrpMemLimit").sentence.contains("as much memory"));
}

#[test]
fn words_that_nobody_knows_are_shown() {
    let why = of("SomethingNewer");
    assert!(why.sentence.contains("SomethingNewer") && why.slurm == "SomethingNewer");
    assert!(of(&"x".repeat(10_000)).sentence.len() < 600);
}

#[test]
fn an_ordinary_wait_tells_of_the_queue() {
    let mut job = job("Priority");
    job.time_limit = TimeLimit::Minutes(1440);
    job.start = Some(NOW.plus(86_400));
    let waiting = WaitingJob {
        ahead: Some(QueuePosition { jobs_ahead: 42, waiting: 1300 }),
        own_waiting: 12,
        group_waiting: Some(20),
        fair_share_counts: true,
        level_fs: Some(0.4),
        factors: Some(PriorityPoints { age: 10.0, fairshare: 3.0, total: 13.0, ..PriorityPoints::default() }),
        ..WaitingJob::new(&job, NOW)
    };
    let told = explain_wait(&waiting);
    assert_eq!((told.kind, told.headline.as_str()), (WaitKind::Normal, "Other jobs come first"));
    assert!(told.sentence.ends_with("42 of 1,300 pending jobs there are ahead of it."), "{}", told.sentence);
    assert_eq!(told.start, job.start);
    let advice = told.advice.join(" ");
    for part in [
        "estimate",
        "Its time limit is 1 day.",
        "12 other jobs of yours are pending; they compete",
        "7 jobs of other group members are also pending",
        "more than its share",
        "the time it has waited",
    ] {
        assert!(advice.contains(part), "{part}: {advice}");
    }
    let short =
        explain_wait(&WaitingJob { level_fs: Some(2.0), ..WaitingJob::new(&super::tests::job("Priority"), NOW) });
    assert_eq!(short.advice, ["Its priority rises while it waits."]);
}

#[test]
fn a_start_within_the_hour_is_soon() {
    let mut job = job("Resources");
    job.start = Some(NOW.plus(600));
    assert_eq!(explain_wait(&WaitingJob::new(&job, NOW)).kind, WaitKind::Soon);
    // An estimate in the past says nothing.
    job.start = Some(NOW.plus(-600));
    let told = explain_wait(&WaitingJob::new(&job, NOW));
    assert_eq!((told.kind, told.start), (WaitKind::Normal, None));
}

#[test]
fn a_set_time_is_given_beside_the_words() {
    let mut job = job("BeginTime");
    job.eligible = Some(NOW.plus(7_200));
    let told = explain_wait(&WaitingJob::new(&job, NOW));
    assert_eq!((told.kind, told.start), (WaitKind::Later, job.eligible));
}

#[test]
fn dependencies_are_named() {
    let mut job = job("Dependency");
    let mut told = |dependency: &str| {
        dependency.clone_into(&mut job.dependency);
        explain_wait(&WaitingJob::new(&job, NOW)).sentence
    };
    assert_eq!(told("afterok:123(unfulfilled)"), "It's set to start after job 123 has completed successfully.");
    assert_eq!(
        told("afterany:7_*(unfulfilled),afternotok:8_3(unfulfilled)"),
        "It's set to start after job 7 has ended and job 8_3 has failed."
    );
    assert_eq!(
        told("afterany:7:8?after:9+30"),
        "It's set to start after job 7 has ended or job 8 has ended or job 9 has started."
    );
    assert!(told("singleton(unfulfilled)").contains("same name"));
    assert!(told("afterok:1:2:3:4:5:6:7").ends_with("and 2 more jobs."));
    assert_eq!(told("<b>"), "It's set to start after another job.");
}

#[test]
fn limits_with_figures() {
    let mut job = job("PartitionTimeLimit");
    job.time_limit = TimeLimit::Minutes(4320);
    let told = explain_wait(&WaitingJob { partition_max_minutes: Some(1440), ..WaitingJob::new(&job, NOW) });
    assert!(told.sentence.contains("requests 3 days") && told.sentence.contains("time limit is 1 day"));
    assert_eq!(told.advice[0], "Reduce its time limit to 1 day or less.");
    "QOSMaxWallDurationPerJobLimit".clone_into(&mut job.reason);
    assert!(explain_wait(&WaitingJob::new(&job, NOW)).sentence.contains("3 days, more than a single job is allowed"));
    "JobArrayTaskLimit".clone_into(&mut job.reason);
    job.tasks = ArrayTaskSet::parse("1-50%3");
    assert!(explain_wait(&WaitingJob::new(&job, NOW)).sentence.contains("this array to 3 tasks"));
}

#[test]
fn a_limit_that_the_job_alone_exceeds() {
    for (reason, is_account_idle) in [
        ("QOSMaxCpuPerUserLimit", false),
        ("AssocGrpCpuLimit", true),
        ("AssocGrpCPURunMinutesLimit", true),
        ("MaxMemoryPerAccount", true),
    ] {
        let job = job(reason);
        let alone = WaitingJob { is_own_idle: true, is_account_idle, ..WaitingJob::new(&job, NOW) };
        let told = explain_wait(&alone);
        assert_eq!((told.kind, told.headline.as_str()), (WaitKind::Never, "More than the limit allows"), "{reason}");
        assert!(told.sentence.contains("can never start") && !told.advice.is_empty(), "{reason}");
        assert_eq!(explain_wait(&WaitingJob::new(&job, NOW)).kind, WaitKind::Limit, "{reason}: others may be running");
    }
    // Others of the account may be running, or the limit is one of past usage, or of everyone in a QOS.
    for reason in ["AssocGrpCpuLimit", "AssocGrpCPUMinutesLimit", "QOSGrpCpuLimit"] {
        let job = job(reason);
        let alone = WaitingJob { is_own_idle: true, ..WaitingJob::new(&job, NOW) };
        assert_eq!(explain_wait(&alone).kind, WaitKind::Limit, "{reason}");
    }
}

#[test]
fn several_reasons_of_one_row() {
    let mut several = job("JobArrayTaskLimit,Priority");
    several.tasks = ArrayTaskSet::parse("1-50%3");
    let told = explain_wait(&WaitingJob::new(&several, NOW));
    assert_eq!((told.kind, told.slurm.as_str()), (WaitKind::Limit, "JobArrayTaskLimit,Priority"));
    assert!(told.sentence.contains("3 tasks"), "{}", told.sentence);
    let advice = told.advice.join(" ");
    assert!(advice.contains("Other tasks of this array: Other jobs come first."), "{advice}");
    let told = of("DependencyNeverSatisfied,Priority");
    assert_eq!(told.kind, WaitKind::Normal, "some of it can still start");
    assert!(told.advice.iter().any(|advice| advice.starts_with("Another reason: Can't start.")), "{:?}", told.advice);
    assert_eq!(of("PartitionTimeLimit,QOSMaxWallDurationPerJobLimit").kind, WaitKind::Never);
    assert!(
        can_never_start("PartitionTimeLimit,PartitionNodeLimit") && !can_never_start("PartitionTimeLimit,Priority")
    );
}

#[test]
fn who_can_release() {
    for reason in ["JobHeldUser", "JobHoldMaxRequeue", "launch_failed_requeued_held"] {
        assert!(can_release(reason), "{reason}");
    }
    for reason in ["JobHeldAdmin", "(JobHeldAdmin)", "Priority", "", "DependencyNeverSatisfied"] {
        assert!(!can_release(reason), "{reason}");
    }
}

proptest! {
    #[test]
    fn any_reason_is_survived(
        reason in "((QOS|Assoc|Grp|Max|Min|Cpu|Minutes|Run|Per|Job|User|Limit|,|_| ){0,10})|\\PC{0,400}",
        dependency in "((after|ok|any|:|[0-9]{1,30}|,|\\?|_|\\*){0,60})|\\PC{0,80}",
    ) {
        let job = SlurmJob { dependency, ..job(&reason) };
        let why = explain_wait(&WaitingJob::new(&job, NOW));
        prop_assert!(!why.headline.is_empty() && why.sentence.ends_with('.'));
        prop_assert!(why.sentence.chars().count() < 1000);
    }
}
