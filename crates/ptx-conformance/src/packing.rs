//! Compact storage of outputs: neighbouring results resemble each other, so words are
//! stored as differences, split into byte planes, and deflated.

/// Word widths tried for the differences; 0 stores the bytes as they are.
const WIDTHS: [usize; 5] = [0, 1, 2, 4, 8];

/// A packed buffer: the word width of its differences and the deflated planes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    /// One of the supported widths.
    pub width: usize,
    /// Deflated bytes.
    pub bytes: Vec<u8>,
}

/// A packed buffer that cannot be unpacked.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum UnpackError {
    /// Not deflate data.
    #[error("packed output does not inflate: {0}")]
    Inflate(String),
    /// A width this version does not know.
    #[error("packed output has unknown word width {0}")]
    Width(usize),
    /// The inflated length is not the recorded one.
    #[error("packed output has {actual} bytes where {expected} were recorded")]
    Length { expected: usize, actual: usize },
}

/// Packs with whichever width comes out smallest.
pub(crate) fn pack(bytes: &[u8]) -> Packed {
    WIDTHS
        .iter()
        .filter(|&&width| width == 0 || bytes.len().is_multiple_of(width))
        .map(|&width| Packed {
            width,
            bytes: miniz_oxide::deflate::compress_to_vec(&split(bytes, width), 9),
        })
        .min_by_key(|packed| packed.bytes.len())
        .unwrap_or(Packed {
            width: 0,
            bytes: Vec::new(),
        })
}

/// The bytes that were packed; `length` guards against a damaged file.
pub(crate) fn unpack(width: usize, packed: &[u8], length: usize) -> Result<Vec<u8>, UnpackError> {
    if !WIDTHS.contains(&width) {
        return Err(UnpackError::Width(width));
    }
    let planes = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, length)
        .map_err(|e| UnpackError::Inflate(e.to_string()))?;
    if planes.len() != length || (width > 1 && !length.is_multiple_of(width)) {
        return Err(UnpackError::Length {
            expected: length,
            actual: planes.len(),
        });
    }
    Ok(join(&planes, width))
}

fn word(bytes: &[u8]) -> u64 {
    let mut padded = [0u8; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(padded)
}

fn split(bytes: &[u8], width: usize) -> Vec<u8> {
    if width == 0 {
        return bytes.to_vec();
    }
    let count = bytes.len() / width;
    let mut planes = vec![0; bytes.len()];
    let mut previous = 0u64;
    for (i, chunk) in bytes.chunks_exact(width).enumerate() {
        let current = word(chunk);
        let difference = current.wrapping_sub(previous).to_le_bytes();
        for (plane, byte) in difference[..width].iter().enumerate() {
            planes[plane * count + i] = *byte;
        }
        previous = current;
    }
    planes
}

fn join(planes: &[u8], width: usize) -> Vec<u8> {
    if width == 0 {
        return planes.to_vec();
    }
    let count = planes.len() / width;
    let mut bytes = Vec::with_capacity(planes.len());
    let mut previous = 0u64;
    for i in 0..count {
        let mut difference = [0; 8];
        for plane in 0..width {
            difference[plane] = planes[plane * count + i];
        }
        previous = previous.wrapping_add(u64::from_le_bytes(difference));
        bytes.extend_from_slice(&previous.to_le_bytes()[..width]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_returns_its_bytes() {
        let bytes: Vec<u8> = (0..4096u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for width in WIDTHS {
            assert_eq!(join(&split(&bytes, width), width), bytes, "width {width}");
        }
        let packed = pack(&bytes);
        assert_eq!(unpack(packed.width, &packed.bytes, bytes.len()), Ok(bytes));
    }

    #[test]
    fn damage_is_an_error() {
        let packed = pack(&[7; 64]);
        assert!(matches!(
            unpack(3, &packed.bytes, 64),
            Err(UnpackError::Width(3))
        ));
        assert!(matches!(
            unpack(packed.width, &packed.bytes, 72),
            Err(UnpackError::Length { .. })
        ));
        assert!(matches!(
            unpack(packed.width, &packed.bytes, 32),
            Err(UnpackError::Inflate(_))
        ));
    }
}
