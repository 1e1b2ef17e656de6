//! Looking into a file without downloading it. The parsers below take bytes that are not trusted and give bounded
//! values; here only the few ranges of a file are read that its kind needs.

mod archive_members;
mod array_members;
mod data_files;
mod delimited_table;
mod described_array;
mod file_format;
mod hdf5_datasets;
mod hex_dump;
mod markdown;
mod media_type;
mod notebook;
mod parquet_footer;
mod pickled_tensors;
mod text_window;

pub use self::archive_members::{ArchiveMember, ArchiveMembers};
pub use self::data_files::{DataFact, PDF_MAGIC};
pub use self::delimited_table::{DelimitedTable, TableColumn};
pub use self::described_array::{DescribedArray, DescribedArrays};
pub use self::file_format::{FileFormat, highlight_language};
pub use self::hex_dump::HexRow;
pub use self::markdown::{MarkdownBlock, MarkdownSpan};
pub use self::media_type::{InlineMediaType, MediaKind};
pub use self::notebook::{NotebookCell, NotebookOutput, NotebookView};
pub use self::text_window::{TextWindow, WindowPosition};

use std::ops::Range;
use std::sync::Arc;

use self::archive_members::{
    TAR_BLOCK_BYTES, TarEntryKind, find_zip_directory, list_zip_members, parse_gzip, parse_tar_header,
    parse_zip_entries, shown_name,
};
use self::array_members::find_wanted_members;
use self::hdf5_datasets::{LoadedParts, find_datasets};
use self::notebook::MAX_NOTEBOOK_BYTES;
use self::text_window::WINDOW_BYTES;
use crate::clock::UnixTime;
use crate::domain::RemotePath;
use crate::files::sharing::{ClosedFolders, describe_access, read_folders_above};
use crate::format;
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::{RemoteFileReader, TransferSession};
use crate::ssh::sftp::{self, RemoteFileAttrs, RemoteFileKind, SftpError};

/// How much of the beginning and of the end of a file is read to describe it.
const EDGE_BYTES: u64 = 64 * 1024;
/// How much of a table is read.
const TABLE_BYTES: u64 = 256 * 1024;
/// How much of a zip archive's table of contents is read.
const DIRECTORY_BYTES: u64 = 256 * 1024;
/// Each member of a tar archive is a read of its own.
const MAX_TAR_READS: usize = 60;
/// How many parts of an HDF5 file are read to find its data sets.
const MAX_HDF5_READS: usize = 40;
/// Larger pictures are only offered for download.
pub const MAX_INLINE_IMAGE_BYTES: u64 = 50 * 1024 * 1024;
/// The same for PDFs.
pub const MAX_INLINE_PDF_BYTES: u64 = 100 * 1024 * 1024;
/// Larger texts can't be edited in the browser.
pub const MAX_EDIT_BYTES: u64 = 1024 * 1024;

/// What is asked of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PreviewRequest {
    pub position: WindowPosition,
    /// Show it as text, whatever it is.
    pub as_text: bool,
}

/// A file, looked into.
#[derive(Debug, Clone, PartialEq)]
pub struct FilePreview {
    pub facts: FileFacts,
    pub content: PreviewContent,
}

/// What is known of any file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    pub size: u64,
    pub modified: Option<UnixTime>,
    /// Who can use it, in words; empty if the cluster doesn't tell.
    pub access: String,
    /// Where it leads, if it is a link.
    pub link_target: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PreviewContent {
    Empty,
    Text(TextWindow),
    Table(DelimitedTable),
    Notebook(NotebookView),
    Media(InlineMediaType),
    /// A PDF that the browser shows, and what its header says.
    Pdf(Vec<DataFact>),
    /// What it is, in a word: something that the browser could show, were it smaller.
    TooLarge(&'static str),
    Members(DescribedArchive),
    Data(DescribedData),
}

/// An archive: what it is and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedArchive {
    pub format: &'static str,
    pub listing: ArchiveMembers,
    /// The arrays in it, if it is a file of `NumPy` or `PyTorch`.
    pub arrays: DescribedArrays,
}

impl FileFacts {
    pub fn size_words(&self) -> String {
        format::bytes(self.size)
    }
}

impl DescribedArchive {
    /// What kind of archive it is, and how much is in it.
    pub fn words(&self) -> String {
        match self.listing.total {
            None => self.format.to_owned(),
            Some(1) => format!("{} with one item", self.format),
            Some(total) => format!("{} with {} items", self.format, format::number(total)),
        }
    }
}

/// A file that is neither text nor shown by browsers: what its header says, and its first bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedData {
    pub facts: Vec<DataFact>,
    /// The data sets of an HDF5 file.
    pub arrays: DescribedArrays,
    pub first_bytes: Vec<HexRow>,
}

/// Looks into a file. `home` tells who is looking: it belongs to them.
pub async fn load(
    connection: &Arc<ClusterConnection>,
    path: &RemotePath,
    home: Option<&RemotePath>,
    request: PreviewRequest,
) -> Result<FilePreview, SftpError> {
    let mut reader = RemoteFileReader::open(connection, path).await?;
    let facts = load_facts(connection, path, home, reader.attrs()).await?;
    let content = load_content(&mut reader, path, request).await?;
    Ok(FilePreview { facts, content })
}

async fn load_facts(
    connection: &Arc<ClusterConnection>,
    path: &RemotePath,
    home: Option<&RemotePath>,
    attrs: &RemoteFileAttrs,
) -> Result<FileFacts, SftpError> {
    let session = TransferSession::open(connection).await?;
    let me = async {
        let home = session.stat(home?).await.ok()?;
        home.owner.map(|(user, _)| user)
    };
    let above = async {
        let folder = sftp::real_path(connection, path).await.ok()?.parent()?;
        Some(read_folders_above(&session, &folder).await)
    };
    let (own, me, above) = futures_util::future::join3(session.lstat(path), me, above).await;
    let is_link = own.is_ok_and(|own| own.kind == RemoteFileKind::Link);
    let link_target = if is_link { sftp::read_link(connection, path).await.ok() } else { None };
    let closed = ClosedFolders::find(&above.unwrap_or_default(), attrs.owner.map(|(_, group)| group));
    Ok(FileFacts {
        size: attrs.size,
        modified: attrs.modified,
        access: attrs.mode.map(|_| describe_access(attrs, &closed, me)).unwrap_or_default(),
        link_target: link_target.map(|target| shown_name(&target)),
    })
}

async fn load_content(
    reader: &mut RemoteFileReader,
    path: &RemotePath,
    request: PreviewRequest,
) -> Result<PreviewContent, SftpError> {
    let size = reader.attrs().size;
    // Files in /proc have no size and yet a content.
    let edge = if size == 0 { EDGE_BYTES } else { size.min(EDGE_BYTES) };
    let is_start = request.position == WindowPosition::Start;
    let head = if is_start { read_range(reader, 0..edge).await? } else { Vec::new() };
    if is_start && head.is_empty() {
        return Ok(PreviewContent::Empty);
    }
    let size = size.max(u64::try_from(head.len()).unwrap_or(u64::MAX));
    let extension = path.name().map(|name| name.extension()).unwrap_or_default();
    let format = match (is_start, request.as_text) {
        (true, false) => FileFormat::detect(&extension, &head),
        _ => FileFormat::Text,
    };
    Ok(match format {
        FileFormat::Table => {
            let bytes = read_range(reader, 0..size.min(TABLE_BYTES)).await?;
            PreviewContent::Table(DelimitedTable::parse(&bytes, &extension, size <= TABLE_BYTES))
        }
        FileFormat::Notebook if size <= MAX_NOTEBOOK_BYTES => {
            let bytes = read_range(reader, 0..size).await?;
            match NotebookView::parse(&bytes) {
                Some(notebook) => PreviewContent::Notebook(notebook),
                None => load_text(reader, request.position, head, size).await?,
            }
        }
        FileFormat::Text | FileFormat::Notebook => load_text(reader, request.position, head, size).await?,
        FileFormat::Media(media) if media.kind == MediaKind::Image && size > MAX_INLINE_IMAGE_BYTES => {
            PreviewContent::TooLarge("picture")
        }
        FileFormat::Media(media) => PreviewContent::Media(media),
        FileFormat::Zip => {
            let (listing, arrays) = load_zip_members(reader, size).await?;
            PreviewContent::Members(DescribedArchive { format: zip_words(&extension), listing, arrays })
        }
        FileFormat::Tar => {
            let listing = load_tar_members(reader, size).await?;
            PreviewContent::Members(DescribedArchive {
                format: "tar archive",
                listing,
                arrays: DescribedArrays::default(),
            })
        }
        FileFormat::Gzip | FileFormat::Parquet => {
            let tail = read_range(reader, size.saturating_sub(EDGE_BYTES)..size).await?;
            describe_data(format, &head, &tail, DescribedArrays::default())
        }
        FileFormat::Hdf5 => {
            let arrays = load_datasets(reader, head.clone(), size).await?;
            describe_data(format, &head, &[], arrays)
        }
        FileFormat::Pdf if has_pdf_name(path) && size > MAX_INLINE_PDF_BYTES => PreviewContent::TooLarge("PDF"),
        FileFormat::Pdf if has_pdf_name(path) => {
            PreviewContent::Pdf(data_files::describe_pdf(&head).unwrap_or_default())
        }
        FileFormat::Npy | FileFormat::Pdf | FileFormat::Binary => {
            describe_data(format, &head, &[], DescribedArrays::default())
        }
    })
}

/// Whether its name says that it is a picture that browsers show.
pub fn has_picture_name(path: &RemotePath) -> bool {
    path.name().is_some_and(|name| InlineMediaType::is_picture_extension(&name.extension()))
}

/// Whether its name says that its page shows more than facts about it.
pub fn has_preview_name(path: &RemotePath) -> bool {
    let Some(name) = path.name() else { return false };
    let extension = name.extension();
    InlineMediaType::is_picture_extension(&extension)
        || matches!(extension.as_str(), "csv" | "tsv" | "txt" | "log" | "out" | "err" | "ipynb" | "pdf")
        || !highlight_language(&name.to_string(), &extension).is_empty()
}

/// Whether its name says that it is a PDF. Only the page of such a file may have a frame.
pub fn has_pdf_name(path: &RemotePath) -> bool {
    path.name().is_some_and(|name| name.extension() == "pdf")
}

async fn load_text(
    reader: &mut RemoteFileReader,
    position: WindowPosition,
    head: Vec<u8>,
    size: u64,
) -> Result<PreviewContent, SftpError> {
    // The first window has been read to see what the file is.
    const { assert!(WINDOW_BYTES == EDGE_BYTES) };
    let range = position.range(size);
    let start = range.start;
    let bytes = if position == WindowPosition::Start { head } else { read_range(reader, range).await? };
    Ok(PreviewContent::Text(TextWindow::new(position, start, &bytes, size)))
}

fn describe_data(format: FileFormat, head: &[u8], tail: &[u8], arrays: DescribedArrays) -> PreviewContent {
    let facts = match format {
        FileFormat::Npy => data_files::describe_npy(head),
        FileFormat::Hdf5 => data_files::describe_hdf5(head),
        FileFormat::Parquet => data_files::describe_parquet(tail),
        FileFormat::Pdf => data_files::describe_pdf(head),
        FileFormat::Gzip => parse_gzip(head, tail).map(|gzip| {
            let mut facts = vec![("Format", "gzip".to_owned())];
            facts.extend(gzip.name.map(|name| ("Original name", name)));
            facts.push(("Original size", format!("{} (accurate only below 4 GB)", format::bytes(gzip.size))));
            facts
        }),
        _ => None,
    };
    let (facts, first_bytes) = (facts.unwrap_or_default(), hex_dump::hex_rows(head));
    PreviewContent::Data(DescribedData { facts, arrays, first_bytes })
}

const fn zip_words(extension: &str) -> &'static str {
    match extension.as_bytes() {
        b"npz" => "NumPy archive",
        b"pt" | b"pth" | b"ckpt" => "PyTorch file",
        b"whl" => "Python package",
        b"docx" | b"xlsx" | b"pptx" | b"odt" | b"ods" => "Office document",
        _ => "zip archive",
    }
}

async fn load_zip_members(
    reader: &mut RemoteFileReader,
    size: u64,
) -> Result<(ArchiveMembers, DescribedArrays), SftpError> {
    let tail = read_range(reader, size.saturating_sub(EDGE_BYTES)..size).await?;
    let Some(directory) = find_zip_directory(&tail).filter(|directory| directory.offset < size) else {
        return Ok((ArchiveMembers { is_cut: true, ..ArchiveMembers::default() }, DescribedArrays::default()));
    };
    let end = directory.offset.saturating_add(directory.bytes.min(DIRECTORY_BYTES)).min(size);
    let bytes = read_range(reader, directory.offset..end).await?;
    let (wanted, is_cut) = find_wanted_members(&parse_zip_entries(&bytes));
    let mut arrays = DescribedArrays { is_cut, ..DescribedArrays::default() };
    for member in wanted.iter().filter(|member| member.offset < size) {
        let range = member.offset..member.offset.saturating_add(member.bytes).min(size);
        member.describe(&read_range(reader, range).await?, &mut arrays);
    }
    Ok((list_zip_members(&bytes, directory.entries), arrays))
}

/// Reads the metadata of an HDF5 file part by part, as far as a few reads go.
async fn load_datasets(reader: &mut RemoteFileReader, head: Vec<u8>, size: u64) -> Result<DescribedArrays, SftpError> {
    let mut parts = LoadedParts::new(head, size);
    for _ in 0..MAX_HDF5_READS {
        let search = find_datasets(&parts);
        let Some(missing) = search.missing else { return Ok(search.found) };
        let (start, wanted) = (missing.start, missing.end - missing.start);
        let bytes = read_range(reader, missing).await?;
        // The file became shorter: what was asked for will never come.
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) < wanted {
            break;
        }
        parts.add(start, bytes);
    }
    Ok(DescribedArrays { is_cut: true, ..find_datasets(&parts).found })
}

/// Goes from header to header, without the contents between them.
async fn load_tar_members(reader: &mut RemoteFileReader, size: u64) -> Result<ArchiveMembers, SftpError> {
    let mut found = ArchiveMembers::default();
    let mut long_name = None;
    let mut offset = 0;
    for _ in 0..MAX_TAR_READS {
        let end = size.min(offset + TAR_BLOCK_BYTES);
        let block = if offset < end { read_range(reader, offset..end).await? } else { Vec::new() };
        let Some(header) = parse_tar_header(&block) else { return Ok(found) };
        match header.kind {
            TarEntryKind::LongName => {
                let name = offset + TAR_BLOCK_BYTES..size.min(offset + TAR_BLOCK_BYTES + header.size.min(4096));
                let name = if name.is_empty() { Vec::new() } else { read_range(reader, name).await? };
                long_name = Some(shown_name(name.split(|byte| *byte == 0).next().unwrap_or_default()));
            }
            TarEntryKind::Attributes => {}
            TarEntryKind::File | TarEntryKind::Other => {
                let name = long_name.take().unwrap_or_else(|| header.name.clone());
                let size = (header.kind == TarEntryKind::File).then_some(header.size);
                found.members.push(ArchiveMember { name, size });
            }
        }
        offset = header.next_offset(offset);
        if offset >= size {
            return Ok(found);
        }
    }
    found.is_cut = true;
    Ok(found)
}

/// Reads a range; less if the file is shorter by now.
async fn read_range(reader: &mut RemoteFileReader, range: Range<u64>) -> Result<Vec<u8>, SftpError> {
    let mut bytes = Vec::new();
    reader.seek(range);
    while let Some(chunk) = reader.next_chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
