//! The first bytes of a file, for those who can read them.

use std::fmt::Write as _;

const ROW_BYTES: usize = 16;
const MAX_ROWS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HexRow {
    pub offset: String,
    pub hex: String,
    /// Printable ASCII; a dot for everything else.
    pub text: String,
}

pub fn hex_rows(head: &[u8]) -> Vec<HexRow> {
    let row = |(number, bytes): (usize, &[u8])| HexRow {
        offset: format!("{:06x}", number * ROW_BYTES),
        hex: bytes.iter().enumerate().fold(String::new(), |mut text, (at, byte)| {
            let gap = if at == 0 { "" } else { " " };
            let _ = write!(text, "{gap}{byte:02x}");
            text
        }),
        text: bytes.iter().map(|byte| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '.' }).collect(),
    };
    head.chunks(ROW_BYTES).take(MAX_ROWS).enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_hex_and_text() {
        let rows = hex_rows(b"\x7fELF\0<b>&'\"\xff1234567");
        assert_eq!(rows[0].hex, "7f 45 4c 46 00 3c 62 3e 26 27 22 ff 31 32 33 34");
        assert_eq!(rows[0].text, ".ELF.<b>&'\".1234");
        assert_eq!((rows[1].offset.as_str(), rows[1].text.as_str()), ("000010", "567"));
        assert_eq!(hex_rows(&[0; 10_000]).len(), MAX_ROWS);
        assert!(hex_rows(b"").is_empty());
    }
}
