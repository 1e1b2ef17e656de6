//! Names and shapes of the tensors in a `PyTorch` file, from its pickle. Nothing is executed or built: calls that aren't
//! known stay empty, and only what describes tensors is kept.

use std::collections::HashMap;
use std::rc::Rc;

use super::archive_members::shown_name;
use super::described_array::{DescribedArray, DescribedArrays, MAX_ARRAYS, MAX_RANK, shape_words};

/// More steps than the description of any listed model has.
const MAX_STEPS: usize = 200_000;
const MAX_DEPTH: usize = 12;
/// How many values are looked at in search of tensors.
const MAX_VISITED: usize = 20_000;

/// A value on the stack; collections are shared and kept apart, so that copies cost nothing.
#[derive(Debug, Clone)]
enum PickleValue {
    Mark,
    Int(u64),
    Text(Rc<[u8]>),
    /// With how deep it is nested: letting go of it goes as deep.
    Tuple(Rc<[PickleValue]>, usize),
    /// A dictionary, a list or an object: its number among the collections.
    Collection(usize),
    /// A tensor: its sizes and its type.
    Tensor(Rc<(Vec<u64>, &'static str)>),
    /// What `PyTorch` keeps outside of the pickle.
    Storage(&'static str),
    Other,
}

#[derive(Default)]
struct PickleReader<'a> {
    rest: &'a [u8],
    stack: Vec<PickleValue>,
    memo: HashMap<u32, PickleValue>,
    /// The named or numbered values of each collection.
    collections: Vec<Vec<(PickleValue, PickleValue)>>,
}

/// Lists the tensors of a pickle, or of the beginning of one.
pub fn find_tensors(pickle: &[u8]) -> DescribedArrays {
    let mut reader = PickleReader { rest: pickle, ..PickleReader::default() };
    let mut is_whole = false;
    for _ in 0..MAX_STEPS {
        match reader.step() {
            Some(true) => {}
            Some(false) => {
                is_whole = true;
                break;
            }
            None => break,
        }
    }
    let mut found = DescribedArrays { arrays: Vec::new(), is_cut: !is_whole };
    let mut visited = 0;
    if let Some(root) = reader.stack.first() {
        reader.collect(root, &mut Vec::new(), &mut visited, &mut found);
    }
    found
}

impl<'a> PickleReader<'a> {
    /// Reads one instruction; `false` at the end, `None` if it is cut off or not understood.
    fn step(&mut self) -> Option<bool> {
        let code = self.take(1)?[0];
        match code {
            b'.' => return Some(false),
            b'(' => self.stack.push(PickleValue::Mark),
            0x80 | 0x95 => {
                self.take(if code == 0x80 { 1 } else { 8 })?;
            }
            b'N' | 0x88 | 0x89 => self.stack.push(PickleValue::Other),
            b'K' => self.push_int(1)?,
            b'M' => self.push_int(2)?,
            b'J' => self.push_int(4)?,
            0x8a => self.push_long(1)?,
            0x8b => self.push_long(4)?,
            b'G' => self.push_other(8)?,
            b'X' | b'T' | b'B' => self.push_text(4)?,
            0x8c | b'U' | b'C' => self.push_text(1)?,
            0x8d | 0x8e => self.push_text(8)?,
            b'c' => {
                let (module, name) = (self.take_line()?, self.take_line()?);
                self.stack.push(PickleValue::Text([module, b".", name].concat().into()));
            }
            0x93 => {
                let (name, module) = (self.stack.pop()?, self.stack.pop()?);
                let (PickleValue::Text(name), PickleValue::Text(module)) = (name, module) else { return None };
                self.stack.push(PickleValue::Text([&module[..], b".", &name[..]].concat().into()));
            }
            b'q' => self.remember(1)?,
            b'r' => self.remember(4)?,
            0x94 => {
                let next = u32::try_from(self.memo.len()).ok()?;
                self.memo.insert(next, self.stack.last()?.clone());
            }
            b'h' => self.recall(1)?,
            b'j' => self.recall(4)?,
            b'}' | b']' | 0x8f => {
                self.push_collection();
            }
            b')' => self.push_tuple(Vec::new()),
            b't' => {
                let items = self.pop_to_mark()?;
                self.push_tuple(items);
            }
            0x85..=0x87 => {
                let start = self.stack.len().checked_sub(usize::from(code - 0x84))?;
                let items = self.stack.split_off(start);
                self.push_tuple(items);
            }
            b'd' | b'l' | 0x91 => {
                let items = self.pop_to_mark()?;
                let at = self.push_collection();
                self.add_items(at, items, code == b'd');
            }
            b's' => {
                let start = self.stack.len().checked_sub(2)?;
                let items = self.stack.split_off(start);
                self.add_to_last(items, true)?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.add_to_last(items, true)?;
            }
            b'e' | 0x90 => {
                let items = self.pop_to_mark()?;
                self.add_to_last(items, false)?;
            }
            // An item of a list, or the state of an object: its attributes.
            b'a' | b'b' => {
                let item = self.stack.pop()?;
                self.add_to_last(vec![item], false)?;
            }
            b'Q' => {
                let id = self.stack.pop()?;
                self.stack.push(describe_storage(&id));
            }
            b'R' | 0x81 | 0x92 => {
                if code == 0x92 {
                    self.stack.pop()?;
                }
                let (arguments, callable) = (self.stack.pop()?, self.stack.pop()?);
                match describe_call(&callable, &arguments) {
                    Some(value) => self.stack.push(value),
                    None => {
                        self.push_collection();
                    }
                }
            }
            b'0' => drop(self.stack.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'2' => self.stack.push(self.stack.last()?.clone()),
            _ => return None,
        }
        Some(true)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn take_line(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\n', self.rest)?;
        let (line, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        Some(line)
    }

    /// An unsigned number of up to eight bytes.
    fn take_number(&mut self, count: usize) -> Option<u64> {
        Some(self.take(count)?.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    fn push_int(&mut self, count: usize) -> Option<()> {
        let number = self.take_number(count)?;
        // Negative ones are no sizes.
        let is_negative = count == 4 && number >= 1 << 31;
        self.stack.push(if is_negative { PickleValue::Other } else { PickleValue::Int(number) });
        Some(())
    }

    fn push_long(&mut self, count: usize) -> Option<()> {
        let length = usize::try_from(self.take_number(count)?).ok()?;
        let digits = self.take(length)?;
        let is_size = digits.len() <= 8 && digits.last().is_none_or(|byte| *byte < 0x80);
        let number = digits.iter().rev().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte));
        self.stack.push(if is_size { PickleValue::Int(number) } else { PickleValue::Other });
        Some(())
    }

    fn push_other(&mut self, count: usize) -> Option<()> {
        self.take(count)?;
        self.stack.push(PickleValue::Other);
        Some(())
    }

    fn push_text(&mut self, count: usize) -> Option<()> {
        let length = usize::try_from(self.take_number(count)?).ok()?;
        let text = self.take(length)?.into();
        self.stack.push(PickleValue::Text(text));
        Some(())
    }

    fn push_tuple(&mut self, items: Vec<PickleValue>) {
        let inner = |value: &PickleValue| if let PickleValue::Tuple(_, depth) = value { *depth } else { 0 };
        let depth = 1 + items.iter().map(inner).max().unwrap_or(0);
        let is_usual = depth <= MAX_DEPTH;
        self.stack.push(if is_usual { PickleValue::Tuple(items.into(), depth) } else { PickleValue::Other });
    }

    fn push_collection(&mut self) -> usize {
        let at = self.collections.len();
        self.collections.push(Vec::new());
        self.stack.push(PickleValue::Collection(at));
        at
    }

    fn remember(&mut self, count: usize) -> Option<()> {
        let at = u32::try_from(self.take_number(count)?).ok()?;
        self.memo.insert(at, self.stack.last()?.clone());
        Some(())
    }

    fn recall(&mut self, count: usize) -> Option<()> {
        let at = u32::try_from(self.take_number(count)?).ok()?;
        self.stack.push(self.memo.get(&at)?.clone());
        Some(())
    }

    fn pop_to_mark(&mut self) -> Option<Vec<PickleValue>> {
        let mark = self.stack.iter().rposition(|value| matches!(value, PickleValue::Mark))?;
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Some(items)
    }

    /// Adds to the collection on top of the stack.
    fn add_to_last(&mut self, items: Vec<PickleValue>, are_pairs: bool) -> Option<()> {
        if let PickleValue::Collection(at) = *self.stack.last()? {
            self.add_items(at, items, are_pairs);
        }
        Some(())
    }

    fn add_items(&mut self, at: usize, items: Vec<PickleValue>, are_pairs: bool) {
        let collection = &mut self.collections[at];
        let mut items = items.into_iter();
        while let Some(first) = items.next() {
            if !are_pairs {
                collection.push((PickleValue::Other, first));
            } else if let Some(second) = items.next() {
                collection.push((first, second));
            }
        }
    }

    /// Finds the tensors in a value. Names are the keys on the way to it.
    fn collect(&self, value: &PickleValue, path: &mut Vec<String>, visited: &mut usize, found: &mut DescribedArrays) {
        *visited += 1;
        if *visited > MAX_VISITED || path.len() > MAX_DEPTH || found.arrays.len() >= MAX_ARRAYS {
            found.is_cut = true;
            return;
        }
        match value {
            PickleValue::Tensor(tensor) => {
                let (sizes, dtype) = tensor.as_ref();
                let named: Vec<&str> = path.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
                let name = if named.is_empty() { "tensor".to_owned() } else { shown_name(named.join(".").as_bytes()) };
                let (shape, dtype) = (shape_words(sizes), (*dtype).to_owned());
                found.arrays.push(DescribedArray { name, shape, dtype });
            }
            PickleValue::Tuple(items, _) => {
                for (number, item) in items.iter().enumerate() {
                    path.push(number.to_string());
                    self.collect(item, path, visited, found);
                    path.pop();
                }
            }
            PickleValue::Collection(at) => {
                for (key, item) in &self.collections[*at] {
                    path.push(match key {
                        PickleValue::Text(key) => shown_name(key),
                        PickleValue::Int(key) => key.to_string(),
                        _ => String::new(),
                    });
                    self.collect(item, path, visited, found);
                    path.pop();
                }
            }
            _ => {}
        }
    }
}

/// What a call gives, if it makes a tensor.
fn describe_call(callable: &PickleValue, arguments: &PickleValue) -> Option<PickleValue> {
    let (PickleValue::Text(name), PickleValue::Tuple(arguments, _)) = (callable, arguments) else { return None };
    match &name[..] {
        b"torch._utils._rebuild_tensor" | b"torch._utils._rebuild_tensor_v2" | b"torch._utils._rebuild_tensor_v3" => {
            let (PickleValue::Storage(dtype), PickleValue::Tuple(sizes, _)) = (arguments.first()?, arguments.get(2)?)
            else {
                return None;
            };
            let size = |value: &PickleValue| if let PickleValue::Int(size) = value { Some(*size) } else { None };
            let sizes: Vec<u64> = sizes.iter().take(MAX_RANK).filter_map(size).collect();
            Some(PickleValue::Tensor(Rc::new((sizes, dtype))))
        }
        b"torch._utils._rebuild_parameter" => arguments.first().cloned(),
        _ => None,
    }
}

/// The type of the values that a reference to data outside of the pickle names.
fn describe_storage(id: &PickleValue) -> PickleValue {
    let PickleValue::Tuple(parts, _) = id else { return PickleValue::Other };
    let Some(PickleValue::Text(class)) = parts.get(1) else { return PickleValue::Other };
    PickleValue::Storage(match class.strip_prefix(b"torch.").unwrap_or(class) {
        b"FloatStorage" => "float32",
        b"DoubleStorage" => "float64",
        b"HalfStorage" => "float16",
        b"BFloat16Storage" => "bfloat16",
        b"LongStorage" => "int64",
        b"IntStorage" => "int32",
        b"ShortStorage" => "int16",
        b"CharStorage" => "int8",
        b"ByteStorage" => "uint8",
        b"BoolStorage" => "bool",
        b"ComplexFloatStorage" => "complex64",
        b"ComplexDoubleStorage" => "complex128",
        _ => "",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nested_values_cost_no_more_than_they_look() {
        // Each list has the one before twice: 2^60 values if all were looked at.
        let mut pickle = b"\x80\x02]".to_vec();
        for number in 0..60 {
            pickle.extend([b'q', number, b'0', b']', b'h', number, b'a', b'h', number, b'a']);
        }
        pickle.push(b'.');
        let found = find_tensors(&pickle);
        assert!(found.arrays.is_empty() && found.is_cut);
        let deep = [&b"\x80\x02)"[..], &vec![0x85; 100_000][..], b"."].concat();
        assert!(find_tensors(&deep).arrays.is_empty());
        // A list that contains itself.
        let found = find_tensors(b"\x80\x02]q\x00h\x00a.");
        assert!(found.arrays.is_empty() && found.is_cut);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_pickle_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = find_tensors(&bytes);
        }

        #[test]
        fn any_instructions_are_followed(codes in "[\\x28\\x2eNK}\\])tdlsaeubRQ012qh\\x00\\x01]{0,80}") {
            let _ = find_tensors(codes.as_bytes());
        }
    }
}
