//! Permission bits in words.

/// Who is looking, as numbers on the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteIdentity {
    pub user: u32,
    pub group: u32,
}

/// What the permission bits of a file mean, as a sentence.
pub fn describe_permissions(mode: u32, owner: Option<(u32, u32)>, me: Option<RemoteIdentity>) -> String {
    let is_mine = matches!((owner, me), (Some((user, _)), Some(me)) if user == me.user);
    let is_my_group = matches!((owner, me), (Some((_, group)), Some(me)) if group == me.group);
    let subjects = [
        if is_mine { "You" } else { "Its owner" },
        if is_my_group { "your group" } else { "its group" },
        "everyone else",
    ];
    let bits = [mode >> 6, mode >> 3, mode];
    let parts: Vec<String> = subjects.iter().zip(bits).filter_map(|(who, bits)| describe_rights(who, bits)).collect();
    if parts.is_empty() {
        return "Nobody can read or change it.".to_owned();
    }
    let text = parts.join("; ");
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

fn describe_rights(who: &str, bits: u32) -> Option<String> {
    let rights: Vec<&str> = [(4, "read"), (2, "change"), (1, "run")]
        .into_iter()
        .filter_map(|(bit, word)| (bits & bit != 0).then_some(word))
        .collect();
    match rights[..] {
        [] => None,
        [one] => Some(format!("{who} can {one}")),
        [one, two] => Some(format!("{who} can {one} and {two}")),
        _ => Some(format!("{who} can {}, {} and {}", rights[0], rights[1], rights[2])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_read_as_a_sentence() {
        let me = Some(RemoteIdentity { user: 1000, group: 100 });
        for (mode, owner, expected) in [
            (0o640, Some((1000, 100)), "You can read and change; your group can read."),
            (
                0o755,
                Some((1000, 5)),
                "You can read, change and run; its group can read and run; everyone else can read and run.",
            ),
            (0o604, Some((0, 0)), "Its owner can read and change; everyone else can read."),
            (0o060, None, "Its group can read and change."),
            (0, Some((1000, 100)), "Nobody can read or change it."),
        ] {
            assert_eq!(describe_permissions(mode, owner, me), expected);
        }
        assert_eq!(describe_permissions(0o600, Some((1000, 100)), None), "Its owner can read and change.");
    }
}
