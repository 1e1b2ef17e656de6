//! Rows and columns from the footer of a Parquet file: the first fields of a structure in Thrift's compact encoding.

/// Deeper nesting than any real footer has.
const MAX_DEPTH: usize = 16;

mod field {
    pub const SCHEMA: u64 = 2;
    pub const NUM_ROWS: u64 = 3;
    /// Of a schema element: it is a group, not a column.
    pub const NUM_CHILDREN: u64 = 5;
}

mod wire {
    pub const STOP: u8 = 0;
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const STRUCT: u8 = 12;
}

/// Rows and columns; `None` if the footer is damaged or unusual.
pub fn count_rows_and_columns(footer: &[u8]) -> Option<(u64, u64)> {
    let mut reader = CompactReader { rest: footer };
    let mut columns = None;
    let mut last = 0;
    while let Some((id, kind)) = reader.field(&mut last)? {
        match (id, kind) {
            (field::SCHEMA, wire::LIST) => columns = Some(reader.count_columns()?),
            (field::NUM_ROWS, wire::I64) => return Some((zigzag(reader.varint()?)?, columns?)),
            _ => reader.skip(kind, 0)?,
        }
    }
    None
}

/// Numbers are stored so that small negative ones stay short. Counts aren't negative.
fn zigzag(number: u64) -> Option<u64> {
    number.is_multiple_of(2).then_some(number / 2)
}

struct CompactReader<'a> {
    rest: &'a [u8],
}

impl CompactReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The number and type of the next field; `Some(None)` at the end of the structure.
    #[expect(clippy::option_option, reason = "damaged and finished are different things")]
    fn field(&mut self, last: &mut u64) -> Option<Option<(u64, u8)>> {
        let byte = self.byte()?;
        if byte == wire::STOP {
            return Some(None);
        }
        let id = match byte >> 4 {
            0 => zigzag(self.varint()?)?,
            delta => last.checked_add(delta.into())?,
        };
        *last = id;
        Some(Some((id, byte & 0x0F)))
    }

    /// The type and number of the elements of a list.
    fn list(&mut self) -> Option<(u8, u64)> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        // Each element takes at least a byte.
        let left = u64::try_from(self.rest.len()).ok()?;
        (count <= left).then_some((byte & 0x0F, count))
    }

    fn count_columns(&mut self) -> Option<u64> {
        let (kind, elements) = self.list()?;
        if kind != wire::STRUCT {
            return None;
        }
        let mut columns = 0;
        for _ in 0..elements {
            let mut has_children = false;
            let mut last = 0;
            while let Some((id, kind)) = self.field(&mut last)? {
                has_children |= id == field::NUM_CHILDREN;
                self.skip(kind, 0)?;
            }
            columns += u64::from(!has_children);
        }
        Some(columns)
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match kind {
            wire::TRUE | wire::FALSE => {}
            wire::BYTE => {
                self.byte()?;
            }
            4..=wire::I64 => {
                self.varint()?;
            }
            wire::DOUBLE => self.advance(8)?,
            wire::BINARY => {
                let length = self.varint()?;
                self.advance(usize::try_from(length).ok()?)?;
            }
            wire::LIST | wire::SET => {
                let (kind, count) = self.list()?;
                for _ in 0..count {
                    // In a list, truth values take a byte each.
                    let kind = if kind <= wire::FALSE { wire::BYTE } else { kind };
                    self.skip(kind, depth + 1)?;
                }
            }
            wire::STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth + 1)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn advance(&mut self, by: usize) -> Option<()> {
        self.rest = self.rest.get(by..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Version 2, a root with two columns, 1000 rows.
    const FOOTER: &[u8] = &[
        0x15, 4, // version
        0x19, 0x3C, // schema: three structures
        0x48, 4, b'r', b'o', b'o', b't', 0x15, 4, 0, // the root: a name and two children
        0x15, 2, 0x25, 0, 0x18, 1, b'a', 0, // a column
        0x15, 2, 0x25, 0, 0x18, 1, b'b', 0, // another
        0x16, 0xD0, 0x0F, // rows
        0,
    ];

    #[test]
    fn rows_and_columns_are_counted() {
        assert_eq!(count_rows_and_columns(FOOTER), Some((1000, 2)));
        for end in 0..FOOTER.len() - 1 {
            assert_eq!(count_rows_and_columns(&FOOTER[..end]), None, "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let _ = count_rows_and_columns(&bytes);
        }
    }
}
