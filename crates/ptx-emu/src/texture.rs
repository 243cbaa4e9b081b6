//! Textures and surfaces: from coordinates to texels.
//!
//! A texture object is the address of a [`Texture`]'s bytes in device memory, so any allocation can
//! be read through one, and kernels need nothing beside memory.

use crate::memory::DevicePtr;

const MAGIC: [u8; 8] = *b"dgxtextr";

/// What the channels of a texel hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Channel {
    Signed,
    Unsigned,
    Float,
}

/// What lies beyond the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The other end again. For coordinates from 0 to 1 only; else the edge's texel.
    Wrap,
    /// The edge's texel.
    Clamp,
    /// The texels in reverse. For coordinates from 0 to 1 only; else the edge's texel.
    Mirror,
    /// The border's colour.
    Border,
}

/// How texels lie in memory and are read; surfaces use the first four fields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Texture {
    /// The first texel.
    pub data: DevicePtr,
    /// Width, height, and depth or layers, in texels; 1 where there is no such dimension.
    pub extent: [u32; 3],
    /// Bytes from row to row. A slice or layer is `height` rows.
    pub pitch: u64,
    /// Type, bits and number of channels.
    pub texel: (Channel, u32, u32),
    /// What lies beyond each dimension's edge.
    pub edges: [Edge; 3],
    /// Between texels, a mean weighted in steps of 1/256; else the texel itself.
    pub filtered: bool,
    /// Coordinates go from 0 to 1; else from 0 to the extent.
    pub normalized: bool,
    /// The border's colour.
    pub border: [f32; 4],
}

/// The dimensions an instruction names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    D1,
    D2,
    D3,
    /// Layers of one dimension.
    Layers1,
    /// Layers of two.
    Layers2,
    Cube,
    /// Layers of six faces.
    Cubes,
}

impl Shape {
    /// Coordinates in its vector, without padding.
    pub(crate) fn coordinates(self) -> usize {
        match self {
            Shape::D1 => 1,
            Shape::D2 | Shape::Layers1 => 2,
            Shape::D3 | Shape::Layers2 | Shape::Cube => 3,
            Shape::Cubes => 4,
        }
    }
}

/// What a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampling {
    pub shape: Shape,
    /// Coordinates are numbers of texels.
    pub integer: bool,
    /// The result is floats.
    pub float: bool,
    /// `tld4`: this channel of the four texels around.
    pub gather: Option<u8>,
}

/// One dimension's texels and their weights in 256ths; no index is the border.
type Taps = [(Option<u32>, u32); 2];

impl Texture {
    /// Bytes of the description.
    pub const BYTES: usize = 80;

    /// The description as it lies in device memory.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.data.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.pitch.to_le_bytes());
        for (at, extent) in self.extent.iter().enumerate() {
            bytes[24 + 4 * at..][..4].copy_from_slice(&extent.to_le_bytes());
        }
        let (channel, bits, channels) = self.texel;
        bytes[36..39].copy_from_slice(&[channel as u8, bits as u8, channels as u8]);
        for (at, edge) in self.edges.iter().enumerate() {
            bytes[39 + at] = *edge as u8;
        }
        bytes[42..44].copy_from_slice(&[self.filtered.into(), self.normalized.into()]);
        for (at, part) in self.border.iter().enumerate() {
            bytes[44 + 4 * at..][..4].copy_from_slice(&part.to_le_bytes());
        }
        bytes
    }

    /// What [`Texture::to_bytes`] wrote; `None` for anything else.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let u32_at = |at: usize| bytes[at..at + 4].try_into().map(u32::from_le_bytes);
        let u64_at = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes);
        let float_at = |at: usize| u32_at(at).map(f32::from_bits);
        let edge = |at: usize| {
            let edges = [Edge::Wrap, Edge::Clamp, Edge::Mirror, Edge::Border];
            edges.get(usize::from(bytes[at])).copied()
        };
        let channels = [Channel::Signed, Channel::Unsigned, Channel::Float];
        let channel = channels.get(usize::from(bytes[36])).copied()?;
        if bytes[..8] != MAGIC {
            return None;
        }
        Some(Self {
            data: DevicePtr(u64_at(8).ok()?),
            pitch: u64_at(16).ok()?,
            extent: [u32_at(24).ok()?, u32_at(28).ok()?, u32_at(32).ok()?],
            texel: (channel, bytes[37].into(), bytes[38].into()),
            edges: [edge(39)?, edge(40)?, edge(41)?],
            filtered: bytes[42] != 0,
            normalized: bytes[43] != 0,
            border: [
                float_at(44).ok()?,
                float_at(48).ok()?,
                float_at(52).ok()?,
                float_at(56).ok()?,
            ],
        })
    }

    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> u32 {
        self.texel.1 / 8 * self.texel.2
    }

    /// The address `x` bytes into a row; `None` beyond an edge.
    pub(crate) fn address(&self, x: u64, y: u64, z: u64, bytes: u64) -> Option<u64> {
        let [width, height, depth] = self.extent.map(u64::from);
        let inside = x + bytes <= width * u64::from(self.texel_bytes()) && y < height && z < depth;
        inside.then(|| self.data.0 + (z * height + y) * self.pitch + x)
    }

    /// The four channels at a place. `read` gets bytes from device memory.
    pub(crate) fn sample<E>(
        &self,
        sampling: Sampling,
        coordinates: [u32; 4],
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<[u32; 4], E> {
        let [x, y, z] = self.taps(sampling, coordinates);
        let mut texel = |x, y, z| self.texel(sampling.float, (x, y, z), &mut read);
        if let Some(channel) = sampling.gather {
            let mut gathered = [0; 4];
            for (to, (i, j)) in gathered.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
                *to = texel(x[i].0, y[j].0, z[0].0)?[usize::from(channel)];
            }
            return Ok(gathered);
        }
        if !(self.filtered && sampling.float && !sampling.integer) {
            return texel(x[0].0, y[0].0, z[0].0);
        }
        let mut sum = [0f64; 4];
        for (z, dz) in z {
            for (y, dy) in y {
                for (x, dx) in x {
                    let weight = f64::from(dx) * f64::from(dy) * f64::from(dz);
                    if weight > 0.0 {
                        for (sum, bits) in sum.iter_mut().zip(texel(x, y, z)?) {
                            *sum += weight * f64::from(f32::from_bits(bits));
                        }
                    }
                }
            }
        }
        Ok(sum.map(|sum| ((sum / f64::from(1 << 24)) as f32).to_bits()))
    }

    /// The texels that count in each dimension.
    fn taps(&self, sampling: Sampling, coordinates: [u32; 4]) -> [Taps; 3] {
        let only = |index: u32| [(Some(index), 256), (Some(index), 0)];
        let axis = |at: usize, bits: u32| self.axis(at, sampling, bits, self.normalized);
        let layer = |layer: u32| only((layer as i32).clamp(0, self.extent[2] as i32 - 1) as u32);
        let [a, b, c, d] = coordinates;
        match sampling.shape {
            Shape::D1 => [axis(0, a), only(0), only(0)],
            Shape::D2 => [axis(0, a), axis(1, b), only(0)],
            Shape::D3 => [axis(0, a), axis(1, b), axis(2, c)],
            Shape::Layers1 => [axis(0, b), only(0), layer(a)],
            Shape::Layers2 => [axis(0, b), axis(1, c), layer(a)],
            Shape::Cube | Shape::Cubes => {
                let (first, direction) = match sampling.shape {
                    Shape::Cube => (0, [a, b, c]),
                    _ => (6 * a, [b, c, d]),
                };
                let (face, u, v) = face(direction.map(f32::from_bits));
                let side = |at, value: f32| self.axis(at, sampling, value.to_bits(), true);
                [side(0, u), side(1, v), layer(first + face)]
            }
        }
    }

    fn axis(&self, at: usize, sampling: Sampling, bits: u32, normalized: bool) -> Taps {
        let size = self.extent[at];
        let edge = match self.edges[at] {
            Edge::Wrap | Edge::Mirror if !normalized => Edge::Clamp,
            edge => edge,
        };
        if sampling.integer {
            let index = beyond(i64::from(bits as i32), size, edge);
            return [(index, 256), (index, 0)];
        }
        let given = f64::from(f32::from_bits(bits));
        let place = match normalized {
            // A quotient that was rounded to a float still means the texel it was made for.
            true => {
                let exact = given * f64::from(size);
                let near = exact.round();
                let close = (exact - near).abs() <= near.abs() * f64::from(f32::EPSILON);
                if close { near } else { exact }
            }
            false => given,
        };
        let between = self.filtered || sampling.gather.is_some();
        let steps = match between {
            true => ((place - 0.5) * 256.0).round() as i64,
            false => (place.floor() as i64).saturating_mul(256),
        };
        let (index, part) = (steps.div_euclid(256), steps.rem_euclid(256) as u32);
        [
            (beyond(index, size, edge), 256 - part),
            (beyond(index.saturating_add(1), size, edge), part),
        ]
    }

    fn texel<E>(
        &self,
        float: bool,
        (x, y, z): (Option<u32>, Option<u32>, Option<u32>),
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<[u32; 4], E> {
        let bytes = self.texel_bytes() as usize;
        let place = x.zip(y).zip(z).and_then(|((x, y), z)| {
            let x = u64::from(x) * bytes as u64;
            self.address(x, y.into(), z.into(), bytes as u64)
        });
        let Some(place) = place else {
            return Ok(match float {
                true => self.border.map(f32::to_bits),
                false => [0; 4],
            });
        };
        let mut raw = [0; 16];
        read(place, &mut raw[..bytes.min(16)])?;
        let mut out = match float {
            true => [0, 0, 0, 1f32.to_bits()],
            false => [0, 0, 0, 1],
        };
        let each = self.texel.1 as usize / 8;
        for (out, raw) in out.iter_mut().zip(raw[..bytes.min(16)].chunks(each)) {
            let mut word = [0; 4];
            word[..each].copy_from_slice(raw);
            *out = self.channel(u32::from_le_bytes(word), float);
        }
        Ok(out)
    }

    /// A channel as a result has it: integers become floats from 0 or −1 to 1.
    fn channel(&self, raw: u32, float: bool) -> u32 {
        let (channel, bits, _) = self.texel;
        let signed = (raw << (32 - bits)) as i32 >> (32 - bits);
        match (channel, float) {
            (Channel::Float, _) if bits == 16 => {
                half::f16::from_bits(raw as u16).to_f32().to_bits()
            }
            (Channel::Float, _) | (Channel::Unsigned, false) => raw,
            (Channel::Signed, false) => signed as u32,
            (Channel::Unsigned, true) => {
                let most = f64::from(u32::MAX >> (32 - bits));
                ((f64::from(raw) / most) as f32).to_bits()
            }
            (Channel::Signed, true) => {
                let most = f64::from(i32::MAX >> (32 - bits));
                ((f64::from(signed) / most).max(-1.0) as f32).to_bits()
            }
        }
    }
}

/// The texel that a place beyond the edge means.
fn beyond(index: i64, size: u32, edge: Edge) -> Option<u32> {
    let size = i64::from(size);
    let inside = match edge {
        Edge::Wrap => index.rem_euclid(size),
        Edge::Clamp => index.clamp(0, size - 1),
        Edge::Mirror => {
            let at = index.rem_euclid(2 * size);
            at.min(2 * size - 1 - at)
        }
        Edge::Border if !(0..size).contains(&index) => return None,
        Edge::Border => index,
    };
    Some(inside as u32)
}

/// The face of a cube that a direction meets, and where, from 0 to 1.
fn face([x, y, z]: [f32; 3]) -> (u32, f32, f32) {
    let [ax, ay, az] = [x.abs(), y.abs(), z.abs()];
    let (face, s, t, major) = if ax >= ay && ax >= az {
        (u32::from(x < 0.0), if x < 0.0 { z } else { -z }, -y, ax)
    } else if ay >= az {
        (2 + u32::from(y < 0.0), x, if y < 0.0 { -z } else { z }, ay)
    } else {
        (4 + u32::from(z < 0.0), if z < 0.0 { -x } else { x }, -y, az)
    };
    (face, (s / major + 1.0) / 2.0, (t / major + 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texture() -> Texture {
        Texture {
            data: DevicePtr(0),
            extent: [4, 2, 1],
            pitch: 16,
            texel: (Channel::Float, 32, 1),
            edges: [Edge::Clamp; 3],
            filtered: false,
            normalized: false,
            border: [9.0; 4],
        }
    }

    /// Texel (x, y) is 10·y + x.
    fn at(texture: &Texture, x: f32, y: f32) -> f32 {
        let sampling = Sampling {
            shape: Shape::D2,
            integer: false,
            float: true,
            gather: None,
        };
        let read = |address: u64, out: &mut [u8]| -> Result<(), ()> {
            let value = (10 * (address / 16) + address % 16 / 4) as f32;
            out.copy_from_slice(&value.to_le_bytes());
            Ok(())
        };
        let place = [x.to_bits(), y.to_bits(), 0, 0];
        let found = texture.sample(sampling, place, read).expect("no fault");
        f32::from_bits(found[0])
    }

    #[test]
    fn a_description_survives_memory() {
        let texture = texture();
        assert_eq!(Texture::from_bytes(&texture.to_bytes()), Some(texture));
        assert_eq!(Texture::from_bytes(&[0; Texture::BYTES]), None);
    }

    #[test]
    fn points_and_edges() {
        let point = texture();
        assert_eq!(at(&point, 2.9, 1.2), 12.0);
        assert_eq!(at(&point, -3.0, 7.0), 10.0);
        let edge = |edge, x| {
            let texture = Texture {
                normalized: true,
                edges: [edge; 3],
                ..point
            };
            at(&texture, x, 0.0)
        };
        assert_eq!(edge(Edge::Wrap, 1.3), 1.0);
        assert_eq!(edge(Edge::Mirror, 1.3), 2.0);
        assert_eq!(edge(Edge::Border, 1.3), 9.0);
        assert_eq!(edge(Edge::Clamp, 1.3), 3.0);
        // Three quarters of a texel short of what the division meant.
        assert_eq!(
            edge(Edge::Clamp, f32::from_bits(0.75f32.to_bits() - 1)),
            3.0
        );
    }

    #[test]
    fn means_between_texels() {
        let linear = Texture {
            filtered: true,
            ..texture()
        };
        assert_eq!(at(&linear, 1.5, 0.5), 1.0);
        assert_eq!(at(&linear, 2.0, 1.0), 6.5);
        assert_eq!(at(&linear, 2.0 + 1.0 / 1024.0, 0.5), 1.5);
        assert_eq!(at(&linear, 0.0, 0.0), 0.0);
    }

    #[test]
    fn faces_of_a_cube() {
        assert_eq!(face([1.0, 0.0, 0.0]), (0, 0.5, 0.5));
        assert_eq!(face([0.0, -2.0, 1.0]), (3, 0.5, 0.25));
        assert_eq!(face([0.5, 0.0, -1.0]), (5, 0.25, 0.5));
    }
}
