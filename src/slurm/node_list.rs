//! Node lists as Slurm writes them: `c[1-4,7],g1`, `nc[00001-00128]`, `r[1-2]n[1-3]`.

/// The most names expanded from one list.
pub const MAX_NODES: usize = 10_000;
/// The longest list that is read.
const MAX_LIST_LEN: usize = 100_000;

/// The names in a list, at most `most` of them.
pub fn expand_node_list(list: &str, most: usize) -> Vec<String> {
    let most = most.min(MAX_NODES);
    let mut names = Vec::new();
    for piece in split_node_list(list) {
        names.extend(expand_piece(piece, most - names.len()));
        if names.len() >= most {
            break;
        }
    }
    names
}

pub fn first_node(list: &str) -> Option<String> {
    expand_node_list(list, 1).into_iter().next()
}

pub fn count_nodes(list: &str) -> u64 {
    split_node_list(list).fold(0, |sum, piece| sum.saturating_add(count_piece(piece)))
}

/// The parts between commas outside brackets.
fn split_node_list(list: &str) -> impl Iterator<Item = &str> {
    let list = if list.len() > MAX_LIST_LEN { "" } else { list.trim() };
    let mut depth = 0_usize;
    let outside = move |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(outside).filter(|piece| !piece.is_empty())
}

/// Splits a part into prefix, the ranges in its first brackets, and the remainder.
fn split_brackets(piece: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = piece.split_once('[')?;
    let (ranges, after) = rest.split_once(']')?;
    Some((before, ranges, after))
}

fn expand_piece(piece: &str, most: usize) -> Vec<String> {
    let Some((before, ranges, after)) = split_brackets(piece) else {
        return if most > 0 { vec![crate::text::sanitize(piece, 200)] } else { Vec::new() };
    };
    let endings = if after.is_empty() { vec![String::new()] } else { expand_piece(after, most) };
    let mut names = Vec::new();
    if endings.is_empty() {
        return names;
    }
    for (first, last, width) in ranges.split(',').filter_map(parse_range) {
        for number in first..=last {
            for ending in &endings {
                if names.len() >= most {
                    return names;
                }
                names.push(crate::text::sanitize(&format!("{before}{number:0width$}{ending}"), 200));
            }
        }
    }
    names
}

fn count_piece(piece: &str) -> u64 {
    let Some((_, ranges, after)) = split_brackets(piece) else { return 1 };
    let here = ranges
        .split(',')
        .filter_map(parse_range)
        .fold(0_u64, |sum, (first, last, _)| sum.saturating_add(last - first + 1));
    here.saturating_mul(if after.is_empty() { 1 } else { count_piece(after) })
}

/// `7` and `001-128`, with the number of digits.
fn parse_range(text: &str) -> Option<(u64, u64, usize)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        let digits = (1..=12).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if digits { text.parse::<u64>().ok() } else { None }
    };
    let (low, high) = (number(first)?, number(last)?);
    (low <= high).then_some((low, high, first.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_clusters() {
        assert_eq!(expand_node_list("c[1-3,7],g1", 100), ["c1", "c2", "c3", "c7", "g1"]);
        assert_eq!(expand_node_list("nc[00009-00011]", 100), ["nc00009", "nc00010", "nc00011"]);
        assert_eq!(expand_node_list("r[1-2]n[01-02]", 100), ["r1n01", "r1n02", "r2n01", "r2n02"]);
        assert_eq!(expand_node_list("c[1-1000000]", 2), ["c1", "c2"]);
        assert_eq!(first_node("g2"), Some("g2".into()));
        assert_eq!(first_node(""), None);
        assert_eq!(count_nodes("c[1-3,7],g1"), 5);
        assert_eq!(count_nodes("r[1-2]n[01-48]"), 96);
        assert_eq!(count_nodes("c[1-999999999999],c[1-999999999999]"), 1_999_999_999_998);
        assert_eq!((count_nodes(""), count_nodes("c[x]"), count_nodes("c[5-1]")), (0, 0, 0));
        assert_eq!(expand_node_list("tri0002", 5), ["tri0002"]);
        assert!(expand_node_list("c[0-999999999999][x]", 5).is_empty(), "and that at once");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[a-c0-9,\\[\\]-]{0,60}|\\PC{0,40}", most in 0_usize..200) {
            prop_assert!(expand_node_list(&text, most).len() <= most);
            let _ = count_nodes(&text);
        }

        #[test]
        fn as_many_as_counted(from in 0_u64..50, more in 0_u64..50) {
            let list = format!("a[{from}-{}],b", from + more);
            prop_assert_eq!(u64::try_from(expand_node_list(&list, 1000).len()).unwrap(), count_nodes(&list));
        }
    }
}
