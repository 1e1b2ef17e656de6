//! What the headers of data files say: arrays, HDF5, Parquet, PDF. Only the first and last bytes are read.

use super::described_array::shape_words;
use super::hdf5_datasets::HDF5_SIGNATURE;
use crate::format;

/// A label and a value.
pub type DataFact = (&'static str, String);

const MAX_VALUE_CHARS: usize = 200;

fn bounded(text: &str) -> String {
    text.chars().filter(|c| !crate::text::is_hidden(*c)).take(MAX_VALUE_CHARS).collect()
}

/// What the header of a `NumPy` array says.
pub struct NpyHeader {
    pub sizes: Vec<u64>,
    pub dtype: String,
    is_fortran_order: bool,
}

impl NpyHeader {
    /// Reads the header at the beginning of a `.npy` file.
    pub fn parse(head: &[u8]) -> Option<Self> {
        let rest = head.strip_prefix(b"\x93NUMPY")?;
        let (start, length) = match rest.first()? {
            1 => (4, usize::from(u16::from_le_bytes(rest.get(2..4)?.try_into().ok()?))),
            _ => (6, usize::try_from(u32::from_le_bytes(rest.get(2..6)?.try_into().ok()?)).ok()?),
        };
        let header = rest.get(start..)?;
        let header = String::from_utf8_lossy(&header[..header.len().min(length)]);
        let shape = bounded(header.split_once("'shape':")?.1.trim_start().strip_prefix('(')?.split_once(')')?.0);
        let sizes = shape.split(',').filter_map(|size| size.trim().parse().ok()).collect();
        let descr = header.split_once("'descr':")?.1.trim_start();
        let dtype = match descr.strip_prefix('\'').and_then(|rest| rest.split_once('\'')) {
            Some((code, _)) => describe_dtype(code),
            None => "structured".to_owned(),
        };
        Some(Self { sizes, dtype, is_fortran_order: header.contains("'fortran_order': True") })
    }
}

/// Shape and type of a `NumPy` array, from the header of a `.npy` file.
pub fn describe_npy(head: &[u8]) -> Option<Vec<DataFact>> {
    let header = NpyHeader::parse(head)?;
    let total = header.sizes.iter().try_fold(1_u64, |total, size| total.checked_mul(*size))?;
    let order = if header.is_fortran_order { "column by column (Fortran)" } else { "row by row (C)" };
    Some(vec![
        ("Shape", shape_words(&header.sizes)),
        ("Values", format::number(total)),
        ("Type", header.dtype),
        ("Order in memory", order.to_owned()),
    ])
}

/// A `NumPy` type code as its usual name: `<f4` is `float32`.
fn describe_dtype(code: &str) -> String {
    let plain = code.trim_start_matches(['<', '>', '|', '=']);
    let kind = plain.chars().next();
    let bits = plain.get(1..).and_then(|size| size.parse::<u32>().ok()).and_then(|bytes| bytes.checked_mul(8));
    let name = match (kind, bits) {
        (Some('f'), Some(bits)) => format!("float{bits}"),
        (Some('i'), Some(bits)) => format!("int{bits}"),
        (Some('u'), Some(bits)) => format!("uint{bits}"),
        (Some('c'), Some(bits)) => format!("complex{bits}"),
        (Some('b'), _) => "bool".to_owned(),
        (Some('U'), _) => "text".to_owned(),
        (Some('S'), _) => "bytes".to_owned(),
        (Some('O'), _) => "Python objects".to_owned(),
        (Some('M' | 'm'), _) => "dates or times".to_owned(),
        _ => bounded(code),
    };
    if code.starts_with('>') { format!("{name}, big-endian") } else { name }
}

/// Whether it is an HDF5 file, and the version of its superblock. A user block may stand before that.
pub fn describe_hdf5(head: &[u8]) -> Option<Vec<DataFact>> {
    let starts = [0, 512, 1024, 2048, 4096, 8192];
    let found = starts.into_iter().find_map(|at| head.get(at..)?.strip_prefix(HDF5_SIGNATURE))?;
    let version = found.first()?;
    Some(vec![("Format", format!("HDF5, superblock version {version}"))])
}

/// Rows and columns of a Parquet file from its footer, which is all but the last 8 bytes of `tail` at most.
pub fn describe_parquet(tail: &[u8]) -> Option<Vec<DataFact>> {
    let end = tail.strip_suffix(b"PAR1")?;
    let (rest, length) = end.split_at_checked(end.len().checked_sub(4)?)?;
    let length = usize::try_from(u32::from_le_bytes(length.try_into().ok()?)).ok()?;
    let mut facts = vec![("Format", "Parquet".to_owned())];
    if let Some(footer) = rest.len().checked_sub(length).and_then(|at| rest.get(at..))
        && let Some((rows, columns)) = super::parquet_footer::count_rows_and_columns(footer)
    {
        facts.push(("Rows", format::number(rows)));
        facts.push(("Columns", format::number(columns)));
    }
    Some(facts)
}

/// How every PDF begins.
pub const PDF_MAGIC: &[u8] = b"%PDF-";

/// Version of a PDF, and how many pages it has if its beginning says so.
pub fn describe_pdf(head: &[u8]) -> Option<Vec<DataFact>> {
    let version = head.strip_prefix(PDF_MAGIC)?;
    let version: String = version.iter().take(3).map(|byte| char::from(*byte)).collect();
    let mut facts = vec![("Format", format!("PDF {}", bounded(&version)))];
    // Files made for the web begin with a dictionary that has the number of pages.
    let start = String::from_utf8_lossy(&head[..head.len().min(1024)]);
    let pages = start.split_once("/Linearized").and_then(|(_, rest)| {
        let dictionary = rest.split_once(">>")?.0;
        let number = dictionary.split_once("/N ")?.1;
        number.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    });
    facts.extend(pages.map(|pages| ("Pages", format::number(pages.into()))));
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn npy(header: &str) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes
    }

    fn value(facts: &[DataFact], label: &str) -> String {
        facts.iter().find(|(name, _)| *name == label).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    #[test]
    fn arrays_tell_shape_and_type() {
        let facts = describe_npy(&npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1000, 2), }")).unwrap();
        assert_eq!((value(&facts, "Shape").as_str(), value(&facts, "Type").as_str()), ("3 × 1,000 × 2", "float32"));
        assert_eq!(value(&facts, "Values"), "6,000");
        let facts = describe_npy(&npy("{'descr': '>i8', 'fortran_order': True, 'shape': (5,), }")).unwrap();
        assert_eq!((value(&facts, "Shape").as_str(), value(&facts, "Type").as_str()), ("5", "int64, big-endian"));
        assert!(value(&facts, "Order in memory").contains("Fortran"));
        let facts = describe_npy(&npy("{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (), }")).unwrap();
        assert_eq!((value(&facts, "Shape").as_str(), value(&facts, "Type").as_str()), ("a single value", "structured"));
        assert_eq!(describe_npy(b"\x93NUMPY\x01\0\xff\xff"), None);
        assert_eq!(describe_npy(&npy("{'shape': (99999999999999, 99999999999999)}")), None);
    }

    #[test]
    fn hdf5_and_pdf_tell_their_version() {
        let facts = describe_hdf5(b"\x89HDF\r\n\x1a\n\x02rest").unwrap();
        assert_eq!(value(&facts, "Format"), "HDF5, superblock version 2");
        let later = [&[0; 512][..], b"\x89HDF\r\n\x1a\n\0"].concat();
        assert!(describe_hdf5(&later).is_some());
        assert_eq!(describe_hdf5(b"\x89HDF"), None);
        let facts = describe_pdf(b"%PDF-1.7\n1 0 obj<</Linearized 1/L 5/N 12/T 3>>").unwrap();
        assert_eq!((value(&facts, "Format").as_str(), value(&facts, "Pages").as_str()), ("PDF 1.7", "12"));
        assert_eq!(describe_pdf(b"%PDF-1.4\n/N 12").unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_described_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
            let described = [describe_npy(&bytes), describe_hdf5(&bytes), describe_parquet(&bytes), describe_pdf(&bytes)];
            prop_assert!(described.iter().flatten().flatten().all(|(_, value)| value.chars().count() < 1000));
            let _ = describe_pdf(&[&b"%PDF-"[..], &bytes[..]].concat());
            let _ = describe_npy(&[&b"\x93NUMPY"[..], &bytes[..]].concat());
            let _ = describe_parquet(&[&bytes[..], &[60, 0, 0, 0], b"PAR1"].concat());
        }

        #[test]
        fn any_array_header_is_read(text in "('shape': \\(|'descr': '|[0-9,() <>a-z'])*") {
            let header: String = text.chars().take(1000).collect();
            let _ = describe_npy(&npy(&header));
        }
    }
}
