//! Numbers in files of others, the lowest byte first; `None` beyond the end.

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u64> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u64::from(u16::from_le_bytes(two.try_into().ok()?)))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u64> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u64::from(u32::from_le_bytes(four.try_into().ok()?)))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(eight.try_into().ok()?))
}
