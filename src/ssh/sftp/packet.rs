//! The packets of SFTP version 3 (draft-ietf-secsh-filexfer-02), the version that every server speaks. Names and paths
//! are bytes throughout. Pure; everything that is read comes from a machine that is not ours.

mod attrs;

use bytes::{Buf as _, Bytes};

pub use self::attrs::SetAttrs;
pub(super) use self::attrs::SftpAttrs;
use self::attrs::take_attrs;

/// The version that we speak.
const VERSION: u32 = 3;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SftpOpenMode {
    Read,
    /// Creates the file if it is missing; keeps what is in it.
    Write,
    /// Creates the file; fails if something with this name exists.
    CreateNew,
}

impl SftpOpenMode {
    const fn flags(self) -> u32 {
        const READ: u32 = 0x01;
        const WRITE: u32 = 0x02;
        const CREATE: u32 = 0x08;
        const EXCLUSIVE: u32 = 0x20;
        match self {
            Self::Read => READ,
            Self::Write => WRITE,
            Self::CreateNew => WRITE | CREATE | EXCLUSIVE,
        }
    }
}

/// What is asked of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SftpRequest<'a> {
    Open {
        path: &'a [u8],
        mode: SftpOpenMode,
        attrs: SetAttrs,
    },
    Close {
        handle: &'a [u8],
    },
    Read {
        handle: &'a [u8],
        offset: u64,
        len: u32,
    },
    Write {
        handle: &'a [u8],
        offset: u64,
        data: &'a [u8],
    },
    Lstat {
        path: &'a [u8],
    },
    Stat {
        path: &'a [u8],
    },
    /// Asks for the attributes of an open file.
    HandleStat {
        handle: &'a [u8],
    },
    SetStat {
        path: &'a [u8],
        attrs: SetAttrs,
    },
    /// Sets attributes of an open file, whatever has its name by now.
    SetHandleStat {
        handle: &'a [u8],
        attrs: SetAttrs,
    },
    OpenDir {
        path: &'a [u8],
    },
    ReadDir {
        handle: &'a [u8],
    },
    Remove {
        path: &'a [u8],
    },
    MakeDir {
        path: &'a [u8],
    },
    RemoveDir {
        path: &'a [u8],
    },
    RealPath {
        path: &'a [u8],
    },
    /// Fails if the new name exists.
    Rename {
        from: &'a [u8],
        to: &'a [u8],
    },
    ReadLink {
        path: &'a [u8],
    },
    /// OpenSSH expects the target first, unlike the draft of the protocol.
    MakeLink {
        target: &'a [u8],
        link: &'a [u8],
    },
    /// An extension that takes two strings (`posix-rename@openssh.com`, `hardlink@openssh.com`).
    ExtendedPair {
        name: &'a str,
        first: &'a [u8],
        second: &'a [u8],
    },
    /// An extension that takes one string (`statvfs@openssh.com`, `fsync@openssh.com`) or none (`limits@openssh.com`).
    Extended {
        name: &'a str,
        argument: Option<&'a [u8]>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedSftpAttrs {
    pub(super) name: Bytes,
    pub(super) attrs: SftpAttrs,
}

/// A status code other than success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SftpStatus {
    pub(super) code: u32,
    pub(super) message: String,
}

impl SftpStatus {
    pub(super) const EOF: u32 = 1;
    pub(super) const NO_SUCH_FILE: u32 = 2;
    pub(super) const PERMISSION_DENIED: u32 = 3;
    pub(super) const FAILURE: u32 = 4;
}

/// What the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SftpReply {
    Done,
    Failed(SftpStatus),
    Handle(Bytes),
    Data(Bytes),
    Names(Vec<NamedSftpAttrs>),
    Attrs(SftpAttrs),
    Extended(Bytes),
}

/// A packet that is not SFTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed SFTP packet")]
pub(super) struct MalformedSftpPacketError;

const OK: u32 = 0;

impl SftpRequest<'_> {
    const fn kind(&self) -> u8 {
        match self {
            Self::Open { .. } => 3,
            Self::Close { .. } => 4,
            Self::Read { .. } => 5,
            Self::Write { .. } => 6,
            Self::Lstat { .. } => 7,
            Self::HandleStat { .. } => 8,
            Self::SetStat { .. } => 9,
            Self::SetHandleStat { .. } => 10,
            Self::OpenDir { .. } => 11,
            Self::ReadDir { .. } => 12,
            Self::Remove { .. } => 13,
            Self::MakeDir { .. } => 14,
            Self::RemoveDir { .. } => 15,
            Self::RealPath { .. } => 16,
            Self::Stat { .. } => 17,
            Self::Rename { .. } => 18,
            Self::ReadLink { .. } => 19,
            Self::MakeLink { .. } => 20,
            Self::ExtendedPair { .. } | Self::Extended { .. } => 200,
        }
    }

    /// The packet, without the data of a write: that follows from where it lies.
    pub(super) fn encode(&self, id: u32) -> Vec<u8> {
        let mut body = vec![0; 4];
        body.push(self.kind());
        body.extend(id.to_be_bytes());
        let mut data_len = 0;
        match self {
            Self::Open { path, mode, attrs } => {
                put_string(&mut body, path);
                body.extend(mode.flags().to_be_bytes());
                attrs.encode(&mut body);
            }
            Self::Close { handle } | Self::HandleStat { handle } | Self::ReadDir { handle } => {
                put_string(&mut body, handle);
            }
            Self::Read { handle, offset, len } => {
                put_string(&mut body, handle);
                body.extend(offset.to_be_bytes());
                body.extend(len.to_be_bytes());
            }
            Self::Write { handle, offset, data } => {
                put_string(&mut body, handle);
                body.extend(offset.to_be_bytes());
                body.extend(length(data.len()).to_be_bytes());
                data_len = data.len();
            }
            Self::SetStat { path: target, attrs } | Self::SetHandleStat { handle: target, attrs } => {
                put_string(&mut body, target);
                attrs.encode(&mut body);
            }
            Self::MakeDir { path } => {
                put_string(&mut body, path);
                SetAttrs::default().encode(&mut body);
            }
            Self::Lstat { path }
            | Self::Stat { path }
            | Self::OpenDir { path }
            | Self::Remove { path }
            | Self::RemoveDir { path }
            | Self::RealPath { path }
            | Self::ReadLink { path } => put_string(&mut body, path),
            Self::Rename { from: first, to: second } | Self::MakeLink { target: first, link: second } => {
                put_string(&mut body, first);
                put_string(&mut body, second);
            }
            Self::ExtendedPair { name, first, second } => {
                put_string(&mut body, name.as_bytes());
                put_string(&mut body, first);
                put_string(&mut body, second);
            }
            Self::Extended { name, argument } => {
                put_string(&mut body, name.as_bytes());
                if let Some(argument) = argument {
                    put_string(&mut body, argument);
                }
            }
        }
        let len = length(body.len() - 4 + data_len);
        body[..4].copy_from_slice(&len.to_be_bytes());
        body
    }
}

/// Our first packet.
pub(super) fn encode_init() -> Vec<u8> {
    let mut packet = vec![0, 0, 0, 5, 1];
    packet.extend(VERSION.to_be_bytes());
    packet
}

/// Reads the server's first packet: the names of its extensions.
pub(super) fn decode_version(mut packet: Bytes) -> Result<Vec<String>, MalformedSftpPacketError> {
    if take_u8(&mut packet)? != 2 || take_u32(&mut packet)? < VERSION {
        return Err(MalformedSftpPacketError);
    }
    let mut extensions = Vec::new();
    while !packet.is_empty() {
        extensions.push(String::from_utf8_lossy(&take_string(&mut packet)?).into_owned());
        take_string(&mut packet)?;
    }
    Ok(extensions)
}

/// Reads a reply and the id of its request.
pub(super) fn decode_reply(mut packet: Bytes) -> Result<(u32, SftpReply), MalformedSftpPacketError> {
    let kind = take_u8(&mut packet)?;
    let id = take_u32(&mut packet)?;
    let reply = match kind {
        101 => {
            let code = take_u32(&mut packet)?;
            // Old servers leave the message out.
            let message = take_string(&mut packet).unwrap_or_default();
            if code == OK {
                SftpReply::Done
            } else {
                SftpReply::Failed(SftpStatus { code, message: String::from_utf8_lossy(&message).into_owned() })
            }
        }
        102 => SftpReply::Handle(take_string(&mut packet)?),
        103 => SftpReply::Data(take_string(&mut packet)?),
        104 => {
            // Not reserved from the count: the server could claim any.
            let count = take_u32(&mut packet)?;
            let mut names = Vec::new();
            for _ in 0..count {
                let name = take_string(&mut packet)?;
                let _long_name = take_string(&mut packet)?;
                names.push(NamedSftpAttrs { name, attrs: take_attrs(&mut packet)? });
            }
            SftpReply::Names(names)
        }
        105 => SftpReply::Attrs(take_attrs(&mut packet)?),
        201 => SftpReply::Extended(packet),
        _ => return Err(MalformedSftpPacketError),
    };
    Ok((id, reply))
}

/// Numbers of an extension's reply, in order.
pub(super) fn decode_numbers<const N: usize>(mut packet: Bytes) -> Result<[u64; N], MalformedSftpPacketError> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = packet.try_get_u64().map_err(|_| MalformedSftpPacketError)?;
    }
    Ok(numbers)
}

fn put_string(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(length(bytes.len()).to_be_bytes());
    body.extend_from_slice(bytes);
}

/// Nothing that we send is anywhere near this long.
fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn take_u8(packet: &mut Bytes) -> Result<u8, MalformedSftpPacketError> {
    packet.try_get_u8().map_err(|_| MalformedSftpPacketError)
}

fn take_u32(packet: &mut Bytes) -> Result<u32, MalformedSftpPacketError> {
    packet.try_get_u32().map_err(|_| MalformedSftpPacketError)
}

fn take_string(packet: &mut Bytes) -> Result<Bytes, MalformedSftpPacketError> {
    let len = usize::try_from(take_u32(packet)?).map_err(|_| MalformedSftpPacketError)?;
    if len > packet.len() {
        return Err(MalformedSftpPacketError);
    }
    Ok(packet.split_to(len))
}

#[cfg(test)]
mod tests;
