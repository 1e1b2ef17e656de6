//! `sinfo`: the partitions, and the hardware and states of their nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::gres;
use super::text;
use super::units::{TimeLimit, parse_memory_mb};

pub const PROGRAM: &str = "sinfo";
/// Its arguments. `-e`: nodes of different sizes get separate rows instead of one that says `192+`. Without `-a`:
/// partitions that are hidden or closed to the person are left out.
pub const ARGS: &[&str] = &["-h", "-e", "-o", "%P|%a|%l|%D|%T|%c|%m|%G"];

const MAX_PARTITIONS: usize = 200;
/// The most node states kept for a partition; Slurm has about twenty.
const MAX_STATES: usize = 40;
/// The most GPU models kept for a partition.
const MAX_GPU_MODELS: usize = 50;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Partition {
    /// The name to request.
    pub name: String,
    /// Whether jobs that name no partition run here.
    pub is_default: bool,
    /// Whether it accepts and starts jobs; otherwise it is down, draining or inactive.
    pub is_up: bool,
    /// The longest time limit of a job here.
    pub time_limit: TimeLimit,
    /// Nodes by state (`idle`, `mixed`, `allocated`, `drained`, …), without Slurm's suffixes.
    pub states: BTreeMap<String, u32>,
    pub cpus: Option<PerNodeRange>,
    /// Memory per node, in mebibytes.
    pub memory_mb: Option<PerNodeRange>,
    pub gpus: Vec<PartitionGpu>,
    /// The person's accounts that it doesn't name among those it takes, or refuses.
    pub closed_to: Vec<String>,
    /// Whether it takes only jobs of administrators or in reservations.
    pub is_restricted: bool,
    /// Whether other jobs can push out those that run here.
    pub is_preemptible: bool,
    /// The most nodes of a job here; none: no limit.
    pub max_nodes: Option<u32>,
}

/// From the smallest to the largest node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PerNodeRange {
    pub least: u64,
    pub most: u64,
}

/// One GPU model in a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartitionGpu {
    /// The name to request; none where the site names no models.
    pub model: Option<String>,
    /// The most on one node.
    pub per_node_most: u32,
    /// How many nodes have it.
    pub nodes: u32,
}

/// Parses the output, in which each row is about identical nodes of one partition.
pub fn parse_partitions(answer: &str) -> Vec<Partition> {
    let mut found: Vec<Partition> = Vec::new();
    for line in answer.lines().take(super::MAX_LINES) {
        let fields: Vec<&str> = line.trim().split('|').collect();
        let [partition, up, limit, nodes, state, cpus, memory, gres] = *fields.as_slice() else { continue };
        let name = partition.strip_suffix('*').unwrap_or(partition);
        let Some(nodes) = nodes.parse().ok().filter(|_| text::is_name(name)) else { continue };
        let at = match found.iter().position(|known| known.name == name) {
            Some(at) => at,
            None if found.len() < MAX_PARTITIONS => {
                found.push(Partition { name: name.to_owned(), ..Partition::default() });
                found.len() - 1
            }
            None => continue,
        };
        let known = &mut found[at];
        known.is_default |= name.len() < partition.len();
        known.is_up |= up == "up";
        known.time_limit = TimeLimit::parse(limit);
        // A partition without nodes has one row, with 0 nodes in state n/a.
        if nodes > 0 {
            known.add_nodes(nodes, state, cpus, memory, gres);
        }
    }
    found
}

/// `192+` means 192 or more, where nodes of several sizes share a row.
fn strip_plus(field: &str) -> &str {
    field.strip_suffix('+').unwrap_or(field)
}

impl Partition {
    pub fn node_count(&self) -> u32 {
        self.states.values().fold(0, |sum, nodes| sum.saturating_add(*nodes))
    }

    fn add_nodes(&mut self, nodes: u32, state: &str, cpus: &str, memory: &str, gres: &str) {
        let state = state.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
        let room = self.states.len() < MAX_STATES || self.states.contains_key(&state);
        if room && text::is_name(&state) {
            let count = self.states.entry(state).or_default();
            *count = count.saturating_add(nodes);
        }
        widen_range(&mut self.cpus, strip_plus(cpus).parse().ok());
        widen_range(&mut self.memory_mb, parse_memory_mb(strip_plus(memory)));
        for gpus in gres::parse_gpus(gres) {
            self.add_gpus(gpus, nodes);
        }
    }

    fn add_gpus(&mut self, gpus: gres::GpuCount, nodes: u32) {
        if let Some(known) = self.gpus.iter_mut().find(|known| known.model == gpus.model) {
            known.per_node_most = known.per_node_most.max(gpus.count);
            known.nodes = known.nodes.saturating_add(nodes);
        } else if self.gpus.len() < MAX_GPU_MODELS {
            self.gpus.push(PartitionGpu { model: gpus.model, per_node_most: gpus.count, nodes });
        }
    }
}

fn widen_range(span: &mut Option<PerNodeRange>, value: Option<u64>) {
    if let Some(value) = value.filter(|value| *value > 0) {
        let PerNodeRange { least, most } = span.unwrap_or(PerNodeRange { least: value, most: value });
        *span = Some(PerNodeRange { least: least.min(value), most: most.max(value) });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V22: &str = include_str!("../../tests/fixtures/slurm/sinfo-22.05.txt");
    const TRILLIUM: &str = include_str!("../../tests/fixtures/slurm/sinfo-trillium.txt");

    fn states(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
        list.iter().map(|(state, nodes)| ((*state).to_owned(), *nodes)).collect()
    }

    fn gpu(model: &str, per_node_most: u32, nodes: u32) -> PartitionGpu {
        PartitionGpu { model: Some(model.into()), per_node_most, nodes }
    }

    #[test]
    fn the_demo_cluster() {
        let found = parse_partitions(V22);
        let names: Vec<_> = found.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["cpu", "gpu", "debug", "trial", "empty"]);
        let [cpu, gpus, debug, trial, empty] = found.as_slice() else { panic!() };
        assert!(cpu.is_default && cpu.is_up && !gpus.is_default);
        assert_eq!(cpu.time_limit, TimeLimit::Minutes(7 * 1440));
        assert_eq!(cpu.states, states(&[("allocated", 1), ("drained", 1), ("idle", 1)]));
        assert_eq!(cpu.cpus, Some(PerNodeRange { least: 8, most: 8 }));
        assert_eq!(cpu.memory_mb, Some(PerNodeRange { least: 16_000, most: 16_000 }));
        assert_eq!(cpu.node_count(), 3);
        assert_eq!(gpus.gpus, [gpu("t4", 2, 1), gpu("v100", 1, 1)]);
        assert_eq!(debug.time_limit, TimeLimit::Unlimited);
        assert!(!trial.is_up);
        assert_eq!((empty.node_count(), empty.cpus, empty.is_up), (0, None, true));
    }

    #[test]
    fn trillium() {
        let found = parse_partitions(TRILLIUM);
        assert_eq!(found[0].states, states(&[("down", 2)]));
        assert_eq!(found[0].time_limit, TimeLimit::Minutes(60));
        assert!(found[1].is_default);
        assert_eq!(
            found[1].states,
            states(&[("allocated", 1219), ("down", 3), ("reserved", 4)]),
            "marks behind a state go"
        );
        assert_eq!(found[1].cpus, Some(PerNodeRange { least: 192, most: 192 }));
    }

    #[test]
    fn nodes_of_several_kinds_share_a_partition() {
        // The GPU lists are from Narval; the rest is made up.
        let found = parse_partitions(
            "gpubase_bygpu_b1|up|3:00:00|2|mixed-|64|510000|gpu:a100_3g.20gb:3(S:1,3,7),gpu:a100_1g.5gb:7(S:1,5,7)\n\
             gpubase_bygpu_b1|up|3:00:00|9|allocated+|48+|1020000+|gpu:a100:4(S:0-1)\n\
             gpubase_bygpu_b1|up|3:00:00|1|idle~|64|510000|gpu:a100_3g.20gb:4(S:1)\n",
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].states, states(&[("allocated", 9), ("idle", 1), ("mixed", 2)]));
        assert_eq!(found[0].cpus, Some(PerNodeRange { least: 48, most: 64 }));
        assert_eq!(found[0].memory_mb, Some(PerNodeRange { least: 510_000, most: 1_020_000 }));
        assert_eq!(found[0].gpus, [gpu("a100_3g.20gb", 4, 3), gpu("a100_1g.5gb", 7, 2), gpu("a100", 4, 9)]);
    }

    #[test]
    fn noise_is_skipped_and_floods_are_bounded() {
        assert!(parse_partitions("Command rejected by slurm_commands.sh: sinfo -h -o %P|%a|%l|%D").is_empty());
        assert!(parse_partitions("a|b|c\n<b>|up|1:00|1|idle|1|1|gpu:1\n|up|1|1|idle|1|1|\n").is_empty());
        let row = |name: &str, n: u32| format!("{name}|up|1:00|4294967295|s{n}|1|1|gpu:m{n}:1\n");
        let flood: Vec<String> = (0..900).map(|n| row(&format!("p{n}"), n)).collect();
        assert_eq!(parse_partitions(&flood.concat()).len(), MAX_PARTITIONS);
        let flood: Vec<String> = (0..900).map(|n| row("p", n)).collect();
        let found = parse_partitions(&flood.concat());
        assert_eq!((found[0].states.len(), found[0].gpus.len()), (MAX_STATES, MAX_GPU_MODELS));
        assert_eq!(found[0].node_count(), u32::MAX);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,300}", cut in 0_usize..600) {
            let _ = parse_partitions(&text);
            let _ = parse_partitions(&V22[..cut.min(V22.len())]);
        }
    }
}
