use super::*;

#[test]
fn modes_are_said_in_words() {
    for (mode, is_folder, words) in [
        (0o600, false, "Only you"),
        (0o700, true, "Only you"),
        (0o640, false, "Your group can read"),
        (0o750, true, "Your group can read"),
        (0o750, false, "Your group can read"),
        (0o660, false, "Your group can read and change"),
        (0o2770, true, "Your group can read and change"),
        (0o644, false, "Everyone on the cluster can read"),
        (0o755, true, "Everyone on the cluster can read"),
        (0o664, false, "Your group can read and change; everyone else on the cluster can read"),
        (0o777, true, "Everyone on the cluster can read and change"),
        (0o711, true, "Everyone on the cluster can pass through, but not list"),
        (0o604, false, "Your group has no access; everyone else on the cluster can read"),
        (0o740, true, "Your group can read"),
    ] {
        assert_eq!(describe_mode(mode, is_folder), words, "{mode:o}");
    }
    assert_eq!(FileAccess::from_mode(0o740, true), None, "nobody can enter it");
    assert_eq!(FileAccess::from_mode(0o664, false), None);
}

#[test]
fn access_keeps_the_owners_and_special_bits() {
    use FileAccess::{EveryoneReads, GroupChanges, GroupReads, OnlyYou};
    for (access, before, is_folder, after) in [
        (OnlyYou, 0o755, true, 0o700),
        (OnlyYou, 0o2775, true, 0o2700),
        (GroupReads, 0o600, false, 0o640),
        (GroupReads, 0o700, false, 0o750),
        (GroupReads, 0o700, true, 0o750),
        (GroupChanges, 0o644, false, 0o660),
        (GroupChanges, 0o3755, true, 0o3770),
        (EveryoneReads, 0o600, false, 0o644),
        (EveryoneReads, 0o4750, false, 0o4755),
        (EveryoneReads, 0o400, false, 0o444),
        (EveryoneReads, 0o700, true, 0o755),
    ] {
        assert_eq!(access.apply(before, is_folder), after, "{access:?} {before:o}");
        assert_eq!(FileAccess::from_mode(after, is_folder), Some(access), "{after:o}");
    }
    for access in FileAccess::ALL {
        assert_eq!(FileAccess::parse(access.as_str()), Some(access));
    }
    assert_eq!(FileAccess::parse("everyone-writes"), None);
}
