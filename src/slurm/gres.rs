//! Generic resources (GRES) of nodes, as `sinfo` and `scontrol` write them: `gpu:h100:4(S:0-1),gpu:a100:2(S:0,2)`.

use super::text::is_name;

/// The most GPU models of one node.
const MAX_MODELS: usize = 32;

/// The GPUs of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuCount {
    /// The name to request: `h100`, or `a100_1g.5gb` for a slice of one. None where the site names no models.
    pub model: Option<String>,
    pub count: u32,
}

/// The GPUs in a list of resources, without others (`shard`, `localscratch`). A model that appears twice, because its
/// GPUs sit on different sockets, is added up.
pub fn parse_gpus(list: &str) -> Vec<GpuCount> {
    let mut found: Vec<GpuCount> = Vec::new();
    for GpuCount { model, count } in without_brackets(list).split(',').filter_map(parse_gpu) {
        if let Some(known) = found.iter_mut().find(|known| known.model == model) {
            known.count = known.count.saturating_add(count);
        } else if found.len() < MAX_MODELS {
            found.push(GpuCount { model, count });
        }
    }
    found
}

/// Removes what is in brackets: commas in there separate sockets.
fn without_brackets(list: &str) -> String {
    let mut depth = 0_usize;
    let mut outside = String::new();
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => outside.push(c),
            _ => {}
        }
    }
    outside
}

/// `gpu`, `gpu:2`, `gpu:h100`, `gpu:h100:4`, `gpu:h100:no_consume:4`, each perhaps after `gres/`.
fn parse_gpu(piece: &str) -> Option<GpuCount> {
    let piece = piece.trim();
    let piece = piece.strip_prefix("gres/").or(piece.strip_prefix("gres:")).unwrap_or(piece);
    let mut words = piece.split(':').filter(|word| !word.is_empty());
    if words.next()? != "gpu" {
        return None;
    }
    let words: Vec<&str> = words.collect();
    let count = words.last().and_then(|word| word.parse().ok());
    let model = match (words.as_slice(), count) {
        ([], _) | ([_], Some(_)) => None,
        ([model, ..], _) => Some((*model).to_owned()),
    };
    let good = model.as_deref().is_none_or(is_name);
    let count = count.unwrap_or(1);
    (good && count > 0).then_some(GpuCount { model, count })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(list: &str) -> Vec<(String, u32)> {
        parse_gpus(list).into_iter().map(|g| (g.model.unwrap_or_default(), g.count)).collect()
    }

    #[test]
    fn seen_on_clusters() {
        let cases: &[(&str, &[(&str, u32)])] = &[
            ("gpu:t4:2", &[("t4", 2)]),
            ("gpu:h100:4(S:0-1)", &[("h100", 4)]),
            (
                "gpu:a100_3g.20gb:3(S:1,3,7),gpu:a100_4g.20gb:1(S:3),gpu:a100_2g.10gb:4(S:1,5,7),gpu:a100_1g.5gb:7(S:1,5,7)",
                &[("a100_3g.20gb", 3), ("a100_4g.20gb", 1), ("a100_2g.10gb", 4), ("a100_1g.5gb", 7)],
            ),
            (
                "gpu:nvidia_h100_80gb_hbm3_3g.40gb:3(S:0-1),gpu:nvidia_h100_80gb_hbm3_1g.10gb:6(S:0-1)",
                &[("nvidia_h100_80gb_hbm3_3g.40gb", 3), ("nvidia_h100_80gb_hbm3_1g.10gb", 6)],
            ),
            ("gpu:h100:2(S:0-1),gpu:h100:2(S:2-3)", &[("h100", 4)]),
            ("gpu:2", &[("", 2)]),
            ("gpu:8(S:0-1)", &[("", 8)]),
            ("gpu:(null):3(IDX:0-7)", &[("", 3)]),
            ("gpu", &[("", 1)]),
            ("gpu:v100", &[("v100", 1)]),
            ("gpu:1080:2", &[("1080", 2)]),
            ("gpu:k80:no_consume:2", &[("k80", 2)]),
            ("gres/gpu:h100:1", &[("h100", 1)]),
            ("shard:a100:64(S:0-1),gpu:a100:4(S:0-1)", &[("a100", 4)]),
            ("localscratch:20G", &[]),
            ("gpu:h100:0", &[]),
            ("(null)", &[]),
            ("N/A", &[]),
            ("", &[]),
            ("gpu:<b>:2", &[]),
        ];
        for (list, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(m, n)| ((*m).to_owned(), *n)).collect();
            assert_eq!(read(list), expected, "{list}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "((gpu|gres/|:|,|\\(|\\)|h100|[0-9]{1,12}){0,60})|\\PC{0,80}") {
            prop_assert!(parse_gpus(&text).len() <= MAX_MODELS);
        }

        #[test]
        fn sockets_do_not_matter(count in 1_u32..100, sockets in "[0-9,-]{0,12}") {
            let list = format!("gpu:x:{count}(S:{sockets}),gpu:y:1");
            prop_assert_eq!(read(&list), vec![("x".to_owned(), count), ("y".to_owned(), 1)]);
        }
    }
}
