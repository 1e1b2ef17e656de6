//! `sinfo`: the partitions, and what their nodes have and do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::gres;
use super::text;
use super::units::{TimeLimit, memory_mb};

/// The program.
pub const PROGRAM: &str = "sinfo";
/// Its arguments. `-e`: nodes of different size get rows of their own instead of one row that says `192+`.
/// Without `-a`: partitions that are hidden or closed to the person stay out.
pub const ARGS: &[&str] = &["-h", "-e", "-o", "%P|%a|%l|%D|%T|%c|%m|%G"];

/// No more partitions than this are kept.
const MOST_PARTITIONS: usize = 200;
/// No more states of nodes than this are kept for a partition; Slurm has about twenty.
const MOST_STATES: usize = 40;
/// No more kinds of GPU than this are kept for a partition.
const MOST_GPUS: usize = 50;

/// Where jobs of one kind wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Partition {
    /// The name to ask for.
    pub name: String,
    /// Whether jobs that name no partition come here.
    pub is_default: bool,
    /// Whether it takes and starts jobs; it may also be down, draining or inactive.
    pub is_up: bool,
    /// How long a job may run here.
    pub time_limit: TimeLimit,
    /// How many nodes are in which state (`idle`, `mixed`, `allocated`, `drained`, …), without Slurm's marks.
    pub states: BTreeMap<String, u32>,
    /// Cores per node.
    pub cpus: Option<Span>,
    /// Mebibytes of memory per node.
    pub memory_mb: Option<Span>,
    /// The GPUs that its nodes have.
    pub gpus: Vec<GpuNodes>,
}

/// From the smallest to the largest node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Span {
    /// Of the smallest node.
    pub least: u64,
    /// Of the largest node.
    pub most: u64,
}

/// One kind of GPU in a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuNodes {
    /// The name to ask for; none where the site names no models.
    pub model: Option<String>,
    /// The most that one node has.
    pub per_node_most: u32,
    /// How many nodes have it.
    pub nodes: u32,
}

/// One line of the answer: nodes of one partition that are alike.
struct Row<'a> {
    partition: &'a str,
    is_default: bool,
    is_up: bool,
    time_limit: TimeLimit,
    nodes: u32,
    state: &'a str,
    cpus: Option<u64>,
    memory_mb: Option<u64>,
    gres: &'a str,
}

/// Reads the answer; the rows of a partition become one.
pub fn read(answer: &str) -> Vec<Partition> {
    let mut found: Vec<Partition> = Vec::new();
    for row in answer.lines().take(super::MOST_LINES).filter_map(Row::read) {
        let known = found.iter().position(|partition| partition.name == row.partition);
        let at = match known {
            Some(at) => at,
            None if found.len() < MOST_PARTITIONS => {
                found.push(Partition { name: row.partition.to_owned(), ..Partition::default() });
                found.len() - 1
            }
            None => continue,
        };
        found[at].add(&row);
    }
    found
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.trim().split('|').collect();
        let [partition, up, limit, nodes, state, cpus, memory, gres] = fields.as_slice() else {
            return None;
        };
        let name = partition.strip_suffix('*').unwrap_or(partition);
        text::is_name(name).then_some(())?;
        Some(Self {
            partition: name,
            is_default: name.len() < partition.len(),
            is_up: *up == "up",
            time_limit: TimeLimit::read(limit),
            nodes: nodes.parse().ok()?,
            state: state.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()),
            cpus: at_least(cpus).parse().ok().filter(|n| *n > 0),
            memory_mb: memory_mb(at_least(memory)).filter(|n| *n > 0),
            gres,
        })
    }
}

/// `192+` means 192 and more, where nodes of several sizes share a row.
fn at_least(field: &str) -> &str {
    field.strip_suffix('+').unwrap_or(field)
}

impl Partition {
    /// All its nodes.
    pub fn nodes(&self) -> u32 {
        self.states.values().fold(0, |sum, nodes| sum.saturating_add(*nodes))
    }

    /// How many of its nodes are in a state.
    pub fn nodes_in(&self, state: &str) -> u32 {
        self.states.get(state).copied().unwrap_or(0)
    }

    fn add(&mut self, row: &Row<'_>) {
        self.is_default |= row.is_default;
        self.is_up |= row.is_up;
        self.time_limit = row.time_limit;
        // A partition without nodes has one row, of no nodes in the state n/a.
        if row.nodes == 0 {
            return;
        }
        let state = row.state.to_ascii_lowercase();
        let room = self.states.len() < MOST_STATES || self.states.contains_key(&state);
        if room && text::is_name(&state) {
            let count = self.states.entry(state).or_default();
            *count = count.saturating_add(row.nodes);
        }
        widen(&mut self.cpus, row.cpus);
        widen(&mut self.memory_mb, row.memory_mb);
        for gpus in gres::gpus(row.gres) {
            self.add_gpus(gpus, row.nodes);
        }
    }

    fn add_gpus(&mut self, gpus: gres::Gpus, nodes: u32) {
        if let Some(known) = self.gpus.iter_mut().find(|known| known.model == gpus.model) {
            known.per_node_most = known.per_node_most.max(gpus.count);
            known.nodes = known.nodes.saturating_add(nodes);
        } else if self.gpus.len() < MOST_GPUS {
            self.gpus.push(GpuNodes { model: gpus.model, per_node_most: gpus.count, nodes });
        }
    }
}

fn widen(span: &mut Option<Span>, value: Option<u64>) {
    if let Some(value) = value {
        let Span { least, most } = span.unwrap_or(Span { least: value, most: value });
        *span = Some(Span { least: least.min(value), most: most.max(value) });
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

    fn gpu(model: &str, per_node_most: u32, nodes: u32) -> GpuNodes {
        GpuNodes { model: Some(model.into()), per_node_most, nodes }
    }

    #[test]
    fn the_demo_cluster() {
        let found = read(V22);
        let names: Vec<_> = found.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["cpu", "gpu", "debug", "trial", "empty"]);
        let [cpu, gpus, debug, trial, empty] = found.as_slice() else { panic!() };
        assert!(cpu.is_default && cpu.is_up && !gpus.is_default);
        assert_eq!(cpu.time_limit, TimeLimit::Minutes(7 * 1440));
        assert_eq!(cpu.states, states(&[("allocated", 1), ("drained", 1), ("idle", 1)]));
        assert_eq!(cpu.cpus, Some(Span { least: 8, most: 8 }));
        assert_eq!(cpu.memory_mb, Some(Span { least: 16_000, most: 16_000 }));
        assert_eq!((cpu.nodes(), cpu.nodes_in("idle"), cpu.nodes_in("down")), (3, 1, 0));
        assert_eq!(gpus.gpus, [gpu("t4", 2, 1), gpu("v100", 1, 1)]);
        assert_eq!(debug.time_limit, TimeLimit::Unlimited);
        assert!(!trial.is_up);
        assert_eq!((empty.nodes(), empty.cpus, empty.is_up), (0, None, true));
    }

    #[test]
    fn trillium() {
        let found = read(TRILLIUM);
        assert_eq!(found[0].states, states(&[("down", 2)]));
        assert_eq!(found[0].time_limit, TimeLimit::Minutes(60));
        assert!(found[1].is_default);
        assert_eq!(
            found[1].states,
            states(&[("allocated", 1219), ("down", 3), ("reserved", 4)]),
            "marks behind a state go"
        );
        assert_eq!(found[1].cpus, Some(Span { least: 192, most: 192 }));
    }

    #[test]
    fn nodes_of_several_kinds_share_a_partition() {
        // The lists of GPUs are Narval's; the rest is made up.
        let found = read(
            "gpubase_bygpu_b1|up|3:00:00|2|mixed-|64|510000|gpu:a100_3g.20gb:3(S:1,3,7),gpu:a100_1g.5gb:7(S:1,5,7)\n\
             gpubase_bygpu_b1|up|3:00:00|9|allocated+|48+|1020000+|gpu:a100:4(S:0-1)\n\
             gpubase_bygpu_b1|up|3:00:00|1|idle~|64|510000|gpu:a100_3g.20gb:4(S:1)\n",
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].states, states(&[("allocated", 9), ("idle", 1), ("mixed", 2)]));
        assert_eq!(found[0].cpus, Some(Span { least: 48, most: 64 }));
        assert_eq!(found[0].memory_mb, Some(Span { least: 510_000, most: 1_020_000 }));
        assert_eq!(
            found[0].gpus,
            [gpu("a100_3g.20gb", 4, 3), gpu("a100_1g.5gb", 7, 2), gpu("a100", 4, 9)]
        );
    }

    #[test]
    fn noise_is_skipped_and_floods_are_bounded() {
        assert!(read("Command rejected by slurm_commands.sh: sinfo -h -o %P|%a|%l|%D").is_empty());
        assert!(read("a|b|c\n<b>|up|1:00|1|idle|1|1|gpu:1\n|up|1|1|idle|1|1|\n").is_empty());
        let row = |name: &str, n: u32| format!("{name}|up|1:00|4294967295|s{n}|1|1|gpu:m{n}:1\n");
        let flood: Vec<String> = (0..900).map(|n| row(&format!("p{n}"), n)).collect();
        assert_eq!(read(&flood.concat()).len(), MOST_PARTITIONS);
        let flood: Vec<String> = (0..900).map(|n| row("p", n)).collect();
        let found = read(&flood.concat());
        assert_eq!((found[0].states.len(), found[0].gpus.len()), (MOST_STATES, MOST_GPUS));
        assert_eq!(found[0].nodes(), u32::MAX);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,300}", cut in 0_usize..600) {
            let _ = read(&text);
            let _ = read(&V22[..cut.min(V22.len())]);
        }
    }
}
