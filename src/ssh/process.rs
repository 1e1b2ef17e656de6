//! Process ancestry: whether a process is one of ours, read from `/proc`.

use tokio::net::UnixStream;

/// How many ancestors are checked. An ssh process is a child or grandchild of the portal.
const MAX_GENERATIONS: usize = 16;

/// Whether `pid` is `ancestor` or currently descends from it.
pub fn is_self_or_descendant(pid: i32, ancestor: i32) -> bool {
    std::iter::successors(Some(pid), |pid| read_parent(*pid))
        .take(MAX_GENERATIONS)
        .take_while(|pid| *pid > 0)
        .any(|pid| pid == ancestor)
}

/// Whether the process at the other end of a socket runs as our own user and is one that `allowed` accepts.
pub(super) fn is_allowed_peer(stream: &UnixStream, allowed: &impl Fn(i32) -> bool) -> bool {
    stream
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw() && peer.pid().is_some_and(allowed))
}

fn read_parent(pid: i32) -> Option<i32> {
    // A process chooses its own name, so it may not be UTF-8.
    parse_parent(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// `17 (name) S 4 …`: the second word after the name, which may itself contain spaces and parentheses.
fn parse_parent(stat: &[u8]) -> Option<i32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_whatever_the_process_calls_itself() {
        assert_eq!(parse_parent(b"17 (ssh) S 4 17 17 0 -1 4194560 0"), Some(4));
        assert_eq!(parse_parent(b"17 (a) R 1 (b) S 4 17"), Some(4));
        assert_eq!(parse_parent(b"17 (\xff) 9) S 4 17"), Some(4));
        for bad in [&b""[..], b"17 (ssh", b"17 (ssh)", b"17 (ssh) S", b"17 (ssh) S x"] {
            assert_eq!(parse_parent(bad), None);
        }
    }

    #[test]
    fn children_and_grandchildren_are_ours_and_others_are_not() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(is_self_or_descendant(me, me));
        assert!(is_self_or_descendant(me, read_parent(me).unwrap()));
        assert!(!is_self_or_descendant(1, me), "init");
        assert!(!is_self_or_descendant(0, me) && !is_self_or_descendant(-1, -1));
        assert!(!is_self_or_descendant(i32::MAX, me), "nobody");

        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = shell.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        let (child, grandchild) = (i32::try_from(shell.id()).unwrap(), line.trim().parse().unwrap());
        assert!(is_self_or_descendant(child, me) && is_self_or_descendant(grandchild, me));
        assert!(is_self_or_descendant(grandchild, child));
        assert!(!is_self_or_descendant(child, grandchild) && !is_self_or_descendant(me, child));

        let process = |pid| rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(process(grandchild), rustix::process::Signal::TERM).unwrap();
        shell.wait().unwrap();
        assert!(!is_self_or_descendant(child, me), "it has ended");
    }
}
