//! An array, tensor or data set in a file: what its header says of it.

use crate::format;

/// The most arrays of a file that are listed.
pub const MAX_ARRAYS: usize = 200;
/// No real array has more dimensions.
pub const MAX_RANK: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedArray {
    pub name: String,
    /// For people: `3 × 1,000`.
    pub shape: String,
    /// Its type: `float32`.
    pub dtype: String,
}

/// The arrays of a file that could be found cheaply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DescribedArrays {
    pub arrays: Vec<DescribedArray>,
    /// Whether there may be more.
    pub is_cut: bool,
}

/// A shape in words.
pub fn shape_words(sizes: &[u64]) -> String {
    match sizes {
        [] => "a single value".to_owned(),
        sizes => sizes.iter().map(|size| format::number(*size)).collect::<Vec<_>>().join(" × "),
    }
}
