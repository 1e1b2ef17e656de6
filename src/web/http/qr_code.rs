//! QR codes, drawn as SVG on white so that every camera reads them, in the dark theme and on paper as well.

use qrcode::QrCode;

use crate::error::AppError;

/// A QR code as a single path of squares. The macro `qr` in `components.html` draws it.
pub struct QrCodeImage {
    pub width: usize,
    pub path: String,
}

impl QrCodeImage {
    /// White modules that scanners need around the code.
    const QUIET: usize = 4;

    pub fn new(text: &str) -> Result<Self, AppError> {
        let code = QrCode::new(text).map_err(|error| AppError::Internal(format!("QR code: {error}")))?;
        let width = code.width();
        let path = code
            .to_colors()
            .chunks(width)
            .enumerate()
            .flat_map(|(y, row)| {
                row.iter()
                    .enumerate()
                    .filter(|(_, module)| **module == qrcode::Color::Dark)
                    .map(move |(x, _)| format!("M{} {}h1v1h-1z", x + Self::QUIET, y + Self::QUIET))
            })
            .collect();
        Ok(Self { width: width + 2 * Self::QUIET, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_square_and_has_white_around_it() {
        let code = QrCodeImage::new("https://dashboards.example.org/s/abcdefghijklmnopqrstuv").unwrap();
        assert!(code.path.starts_with("M4 4h1v1h-1z"), "the first corner begins after the white");
        assert!(code.width > 21 + 8, "{}", code.width);
        assert!(QrCodeImage::new(&"x".repeat(10_000)).is_err(), "more than a code can hold");
    }
}
