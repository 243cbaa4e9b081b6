//! Rules by name, rows against an element-by-element loop, and round trips.

use super::*;
use crate::memory::HostBytes;
use proptest::prelude::*;

const BASE: u64 = 0x2_0000_0000;

fn plain<'a>(dims: &'a [u64], strides: &'a [u64], box_dims: &'a [u32]) -> Tiled<'a> {
    Tiled {
        element: MapElement::F16,
        address: BASE,
        dims,
        strides,
        box_dims,
        element_strides: &[1; 5][..dims.len()],
        swizzle: Swizzle::None,
        fill: Fill::Zero,
    }
}

#[test]
fn each_rule_is_named() {
    let good = plain(&[64, 64], &[128], &[64, 8]);
    assert!(TensorMap::tiled(good).is_ok());
    let bad: [(Tiled<'_>, &str); 9] = [
        (
            Tiled {
                address: BASE + 8,
                ..good
            },
            "not a multiple of 16 bytes",
        ),
        (
            Tiled {
                strides: &[120],
                ..good
            },
            "not a multiple of 16 bytes below 2^40",
        ),
        (
            Tiled {
                strides: &[1 << 40],
                ..good
            },
            "below 2^40",
        ),
        (
            Tiled {
                box_dims: &[64, 257],
                ..good
            },
            "not between 1 and 256",
        ),
        (
            Tiled {
                box_dims: &[4, 8],
                ..good
            },
            "not a multiple of 16",
        ),
        (
            Tiled {
                box_dims: &[128, 8],
                swizzle: Swizzle::B128,
                ..good
            },
            "exceeds the 128 bytes",
        ),
        (
            Tiled {
                dims: &[0, 64],
                ..good
            },
            "between 1 and 2^32",
        ),
        (
            Tiled {
                element_strides: &[1, 9],
                ..good
            },
            "between 1 and 8",
        ),
        (
            Tiled {
                element: MapElement::U16,
                fill: Fill::Nan,
                ..good
            },
            "cannot be NaN",
        ),
    ];
    for (parts, rule) in bad {
        let error = TensorMap::tiled(parts).expect_err(rule).to_string();
        assert!(error.contains(rule), "{error}");
    }
    assert!(matches!(
        TensorMap::tiled(Tiled {
            strides: &[],
            ..good
        }),
        Err(TensorMapError::Count { .. })
    ));
    assert_eq!(TensorMap::decode(&[0; 128]), Err(TensorMapError::NotAMap));
}

#[test]
fn places_the_hardware_refuses_are_refused() {
    let map = TensorMap::tiled(plain(&[64, 64], &[128], &[64, 8])).expect("legal");
    assert!(map.rows(&[-8, -3]).is_ok());
    assert!(matches!(
        map.rows(&[3, 0]),
        Err(TensorMapError::Unaligned { bits: 48, .. })
    ));
    let codes = TensorMap::tiled(Tiled {
        element: MapElement::U4,
        ..plain(&[256, 64], &[128], &[256, 8])
    })
    .expect("legal");
    assert!(codes.rows(&[32, 0]).is_ok());
    for coordinate in [1, -1, 2, 31, 33] {
        assert!(matches!(
            codes.rows(&[coordinate, 0]),
            Err(TensorMapError::Unaligned { .. })
        ));
    }
    assert!(map.check_store(&[8, 60]).is_ok());
    assert!(matches!(
        map.check_store(&[-8, 0]),
        Err(TensorMapError::NegativeStore { dimension: 0, .. })
    ));
}

#[test]
fn edited_maps_are_checked_when_used() {
    let map = TensorMap::tiled(plain(&[64, 64], &[128], &[64, 8])).expect("legal");
    let mut bytes = map.encode();
    TensorMap::replace(&mut bytes, Field::GlobalDim(1), 7).expect("a field");
    TensorMap::replace(&mut bytes, Field::GlobalAddress, BASE + 256).expect("a field");
    let edited = TensorMap::decode(&bytes).expect("legal");
    assert_eq!(
        (&edited.dims[..edited.rank], edited.address),
        (&[64, 7][..], BASE + 256)
    );
    TensorMap::replace(&mut bytes, Field::GlobalStride(0), 8).expect("a field");
    assert!(matches!(
        TensorMap::decode(&bytes),
        Err(TensorMapError::Stride {
            dimension: 1,
            stride: 8
        })
    ));
    assert!(TensorMap::replace(&mut bytes, Field::BoxDim(5), 1).is_err());
}

/// A little world: a 3-D tensor of bytes that tell their own position.
struct World {
    map: TensorMap,
    global: Vec<u8>,
}

fn part(world: HostBytes<'_>, address: u64, len: u64) -> HostBytes<'_> {
    let first = (address - BASE) as usize;
    world.part(first..first + len as usize)
}

impl World {
    fn new(
        dims: [u64; 3],
        box_dims: [u32; 3],
        element_strides: [u32; 3],
        swizzle: Swizzle,
        fill: Fill,
    ) -> Self {
        let strides = [
            (dims[0] * 2).next_multiple_of(16),
            (dims[0] * 2).next_multiple_of(16) * dims[1] + 16,
        ];
        let map = TensorMap::tiled(Tiled {
            swizzle,
            fill,
            element_strides: &element_strides,
            ..plain(&dims, &strides, &box_dims)
        })
        .expect("legal");
        let len = strides[1] * dims[2];
        let global = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
        Self { map, global }
    }

    fn resolve(&self, address: u64, len: u64) -> Result<HostBytes<'_>, ()> {
        let start = (address - BASE) as usize;
        self.global
            .get(start..start + len as usize)
            .map(HostBytes::to_read)
            .ok_or(())
    }

    fn load(&self, coords: &[i32], at: u32) -> Vec<u8> {
        let mut shared = vec![0xcc; 64 * 1024];
        let rows = self.map.rows(coords).expect("three coordinates");
        // SAFETY: nobody writes the world.
        unsafe {
            self.map
                .load(rows, &mut shared, at, |a, n| self.resolve(a, n))
        }
        .expect("inside the world");
        shared
    }

    /// Element (i, j, k) of the box at `coords` by definition.
    fn element(&self, coords: &[i32], ijk: [u32; 3]) -> Option<u64> {
        let mut address = 0;
        for d in 0..3 {
            let stride = if d == 0 {
                1
            } else {
                self.map.element_strides[d]
            };
            let at = i64::from(coords[d]) + i64::from(ijk[d] * stride);
            if !(0..self.map.dims[d] as i64).contains(&at) {
                return None;
            }
            address += at as u64 * if d == 0 { 2 } else { self.map.strides[d - 1] };
        }
        Some(address)
    }
}

fn swizzles() -> impl Strategy<Value = Swizzle> {
    prop::sample::select(vec![
        Swizzle::None,
        Swizzle::B32,
        Swizzle::B64,
        Swizzle::B128,
        Swizzle::B128Atom32,
        Swizzle::B128Atom32Flip8,
        Swizzle::B128Atom64,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn loads_and_stores_move_exactly_the_box(
        swizzle in swizzles(), chunks in 1u32..3, rows in 1u32..9, planes in 1u32..4, nan in any::<bool>(),
        skip in 1u32..3, coords in prop::array::uniform3(-9i32..24), at in 0u32..16,
    ) {
        let fill = if nan { Fill::Nan } else { Fill::Zero };
        let world = World::new([20, 11, 5], [8 * chunks, rows, planes], [1, skip, 1], swizzle, fill);
        // The innermost coordinate is a multiple of 16 bytes.
        let coords = [coords[0] & !7, coords[1], coords[2]];
        let at = at * 128;
        let shared = world.load(&coords, at);
        let (row, steps) = (16 * chunks, rows.div_ceil(skip));
        prop_assert_eq!(world.map.box_bytes(), row * steps * planes);
        let mut written = 0;
        for k in 0..planes {
            for j in 0..steps {
                for i in 0..8 * chunks {
                    let place = swizzle.apply(at + (k * steps + j) * world.map.row_pitch() + 2 * i) as usize;
                    let got = &shared[place..place + 2];
                    match world.element(&coords, [i, j, k]) {
                        Some(g) => prop_assert_eq!(got, &world.global[g as usize..g as usize + 2]),
                        None if nan => prop_assert_eq!(got, &OUT_OF_BOUNDS.to_le_bytes()),
                        None => prop_assert_eq!(got, &[0, 0]),
                    }
                    written += 2;
                }
            }
        }
        prop_assert_eq!(written, world.map.box_bytes());
        let rows = world.map.rows(&coords).expect("three coordinates");
        let spans = rows.clone().filter_map(|row| row.inside);
        let range = spans.map(|i| (i.global, i.global + u64::from(i.len)));
        let range = range.reduce(|(low, high), (a, b)| (low.min(a), high.max(b)));
        prop_assert_eq!(TensorMap::extent(&rows), range.map(|(low, high)| (low, high - low)));

        // Storing the same box into an empty tensor brings back exactly the elements inside.
        let mut target = vec![0x55; world.global.len()];
        let whole = HostBytes::of_slice(&mut target);
        let rows = world.map.rows(&coords).expect("three coordinates");
        // SAFETY: nobody else has the target.
        unsafe { world.map.store(rows, &shared, at, |a, n| Ok::<_, ()>(part(whole, a, n)), <[u8]>::copy_from_slice) }.expect("resolves");
        let mut want = vec![0x55; world.global.len()];
        for k in 0..planes {
            for j in 0..steps {
                for i in 0..8 * chunks {
                    if let Some(g) = world.element(&coords, [i, j, k]) {
                        let g = g as usize;
                        want[g..g + 2].copy_from_slice(&world.global[g..g + 2]);
                    }
                }
            }
        }
        prop_assert!(target == want);
    }

    #[test]
    fn maps_survive_encoding(dims in prop::collection::vec(1u64..1 << 32, 1..6), swizzle in swizzles(), nan in any::<bool>()) {
        let rank = dims.len();
        let parts = Tiled {
            swizzle,
            fill: if nan { Fill::Nan } else { Fill::Zero },
            ..plain(&dims, &[16, 32, 1 << 39, 64][..rank - 1], &[8, 256, 3, 1, 1][..rank])
        };
        let map = TensorMap::tiled(parts).expect("legal");
        prop_assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
    }
}

#[test]
fn only_what_is_inside_is_merged() {
    let world = World::new([20, 4, 1], [8, 4, 1], [1; 3], Swizzle::None, Fill::Zero);
    let shared = [1u8; 128];
    let mut target = vec![2u8; world.global.len()];
    let whole = HostBytes::of_slice(&mut target);
    let rows = world.map.rows(&[16, 2, 0]).expect("three coordinates");
    let add = |to: &mut [u8], from: &[u8]| to.iter_mut().zip(from).for_each(|(to, x)| *to += x);
    // SAFETY: nobody else has the target.
    unsafe {
        let resolve = |a, n| Ok::<_, ()>(part(whole, a, n));
        world.map.store(rows, &shared, 0, resolve, add)
    }
    .expect("resolves");
    let pairs = target.as_chunks::<2>().0.iter().enumerate();
    let threes: Vec<usize> = pairs
        .filter(|(_, x)| **x == [3; 2])
        .map(|(i, _)| i)
        .collect();
    let pitch = world.map.strides[0] as usize / 2;
    let want: Vec<usize> = (2..4)
        .flat_map(|row| (16..20).map(move |x| row * pitch + x))
        .collect();
    assert_eq!(threes, want);
}

#[test]
fn im2col_walks_pixels_inside_the_window_box() {
    let window = Im2col {
        lower: [-1, -1, 0],
        upper: [-1, -1, 0],
        channels: 8,
        pixels: 6,
    };
    let parts = plain(&[8, 4, 3, 2], &[16, 64, 192], &[]);
    let map = TensorMap::im2col(parts, window).expect("legal");
    assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
    let rows: Vec<Option<u64>> = map
        .rows_at(&[0, -1, 0, 0], &[1, 0])
        .expect("four coordinates")
        .map(|row| row.inside.map(|i| (i.global - BASE) / 16))
        .collect();
    // Window positions x −1…2 (moved by 1: 0…3), y 0, then the next row of windows.
    assert_eq!(rows, [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)]);
}
