//! Convolution windows: rows of channels at successive pixels of a bounding box.

use super::copy::{Inside, Row};
use super::{Mode, TensorMap, TensorMapError};

/// The parameters of `cuTensorMapEncodeIm2col`. The tensor's dimensions are channels, then one
/// to three of space (innermost first), then images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Im2col {
    /// Where the box of window positions begins, per spatial dimension, innermost first.
    pub lower: [i16; 3],
    /// Where it ends, relative to the last element.
    pub upper: [i16; 3],
    /// Channels per pixel: the row of a copy.
    pub channels: u32,
    /// Pixels per column: the rows of a copy.
    pub pixels: u32,
}

impl Im2col {
    pub(super) fn validate(&self, map: &TensorMap) -> Result<(), TensorMapError> {
        let spatial = map.rank.saturating_sub(2);
        if !(3..=5).contains(&map.rank) {
            return Err(TensorMapError::Im2col(
                "im2col tensors have 3 to 5 dimensions: channels, space, images",
            ));
        }
        if !(1..=256).contains(&self.channels) || !(1..=1024).contains(&self.pixels) {
            return Err(TensorMapError::Im2col(
                "im2col copies take 1 to 256 channels of 1 to 1024 pixels",
            ));
        }
        let limit = match spatial {
            1 => 1 << 15,
            2 => 1 << 7,
            _ => 1 << 4,
        };
        let corners = self.lower[..spatial].iter().chain(&self.upper[..spatial]);
        for &corner in corners {
            if !(-limit..limit).contains(&i32::from(corner)) {
                return Err(TensorMapError::Im2col(
                    "im2col corners are 16 bits for 3-D tensors, 8 for 4-D and 5 for 5-D",
                ));
            }
        }
        Ok(())
    }

    /// The rows of a copy. `coords` are channel, spatial positions and image; `offsets` move each
    /// pixel's window, as the instruction's im2col offsets do.
    pub(super) fn row(&self, map: &TensorMap, coords: &[i32], offsets: &[u16], pixel: u32) -> Row {
        let spatial = map.rank - 2;
        let mut position = [0i64; 3];
        let mut carry = i64::from(pixel);
        for d in 0..spatial {
            let low = i64::from(self.lower[d]);
            let extent = map.dims[d + 1] as i64 - 1 + i64::from(self.upper[d]) - low + 1;
            let stride = i64::from(map.element_strides[d + 1]);
            let steps = (extent.max(1) + stride - 1) / stride;
            let first = (i64::from(coords[d + 1]) - low) / stride;
            let step = first + carry;
            position[d] = low + step.rem_euclid(steps) * stride;
            carry = step.div_euclid(steps);
        }
        let image = i64::from(coords[spatial + 1]) + carry;
        let mut offset = 0u64;
        let mut inside = (0..map.dims[spatial + 1] as i64).contains(&image);
        for (d, position) in position.iter().enumerate().take(spatial) {
            let at = position + i64::from(offsets.get(d).copied().unwrap_or(0));
            inside &= (0..map.dims[d + 1] as i64).contains(&at);
            offset = offset.wrapping_add((at as u64).wrapping_mul(map.strides[d]));
        }
        offset = offset.wrapping_add((image as u64).wrapping_mul(map.strides[spatial]));
        let shared = pixel * map.row_pitch();
        Row {
            shared,
            inside: match inside {
                true => map.clip_row(coords[0], map.address.wrapping_add(offset)),
                false => None,
            },
        }
    }
}

impl TensorMap {
    /// A map for convolution windows. `parts.box_dims` is ignored.
    pub fn im2col(parts: super::Tiled<'_>, window: Im2col) -> Result<Self, TensorMapError> {
        // A legal stand-in for the box, which this mode has not.
        let stand_in = [32, 1, 1, 1, 1];
        let rank = parts.dims.len().min(5);
        let mut map = Self::tiled(super::Tiled {
            box_dims: &stand_in[..rank],
            swizzle: crate::tensor::Swizzle::None,
            ..parts
        })?;
        map.swizzle = parts.swizzle;
        map.mode = Mode::Im2col(window);
        map.validate()?;
        Ok(map)
    }

    /// The part of a row of channels (or of the inner box extent) inside the tensor.
    pub(super) fn clip_row(&self, first: i32, line: u64) -> Option<Inside> {
        let bits = self.element.bits() as i64;
        let (first, count) = (i64::from(first), i64::from(self.row_elements()));
        let begin = first.max(0);
        let end = (first + count).min(self.dims[0] as i64);
        (begin < end).then(|| Inside {
            global: line.wrapping_add((begin * bits / 8) as u64),
            skip: ((begin - first) * bits / 8) as u32,
            len: ((end - begin) * bits / 8) as u32,
        })
    }
}
