//! Attributes of files, as packets carry them.

use bytes::{Buf as _, Bytes};

use super::{MalformedSftpPacketError, take_string, take_u32};

/// Attributes that are to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttrs {
    pub size: Option<u64>,
    /// The numbers of user and group.
    pub owner: Option<(u32, u32)>,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Access and modification time.
    pub times: Option<(u32, u32)>,
}

/// Attributes as the server told them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SftpAttrs {
    pub size: Option<u64>,
    pub owner: Option<(u32, u32)>,
    pub mode: Option<u32>,
    pub times: Option<(u32, u32)>,
}

impl SetAttrs {
    pub(super) fn encode(self, body: &mut Vec<u8>) {
        let flag = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let flags = flag(self.size.is_some(), attr_flags::SIZE)
            | flag(self.owner.is_some(), attr_flags::OWNER)
            | flag(self.mode.is_some(), attr_flags::MODE)
            | flag(self.times.is_some(), attr_flags::TIMES);
        body.extend(flags.to_be_bytes());
        if let Some(size) = self.size {
            body.extend(size.to_be_bytes());
        }
        if let Some((user, group)) = self.owner {
            body.extend([user.to_be_bytes(), group.to_be_bytes()].concat());
        }
        if let Some(mode) = self.mode {
            body.extend(mode.to_be_bytes());
        }
        if let Some((accessed, modified)) = self.times {
            body.extend(accessed.to_be_bytes());
            body.extend(modified.to_be_bytes());
        }
    }
}

mod attr_flags {
    pub(super) const SIZE: u32 = 0x01;
    pub(super) const OWNER: u32 = 0x02;
    pub(super) const MODE: u32 = 0x04;
    pub(super) const TIMES: u32 = 0x08;
    pub(super) const EXTENDED: u32 = 0x8000_0000;
}

pub(super) fn take_attrs(packet: &mut Bytes) -> Result<SftpAttrs, MalformedSftpPacketError> {
    let flags = take_u32(packet)?;
    let has = |bit: u32| flags & bit != 0;
    let mut attrs = SftpAttrs::default();
    if has(attr_flags::SIZE) {
        attrs.size = Some(packet.try_get_u64().map_err(|_| MalformedSftpPacketError)?);
    }
    if has(attr_flags::OWNER) {
        attrs.owner = Some((take_u32(packet)?, take_u32(packet)?));
    }
    if has(attr_flags::MODE) {
        attrs.mode = Some(take_u32(packet)?);
    }
    if has(attr_flags::TIMES) {
        attrs.times = Some((take_u32(packet)?, take_u32(packet)?));
    }
    if has(attr_flags::EXTENDED) {
        for _ in 0..take_u32(packet)? {
            take_string(packet)?;
            take_string(packet)?;
        }
    }
    Ok(attrs)
}
