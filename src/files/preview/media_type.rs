//! Which files a browser may show by itself. Both the name and the first bytes must say so: what goes out under one of
//! these types can't be taken for a page or a script.

/// A type that may be sent inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlineMediaType {
    /// As the `Content-Type` header has it.
    pub content_type: &'static str,
    pub kind: MediaKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    Image,
    Audio,
    Video,
}

impl InlineMediaType {
    /// How much of a file shows its type.
    pub const SNIFF_BYTES: usize = 1024;

    /// Whether files with this extension (in lower case) are usually pictures that may be sent.
    pub const fn is_picture_extension(extension: &str) -> bool {
        matches!(extension.as_bytes(), b"png" | b"jpg" | b"jpeg" | b"gif" | b"webp" | b"svg")
    }

    /// Finds the type of a file from its extension (in lower case) and its first bytes.
    pub fn detect(extension: &str, head: &[u8]) -> Option<Self> {
        use MediaKind::{Audio, Image, Video};
        let is_riff = |form: &[u8]| head.starts_with(b"RIFF") && head.get(8..12) == Some(form);
        let is_mp4 = head.get(4..8) == Some(b"ftyp");
        let is_ogg = head.starts_with(b"OggS");
        let is_mp3 = head.starts_with(b"ID3") || matches!(head, [0xFF, second, ..] if second & 0xE6 == 0xE2);
        let (content_type, kind, fits) = match extension {
            "png" => ("image/png", Image, head.starts_with(b"\x89PNG\r\n\x1a\n")),
            "jpg" | "jpeg" => ("image/jpeg", Image, head.starts_with(b"\xff\xd8\xff")),
            "gif" => ("image/gif", Image, head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a")),
            "webp" => ("image/webp", Image, is_riff(b"WEBP")),
            "svg" => ("image/svg+xml", Image, is_svg(head)),
            "wav" => ("audio/wav", Audio, is_riff(b"WAVE")),
            "mp3" => ("audio/mpeg", Audio, is_mp3),
            "flac" => ("audio/flac", Audio, head.starts_with(b"fLaC")),
            "ogg" | "oga" | "opus" => ("audio/ogg", Audio, is_ogg),
            "m4a" => ("audio/mp4", Audio, is_mp4),
            "ogv" => ("video/ogg", Video, is_ogg),
            "mp4" | "m4v" => ("video/mp4", Video, is_mp4),
            "webm" => ("video/webm", Video, head.starts_with(b"\x1a\x45\xdf\xa3")),
            _ => return None,
        };
        fits.then_some(Self { content_type, kind })
    }
}

/// Whether the first element is `<svg`: only declarations and comments may stand before it.
fn is_svg(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&head[..head.len().min(InlineMediaType::SNIFF_BYTES)]);
    let mut rest = text.trim_start_matches('\u{FEFF}').trim_start();
    loop {
        let end = match rest {
            _ if rest.starts_with("<!--") => "-->",
            _ if rest.starts_with("<?") => "?>",
            _ if rest.starts_with("<!") => ">",
            _ => break,
        };
        let Some((_, after)) = rest.split_once(end) else { return false };
        rest = after.trim_start();
    }
    let after = rest.strip_prefix("<svg").and_then(|rest| rest.chars().next());
    after.is_some_and(|c| c.is_whitespace() || matches!(c, '>' | '/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn detect(extension: &str, head: &[u8]) -> Option<&'static str> {
        InlineMediaType::detect(extension, head).map(|found| found.content_type)
    }

    #[test]
    fn name_and_bytes_must_agree() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        assert_eq!(detect("png", png), Some("image/png"));
        assert_eq!(detect("jpg", png), None);
        assert_eq!(detect("html", png), None);
        assert_eq!(detect("png", b"<html><script>"), None);
        assert_eq!(detect("gif", b"GIF89a..."), Some("image/gif"));
        assert_eq!(detect("webp", b"RIFF\x10\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(detect("wav", b"RIFF\x10\0\0\0WAVEfmt "), Some("audio/wav"));
        assert_eq!(detect("mp4", b"\0\0\0\x20ftypisom"), Some("video/mp4"));
        assert_eq!(detect("mp3", b"ID3\x04"), Some("audio/mpeg"));
        assert_eq!(detect("mp3", b"\xff\xfb\x90"), Some("audio/mpeg"));
        assert_eq!(detect("jpeg", b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(detect("", b""), None);
    }

    #[test]
    fn only_a_drawing_is_svg() {
        for good in [
            "<svg>",
            "<svg xmlns='http://www.w3.org/2000/svg'>",
            "\u{FEFF}<?xml version=\"1.0\"?>\n<!-- by hand -->\n<!DOCTYPE svg>\n<svg\n",
        ] {
            assert_eq!(detect("svg", good.as_bytes()), Some("image/svg+xml"), "{good}");
        }
        for bad in ["", "<html><svg>", "svg", "<svgx>", "<!-- <svg> ", "text <svg>"] {
            assert_eq!(detect("svg", bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_ever_sent_as_a_page(extension in "[a-z0-9]{0,5}", head in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(found) = detect(&extension, &head) {
                prop_assert!(["image/", "audio/", "video/"].iter().any(|kind| found.starts_with(kind)));
            }
            for extension in ["svg", "png", "mp3", "webm"] {
                let _ = detect(extension, &head);
            }
        }
    }
}
