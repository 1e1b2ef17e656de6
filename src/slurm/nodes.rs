//! Lists of nodes as Slurm writes them: `c[1-4,7],g1`, `nc[00001-00128]`, `r[1-2]n[1-3]`.

/// No more names than this are made of one list.
pub const MOST_NODES: usize = 10_000;
/// No list is read beyond this.
const LONGEST_LIST: usize = 100_000;

/// The names in a list, at most `most` of them.
pub fn expand(list: &str, most: usize) -> Vec<String> {
    let most = most.min(MOST_NODES);
    let mut names = Vec::new();
    for piece in pieces(list) {
        for name in names_of(piece, most - names.len()) {
            names.push(name);
        }
        if names.len() >= most {
            break;
        }
    }
    names
}

/// The first name in a list.
pub fn first(list: &str) -> Option<String> {
    expand(list, 1).into_iter().next()
}

/// How many nodes a list names.
pub fn count(list: &str) -> u64 {
    pieces(list).fold(0, |sum, piece| sum.saturating_add(count_of(piece)))
}

/// The parts between commas outside of brackets.
fn pieces(list: &str) -> impl Iterator<Item = &str> {
    let list = if list.len() > LONGEST_LIST { "" } else { list.trim() };
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

/// A part with the ranges in its first brackets, and what follows these.
fn brackets(piece: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = piece.split_once('[')?;
    let (ranges, after) = rest.split_once(']')?;
    Some((before, ranges, after))
}

fn names_of(piece: &str, most: usize) -> Vec<String> {
    let Some((before, ranges, after)) = brackets(piece) else {
        return if most > 0 { vec![super::text::plain(piece, 200)] } else { Vec::new() };
    };
    let endings = if after.is_empty() { vec![String::new()] } else { names_of(after, most) };
    let mut names = Vec::new();
    if endings.is_empty() {
        return names;
    }
    for (first, last, width) in ranges.split(',').filter_map(range) {
        for number in first..=last {
            for ending in &endings {
                if names.len() >= most {
                    return names;
                }
                names.push(super::text::plain(&format!("{before}{number:0width$}{ending}"), 200));
            }
        }
    }
    names
}

fn count_of(piece: &str) -> u64 {
    let Some((_, ranges, after)) = brackets(piece) else { return 1 };
    let here = ranges
        .split(',')
        .filter_map(range)
        .fold(0_u64, |sum, (first, last, _)| sum.saturating_add(last - first + 1));
    here.saturating_mul(if after.is_empty() { 1 } else { count_of(after) })
}

/// `7` and `001-128`, with the number of digits.
fn range(text: &str) -> Option<(u64, u64, usize)> {
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
        assert_eq!(expand("c[1-3,7],g1", 100), ["c1", "c2", "c3", "c7", "g1"]);
        assert_eq!(expand("nc[00009-00011]", 100), ["nc00009", "nc00010", "nc00011"]);
        assert_eq!(expand("r[1-2]n[01-02]", 100), ["r1n01", "r1n02", "r2n01", "r2n02"]);
        assert_eq!(expand("c[1-1000000]", 2), ["c1", "c2"]);
        assert_eq!(first("g2"), Some("g2".into()));
        assert_eq!(first(""), None);
        assert_eq!(count("c[1-3,7],g1"), 5);
        assert_eq!(count("r[1-2]n[01-48]"), 96);
        assert_eq!(count("c[1-999999999999],c[1-999999999999]"), 1_999_999_999_998);
        assert_eq!((count(""), count("c[x]"), count("c[5-1]")), (0, 0, 0));
        assert_eq!(expand("tri0002", 5), ["tri0002"]);
        assert!(expand("c[0-999999999999][x]", 5).is_empty(), "and that at once");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[a-c0-9,\\[\\]-]{0,60}|\\PC{0,40}", most in 0_usize..200) {
            prop_assert!(expand(&text, most).len() <= most);
            let _ = count(&text);
        }

        #[test]
        fn as_many_as_counted(from in 0_u64..50, more in 0_u64..50) {
            let list = format!("a[{from}-{}],b", from + more);
            prop_assert_eq!(u64::try_from(expand(&list, 1000).len()).unwrap(), count(&list));
        }
    }
}
