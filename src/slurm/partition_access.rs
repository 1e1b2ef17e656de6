//! `scontrol show partition`: who may use the partitions that `sinfo` lists, and on which terms.

use super::associations::SubmitAccount;
use super::partitions::Partition;

pub const PROGRAM: &str = "scontrol";
/// Its arguments. `-o`: one line for each partition.
pub const ARGS: &[&str] = &["-o", "show", "partition"];

/// Adds what is said about these partitions. Of the lists of accounts, only what they mean for the person's own
/// accounts is kept: such a list can name all accounts of a centre.
pub fn apply_access(answer: &str, partitions: &mut [Partition], accounts: &[SubmitAccount]) {
    for line in answer.lines().take(super::MAX_LINES) {
        let field = |key: &str| find_field(line, key);
        let name = field("PartitionName").unwrap_or_default();
        let Some(partition) = partitions.iter_mut().find(|partition| partition.name == name) else { continue };
        let allowed = field("AllowAccounts").filter(|list| !list.eq_ignore_ascii_case("all"));
        let denied = field("DenyAccounts");
        let is_closed = |account: &&SubmitAccount| match (allowed, denied) {
            (Some(list), _) => !is_listed(account, list),
            (None, Some(list)) => is_listed(account, list),
            (None, None) => false,
        };
        partition.closed_to = accounts.iter().filter(is_closed).map(|account| account.name.clone()).collect();
        partition.is_restricted = [field("RootOnly"), field("ReqResv")].contains(&Some("YES"));
        partition.is_preemptible =
            field("PreemptMode").is_some_and(|mode| mode.split(',').any(|word| matches!(word, "REQUEUE" | "CANCEL")));
        partition.max_nodes = field("MaxNodes").and_then(|most| most.parse().ok());
    }
}

/// The value of a key; none where there is none.
fn find_field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let value = |word: &'a str| word.strip_prefix(key)?.strip_prefix('=');
    line.split_ascii_whitespace().find_map(value).and_then(super::text::value_if_set)
}

/// Whether a list names the account, as people or as Slurm call it. Slurm ignores case here.
fn is_listed(account: &SubmitAccount, list: &str) -> bool {
    let names = || account.slurm_names.iter().chain([&account.name]);
    list.split(',').any(|listed| names().any(|name| name.eq_ignore_ascii_case(listed)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The partition `gpu` of the test cluster on Slurm 24.11, with `-o`.
    const GPU: &str = "PartitionName=gpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=NO \
        QoS=N/A DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO ExclusiveTopo=NO GraceTime=0 Hidden=NO \
        MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED MaxCPUsPerSocket=UNLIMITED \
        Nodes=g[1-2] PriorityJobFactor=10 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE \
        PreemptMode=OFF State=UP TotalCPUs=16 TotalNodes=2 SelectTypeParameters=NONE JobDefaults=(null) \
        DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED \
        TRES=cpu=16,mem=32000M,node=2,billing=28,gres/gpu=3,gres/gpu:t4=2,gres/gpu:v100=1 \
        TRESBillingWeights=CPU=1.0,GRES/gpu=4.0";

    fn account(name: &str) -> SubmitAccount {
        SubmitAccount { name: name.to_owned(), slurm_names: vec![name.to_owned()], ..SubmitAccount::default() }
    }

    fn gpu_after(answer: &str) -> Partition {
        let mut partitions = ["cpu", "gpu"].map(|name| Partition { name: name.to_owned(), ..Partition::default() });
        apply_access(answer, &mut partitions, &[account("def-jones"), account("def-smith")]);
        let [cpu, gpu] = partitions;
        assert_eq!(cpu, Partition { name: "cpu".to_owned(), ..Partition::default() });
        gpu
    }

    #[test]
    fn accounts_that_a_partition_takes() {
        let open = gpu_after(GPU);
        assert_eq!(open, Partition { name: "gpu".to_owned(), ..Partition::default() });
        let all = "AllowAccounts=ALL";
        for (said, closed) in [
            ("AllowAccounts=root,Def-Smith", &["def-jones"][..]),
            ("AllowAccounts=root", &["def-jones", "def-smith"]),
            ("DenyAccounts=def-smith,x", &["def-smith"]),
            ("AllowAccounts=(null)", &[]),
        ] {
            assert_eq!(gpu_after(&GPU.replace(all, said)).closed_to, closed, "{said}");
        }
    }

    #[test]
    fn terms_of_a_partition() {
        let change = |from: &str, to: &str| gpu_after(&GPU.replace(from, to));
        assert_eq!(change("MaxNodes=UNLIMITED", "MaxNodes=4").max_nodes, Some(4));
        assert!(change("ReqResv=NO", "ReqResv=YES").is_restricted);
        assert!(change("RootOnly=NO", "RootOnly=YES").is_restricted);
        assert!(change("PreemptMode=OFF", "PreemptMode=GANG,REQUEUE").is_preemptible);
        assert!(!change("PreemptMode=OFF", "PreemptMode=GANG,SUSPEND").is_preemptible);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,300}", cut in 0_usize..900) {
            let _ = gpu_after(&GPU[..cut.min(GPU.len())]);
            let mut none = Vec::new();
            apply_access(&text, &mut none, &[account("a")]);
        }
    }
}
