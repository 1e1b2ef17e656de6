use proptest::prelude::*;

use super::*;

#[test]
fn requests_are_as_the_draft_writes_them() {
    let read = SftpRequest::Read { handle: b"h1", offset: 0x0102, len: 9 }.encode(7);
    assert_eq!(read, b"\0\0\0\x17\x05\0\0\0\x07\0\0\0\x02h1\0\0\0\0\0\0\x01\x02\0\0\0\x09");
    let write = SftpRequest::Write { handle: b"h", offset: 1, data: b"abc" }.encode(1);
    assert_eq!(&write[..4], &[0, 0, 0, 25], "the length counts the data that follows");
    assert_eq!(write.len(), 4 + 25 - 3);
    let mode = SetAttrs { mode: Some(0o644), ..SetAttrs::default() };
    let open = SftpRequest::Open { path: b"/a\xff", mode: SftpOpenMode::CreateNew, attrs: mode }.encode(2);
    assert_eq!(open, b"\0\0\0\x18\x03\0\0\0\x02\0\0\0\x03/a\xff\0\0\0\x2a\0\0\0\x04\0\0\x01\xa4");
    let attrs = SetAttrs { owner: Some((1000, 7)), mode: Some(0o644), ..SetAttrs::default() };
    let owned = SftpRequest::SetStat { path: b"/", attrs }.encode(3);
    assert_eq!(&owned[14..], b"\0\0\0\x06\0\0\x03\xe8\0\0\0\x07\0\0\x01\xa4");
    let open = SftpRequest::SetHandleStat { handle: b"h1", attrs: mode }.encode(4);
    assert_eq!(open, b"\0\0\0\x13\x0a\0\0\0\x04\0\0\0\x02h1\0\0\0\x04\0\0\x01\xa4");
    let stat = SftpRequest::HandleStat { handle: b"h1" }.encode(5);
    assert_eq!(stat, b"\0\0\0\x0b\x08\0\0\0\x05\0\0\0\x02h1");
}

#[test]
fn replies_of_a_server_are_read() {
    let status = Bytes::from_static(b"\x65\0\0\0\x05\0\0\0\x02\0\0\0\x0cNo such file\0\0\0\0");
    let failed = SftpReply::Failed(SftpStatus { code: SftpStatus::NO_SUCH_FILE, message: "No such file".into() });
    assert_eq!(decode_reply(status), Ok((5, failed)));
    let bare = Bytes::from_static(b"\x65\0\0\0\x05\0\0\0\0");
    assert_eq!(decode_reply(bare), Ok((5, SftpReply::Done)));
    let packet = Bytes::from_static(
        b"\x68\0\0\0\x01\0\0\0\x01\0\0\0\x04ba\xff\n\0\0\0\x01l\0\0\0\x0d\0\0\0\0\0\0\0\x2a\0\0\x81\xa4\0\0\0\x01\0\0\0\x02",
    );
    let attrs = SftpAttrs { size: Some(42), owner: None, mode: Some(0o100_644), times: Some((1, 2)) };
    let named = NamedSftpAttrs { name: Bytes::from_static(b"ba\xff\n"), attrs };
    assert_eq!(decode_reply(packet), Ok((1, SftpReply::Names(vec![named]))));
}

#[test]
fn the_greeting_names_extensions() {
    let greeting = Bytes::from_static(b"\x02\0\0\0\x03\0\0\0\x18posix-rename@openssh.com\0\0\0\x011");
    assert_eq!(decode_version(greeting), Ok(vec!["posix-rename@openssh.com".to_owned()]));
    for wrong in [&b"\x02\0\0\0\x02"[..], b"Welc", b"\x65\0\0\0\x03", b""] {
        assert_eq!(decode_version(Bytes::copy_from_slice(wrong)), Err(MalformedSftpPacketError));
    }
}

proptest! {
    /// Whatever a server sends, reading ends, and takes no more memory than was sent.
    #[test]
    fn any_packet_is_read_or_refused(kind in 100_u8..202, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut packet = vec![kind];
        packet.extend(&bytes);
        if let Ok((_, SftpReply::Names(names))) = decode_reply(packet.into()) {
            prop_assert!(names.len() <= bytes.len());
        }
        let _ = decode_version(bytes.into());
    }
}
