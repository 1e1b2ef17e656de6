//! How a file can be shown, from its name and its first bytes.

use super::media_type::InlineMediaType;

/// Zeros this near the start mean that it isn't text.
const BINARY_SAMPLE_BYTES: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    Text,
    /// CSV or TSV.
    Table,
    Notebook,
    Media(InlineMediaType),
    Pdf,
    Zip,
    Tar,
    Gzip,
    Npy,
    Hdf5,
    Parquet,
    Binary,
}

impl FileFormat {
    /// `extension` in lower case.
    pub fn detect(extension: &str, head: &[u8]) -> Self {
        if let Some(media) = InlineMediaType::detect(extension, head) {
            return Self::Media(media);
        }
        let by_magic = [
            (&b"%PDF-"[..], Self::Pdf),
            (b"PK\x03\x04", Self::Zip),
            (b"PK\x05\x06", Self::Zip),
            (b"\x93NUMPY", Self::Npy),
            (b"\x89HDF\r\n\x1a\n", Self::Hdf5),
            (b"PAR1", Self::Parquet),
            (b"\x1f\x8b", Self::Gzip),
        ];
        if let Some((_, format)) = by_magic.into_iter().find(|(magic, _)| head.starts_with(magic)) {
            return format;
        }
        if head.get(257..262) == Some(b"ustar") {
            return Self::Tar;
        }
        if head[..head.len().min(BINARY_SAMPLE_BYTES)].contains(&0) {
            return Self::Binary;
        }
        match extension {
            "csv" | "tsv" => Self::Table,
            "ipynb" => Self::Notebook,
            _ => Self::Text,
        }
    }
}

/// The language in which a file is highlighted, by its name; empty for plain text. All are known to `highlight.js`.
pub fn highlight_language(name: &str, extension: &str) -> &'static str {
    match name {
        "Makefile" | "makefile" | "GNUmakefile" => return "makefile",
        ".bashrc" | ".bash_profile" | ".profile" | ".bash_aliases" | ".zshrc" => return "bash",
        _ => {}
    }
    match extension {
        "py" | "pyw" | "pyi" | "smk" => "python",
        "sh" | "bash" | "zsh" | "sbatch" | "slurm" | "job" | "pbs" => "bash",
        "r" => "r",
        "jl" => "julia",
        "m" => "matlab",
        "f" | "for" | "f77" | "f90" | "f95" | "f03" | "f08" => "fortran",
        "c" | "h" => "c",
        "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" | "cu" | "cuh" => "cpp",
        "rs" => "rust",
        "go" => "go",
        "java" => "java",
        "kt" => "kotlin",
        "swift" => "swift",
        "js" | "mjs" | "cjs" | "jsx" => "javascript",
        "ts" | "tsx" => "typescript",
        "json" | "jsonl" | "ipynb" => "json",
        "yaml" | "yml" => "yaml",
        "toml" | "ini" | "cfg" | "conf" => "ini",
        "xml" | "html" | "htm" | "svg" | "xhtml" => "xml",
        "css" => "css",
        "scss" => "scss",
        "md" | "markdown" => "markdown",
        "sql" => "sql",
        "pl" | "pm" => "perl",
        "lua" => "lua",
        "rb" => "ruby",
        "php" => "php",
        "cs" => "csharp",
        "diff" | "patch" => "diff",
        "mk" => "makefile",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_decide_before_the_name_does() {
        for (extension, head, expected) in [
            ("csv", &b"a,b\n"[..], FileFormat::Table),
            ("csv", b"a\0b", FileFormat::Binary),
            ("csv", b"PK\x03\x04", FileFormat::Zip),
            ("pt", b"PK\x03\x04", FileFormat::Zip),
            ("npz", b"PK\x03\x04", FileFormat::Zip),
            ("h5", b"\x89HDF\r\n\x1a\n\0", FileFormat::Hdf5),
            ("txt", b"%PDF-1.5", FileFormat::Pdf),
            ("png", b"<script>alert(1)</script>", FileFormat::Text),
            ("html", b"<script>alert(1)</script>", FileFormat::Text),
            ("ipynb", b"{}", FileFormat::Notebook),
            ("gz", b"\x1f\x8b\x08", FileFormat::Gzip),
            ("", b"", FileFormat::Text),
        ] {
            assert_eq!(FileFormat::detect(extension, head), expected, "{extension}");
        }
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(FileFormat::detect("tar", &tar), FileFormat::Tar);
    }

    proptest! {
        #[test]
        fn anything_has_a_format(extension in "\\PC{0,6}", head in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = (FileFormat::detect(&extension, &head), highlight_language(&extension, &extension));
        }
    }
}
