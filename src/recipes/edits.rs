//! Hand-edited scripts. A person's edits stay; the rest follows the form. Each change knows which questions it
//! overrides and can be reverted.

#[cfg(test)]
mod tests;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::template::{RenderedScriptLine, join_lines};

/// Longer scripts are not compared line by line.
const MAX_DIFF_LINES: usize = 3000;

/// A script with a person's own edits merged in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedScript {
    /// The person's own lines refer to the change that they belong to.
    pub lines: Vec<EditedScriptLine>,
    /// The changes, in script order.
    pub changes: Vec<ScriptHandEdit>,
}

/// One line of an edited script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditedScriptLine {
    pub line: RenderedScriptLine,
    /// The change that this line belongs to, if any.
    pub change: Option<usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptHandEdit {
    /// The questions whose lines it replaces.
    pub keys: Vec<String>,
    /// What the form would write here.
    pub generated: Vec<String>,
    /// What the person wrote.
    pub own: Vec<String>,
    /// Where it starts in the script, counted from 1.
    pub first_line: usize,
}

impl MergedScript {
    /// The script as it will be sent.
    pub fn script(&self) -> String {
        join_lines(self.lines.iter().map(|line| &line.line))
    }
}

/// A range of the old script that a person replaced.
struct ScriptHunk {
    /// First line, in the old script.
    from: usize,
    /// One past the last line.
    to: usize,
    own: Vec<String>,
}

/// Merges a person's edits into the script that the form generates now. `base` is the script when they edited it,
/// `own` their edited version. `back` lists changes to revert, numbered as in an earlier result.
pub fn merge_edits(base: &str, own: &str, now: &[RenderedScriptLine], back: &[usize]) -> MergedScript {
    let normal = own.replace("\r\n", "\n");
    let base: Vec<&str> = base.lines().collect();
    let own: Vec<&str> = normal.lines().collect();
    let texts: Vec<&str> = now.iter().map(|line| line.text.as_str()).collect();
    if base.len().max(own.len()).max(texts.len()) > MAX_DIFF_LINES {
        // Comparing scripts this long takes too much time: treat all of it as the person's own.
        let mut edited = MergedScript::default();
        if back.is_empty() {
            edited.push_change(now, own.iter().map(|line| (*line).to_owned()).collect());
        } else {
            edited.push_generated(now);
        }
        return edited;
    }
    let hunks = find_hunks(&base, &own);
    let positions = map_lines(&base, &texts);
    let mut edited = MergedScript::default();
    let mut done = 0;
    for (number, hunk) in hunks.into_iter().enumerate() {
        let (from, to) = replaced_range(&hunk, &positions, texts.len());
        let (from, to) = (from.max(done), to.max(done));
        edited.push_generated(&now[done..from]);
        let same = texts[from..to].iter().copied().eq(hunk.own.iter().map(String::as_str));
        if same || back.contains(&number) {
            edited.push_generated(&now[from..to]);
        } else {
            edited.push_change(&now[from..to], hunk.own);
        }
        done = to;
    }
    edited.push_generated(&now[done..]);
    edited
}

impl MergedScript {
    fn push_generated(&mut self, lines: &[RenderedScriptLine]) {
        let line = |line: &RenderedScriptLine| EditedScriptLine { line: line.clone(), change: None };
        self.lines.extend(lines.iter().map(line));
    }

    fn push_change(&mut self, replaced: &[RenderedScriptLine], own: Vec<String>) {
        let number = self.changes.len();
        let mut keys: Vec<String> = replaced.iter().flat_map(|line| line.keys.clone()).collect();
        keys.sort();
        keys.dedup();
        let change = ScriptHandEdit {
            keys: keys.clone(),
            generated: replaced.iter().map(|line| line.text.clone()).collect(),
            own: own.clone(),
            first_line: self.lines.len() + 1,
        };
        self.changes.push(change);
        let line =
            |text| EditedScriptLine { line: RenderedScriptLine { text, keys: keys.clone() }, change: Some(number) };
        self.lines.extend(own.into_iter().map(line));
    }
}

fn find_hunks(base: &[&str], own: &[&str]) -> Vec<ScriptHunk> {
    let mut hunks: Vec<ScriptHunk> = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, base, own) {
        if let DiffOp::Equal { .. } = op {
            continue;
        }
        let (old, new) = (op.old_range(), op.new_range());
        let lines: Vec<String> = own[new].iter().map(|line| (*line).to_owned()).collect();
        match hunks.last_mut() {
            // Merge adjacent changes into one.
            Some(last) if last.to == old.start => {
                last.to = old.end;
                last.own.extend(lines);
            }
            _ => hunks.push(ScriptHunk { from: old.start, to: old.end, own: lines }),
        }
    }
    hunks
}

/// For each line of the old script, the position of that line or its replacement in the new one.
fn map_lines(base: &[&str], now: &[&str]) -> Vec<Option<usize>> {
    let mut positions = vec![None; base.len()];
    for op in capture_diff_slices(Algorithm::Myers, base, now) {
        // A line that the form rewrote keeps its position.
        for (old, new) in op.old_range().zip(op.new_range()) {
            positions[old] = Some(new);
        }
    }
    positions
}

/// The range of the new script that a change to the old one replaces.
fn replaced_range(hunk: &ScriptHunk, positions: &[Option<usize>], end: usize) -> (usize, usize) {
    let before = positions[..hunk.from].iter().rev().find_map(|position| *position);
    let behind = positions[hunk.to..].iter().find_map(|position| *position).unwrap_or(end);
    if hunk.from == hunk.to {
        // An insertion replaces nothing and stays before the line that followed it.
        return (behind, behind);
    }
    (before.map_or(0, |position| position + 1), behind)
}
