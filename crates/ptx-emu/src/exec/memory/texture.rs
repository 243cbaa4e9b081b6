//! `tex`, `tld4`, `suld` and `sust`, lane by lane.

use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::lanes;
use crate::exec::listen::agent::Agent;
use crate::exec::warp::Warp;
use crate::op::{Addr, Outside, Slot, SlotList, SurfaceMove, TextureRead, pool};
use crate::texture::{Shape, Texture};

fn value(w: &Warp, slot: Slot, lane: usize) -> u64 {
    match slot {
        Slot::W32(r) => w.get(r)[lane].into(),
        Slot::W64(r) => w.get64(r)[lane],
        Slot::Sink => 0,
    }
}

fn put(w: &mut Warp, mask: u32, slot: Slot, values: &[u64; 32]) {
    match slot {
        Slot::W32(r) => w.put(mask, r, values.map(|v| v as u32)),
        Slot::W64(r) => w.put64(mask, r, *values),
        Slot::Sink => {}
    }
}

impl Cluster<'_> {
    fn texture_at(&mut self, w: &Warp, handle: Addr, lane: usize) -> Checked<Texture> {
        let address = self.address(w, handle, lane);
        let mut bytes = [0; Texture::BYTES];
        let who = (Agent::Thread, w.origin(1 << lane));
        let read = self.read_global(who, address, &mut bytes);
        let known = read.ok().and_then(|()| Texture::from_bytes(&bytes));
        known.ok_or_else(|| illegal(format!("{address:#x} is no texture or surface object")))
    }

    fn coordinates(&self, w: &Warp, list: SlotList, lane: usize) -> [u32; 4] {
        let slots = pool(self.env.program, list);
        let mut out = [0; 4];
        for (out, slot) in out.iter_mut().zip(slots) {
            *out = value(w, *slot, lane) as u32;
        }
        out
    }

    pub(crate) fn texture(&mut self, w: &mut Warp, mask: u32, op: &TextureRead) -> Checked<Flow> {
        let mut found = [[0; 32]; 4];
        for lane in lanes(mask) {
            let texture = self.texture_at(w, op.handle, lane)?;
            let place = self.coordinates(w, op.coordinates, lane);
            let who = (Agent::Thread, w.origin(1 << lane));
            let read = |address, out: &mut [u8]| self.read_global(who, address, out);
            let texel = texture.sample(op.sampling, place, read)?;
            for (channel, bits) in found.iter_mut().zip(texel) {
                channel[lane] = bits.into();
            }
        }
        for (slot, values) in pool(self.env.program, op.d).iter().zip(&found) {
            put(w, mask, *slot, values);
        }
        Ok(Flow::Next)
    }

    /// Where a surface's bytes lie; `None` where they are outside and that is allowed.
    fn surface_place(&mut self, w: &Warp, op: &SurfaceMove, lane: usize) -> Checked<Option<u64>> {
        let surface = self.texture_at(w, op.handle, lane)?;
        let [a, b, c, _] = self.coordinates(w, op.coordinates, lane).map(|v| v as i32);
        let [x, y, z] = match op.shape {
            Shape::D1 => [a, 0, 0],
            Shape::D2 => [a, b, 0],
            Shape::Layers1 => [b, 0, a],
            Shape::Layers2 => [b, c, a],
            Shape::D3 | Shape::Cube | Shape::Cubes => [a, b, c],
        };
        let bytes = u64::from(op.width) * u64::from(op.regs.len);
        let [width, height, depth] = surface.extent.map(i64::from);
        let last = (width * i64::from(surface.texel_bytes()) - bytes as i64).max(0);
        let near = |value: i32, most: i64| i64::from(value).clamp(0, most) as u64;
        let clamped = [near(x, last), near(y, height - 1), near(z, depth - 1)];
        let inside = clamped == [x, y, z].map(|v| i64::from(v) as u64);
        match (inside, op.outside) {
            (false, Outside::Zero) => return Ok(None),
            (false, Outside::Trap) => {
                return Err(illegal(format!(
                    "byte {x}, row {y}, slice {z} is outside a surface of {width}×{height}×{depth}"
                )));
            }
            _ => {}
        }
        let [x, y, z] = clamped;
        match surface.address(x, y, z, bytes) {
            Some(place) if x.is_multiple_of(bytes) => Ok(Some(place)),
            _ => Err(illegal(format!(
                "an access of {bytes} bytes at byte {x} of a surface's row is misaligned"
            ))),
        }
    }

    pub(crate) fn surface(&mut self, w: &mut Warp, mask: u32, op: &SurfaceMove) -> Checked<Flow> {
        let slots = pool(self.env.program, op.regs);
        let width = usize::from(op.width);
        let mut found = [[0; 32]; 4];
        for lane in lanes(mask) {
            let place = self.surface_place(w, op, lane)?;
            let who = (Agent::Thread, w.origin(1 << lane));
            for (at, slot) in slots.iter().enumerate() {
                let address = place.map(|place| place + (at * width) as u64);
                let mut bytes = value(w, *slot, lane).to_le_bytes();
                match (address, op.store) {
                    (Some(address), true) => self.write_global(who, address, &bytes[..width])?,
                    (Some(address), false) => {
                        bytes = [0; 8];
                        self.read_global(who, address, &mut bytes[..width])?;
                        found[at][lane] = u64::from_le_bytes(bytes);
                    }
                    (None, _) => {}
                }
            }
        }
        if !op.store {
            for (slot, values) in slots.iter().zip(&found) {
                put(w, mask, *slot, values);
            }
        }
        self.progress += 1;
        Ok(Flow::Next)
    }
}
