//! Fat binaries: PTX and machine code for several architectures in one piece.

use std::io::Read;

/// First word of the struct that nvcc's host code registers.
pub(crate) const WRAPPER: u32 = 0x4662_43b1;
/// First word of the container it points to.
pub(crate) const CONTAINER: u32 = 0xba55_ed50;

const PTX: u16 = 1;
const ELF: u16 = 2;

/// Bits of an entry's flags for the compression of its payload.
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;

/// Maximum number of bytes that LZ4 decompresses one byte to.
const LZ4_MOST: usize = 256;
/// Maximum size of a text in Zstd.
const ZSTD_MOST: u64 = 1 << 30;

/// The error of a fat binary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It ends too early, or its sizes contradict each other.
    Damaged(&'static str),
    /// Its PTX is for other devices.
    OtherTarget(Vec<String>),
    /// It is empty: nvcc adds such a one for relocatable code, which the device's linker reads.
    Empty,
    /// It has only machine code, for these architectures.
    NoPtx(Vec<u32>),
}

/// One entry.
#[derive(Debug)]
struct Entry<'b> {
    kind: u16,
    /// Compute capability times ten.
    arch: u32,
    flags: u64,
    payload: &'b [u8],
    /// Bytes of the compressed payload; the rest is padding.
    compressed: usize,
    /// Bytes once it is decompressed.
    size: usize,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Problem> {
    bytes
        .get(at..at + N)
        .and_then(|part| part.try_into().ok())
        .ok_or(Problem::Damaged("it is cut short"))
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Problem> {
    Ok(u16::from_le_bytes(number(bytes, at)?))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Problem> {
    Ok(u32::from_le_bytes(number(bytes, at)?))
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, Problem> {
    Ok(u64::from_le_bytes(number(bytes, at)?))
}

/// Bytes of a whole container, from its first sixteen bytes.
pub(crate) fn container_bytes(header: &[u8; 16]) -> Option<usize> {
    if u32_at(header, 0).ok()? != CONTAINER {
        return None;
    }
    let own = u16_at(header, 6).ok()?;
    usize::try_from(u64_at(header, 8).ok()?)
        .ok()?
        .checked_add(own.into())
}

fn entries(container: &[u8]) -> Result<Vec<Entry<'_>>, Problem> {
    if u32_at(container, 0)? != CONTAINER {
        return Err(Problem::Damaged("it does not begin as one"));
    }
    let whole = container_bytes(&number(container, 0)?);
    if whole.is_none_or(|bytes| bytes > container.len()) {
        return Err(Problem::Damaged("it is cut short"));
    }
    let mut at = usize::from(u16_at(container, 6)?);
    let mut entries = Vec::new();
    while at < container.len() {
        let entry = &container[at..];
        let header = u32_at(entry, 4)? as usize;
        let bytes = u64_at(entry, 8)? as usize;
        let end = header.checked_add(bytes).filter(|_| header >= 64);
        let payload = end.and_then(|end| entry.get(header..end));
        entries.push(Entry {
            kind: u16_at(entry, 0)?,
            arch: u32_at(entry, 28)?,
            flags: u64_at(entry, 40)?,
            payload: payload.ok_or(Problem::Damaged("an entry reaches past its end"))?,
            compressed: u32_at(entry, 16)? as usize,
            size: u64_at(entry, 56)? as usize,
        });
        at += header + bytes;
    }
    Ok(entries)
}

impl Entry<'_> {
    fn text(&self) -> Result<String, Problem> {
        let packed = || {
            self.payload
                .get(..self.compressed)
                .ok_or(Problem::Damaged("an entry reaches past its end"))
        };
        let wrong = Problem::Damaged("a compressed entry cannot be read");
        let bytes = if self.flags & LZ4 != 0 {
            if self.size > LZ4_MOST * self.compressed {
                return Err(wrong);
            }
            lz4_flex::block::decompress(packed()?, self.size).map_err(|_| wrong)?
        } else if self.flags & ZSTD != 0 {
            let mut out = Vec::new();
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed()?);
            let read = decoder
                .ok()
                .map(|decoder| decoder.take(ZSTD_MOST).read_to_end(&mut out));
            match read {
                Some(Ok(bytes)) if (bytes as u64) < ZSTD_MOST => out,
                _ => return Err(wrong),
            }
        } else {
            self.payload.to_vec()
        };
        let text = String::from_utf8(bytes).map_err(|_| Problem::Damaged("its PTX is no text"))?;
        Ok(text.trim_end_matches('\0').to_owned())
    }
}

/// The PTX of a container that suits a device best: of those whose `.target` `runs` accepts, the
/// one for the latest architecture, and of these one for that chip alone.
pub(crate) fn ptx(container: &[u8], runs: impl Fn(&str) -> bool) -> Result<String, Problem> {
    let entries = entries(container)?;
    let mut best: Option<((u32, bool), String)> = None;
    let (mut others, mut damaged) = (Vec::new(), None);
    for entry in entries.iter().filter(|entry| entry.kind == PTX) {
        let text = match entry.text() {
            Ok(text) => text,
            Err(problem) => {
                damaged = Some(problem);
                continue;
            }
        };
        let target = target(&text).unwrap_or_default().to_owned();
        let rank = (
            entry.arch,
            target.ends_with(|c: char| c.is_ascii_lowercase()),
        );
        match runs(&target) {
            false => others.push(target),
            true if best.as_ref().is_none_or(|(least, _)| rank > *least) => {
                best = Some((rank, text));
            }
            true => {}
        }
    }
    match (best, damaged) {
        (Some((_, text)), _) => Ok(text),
        (None, Some(problem)) => Err(problem),
        (None, None) if !others.is_empty() => Err(Problem::OtherTarget(others)),
        (None, None) if entries.is_empty() => Err(Problem::Empty),
        (None, None) => {
            let machine = entries.iter().filter(|entry| entry.kind == ELF);
            Err(Problem::NoPtx(machine.map(|entry| entry.arch).collect()))
        }
    }
}

/// `.target` of PTX text, without the rest of the line.
fn target(text: &str) -> Option<&str> {
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(".target"))?;
    line.split(',').next().map(str::trim)
}

/// A container with one uncompressed entry, for tests of its readers.
#[cfg(test)]
pub(crate) fn container_of(kind: u16, arch: u32, flags: u64, payload: &[u8], size: u64) -> Vec<u8> {
    let mut entry = vec![0; 64];
    entry[0..2].copy_from_slice(&kind.to_le_bytes());
    entry[4..8].copy_from_slice(&64u32.to_le_bytes());
    entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    entry[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    entry[28..32].copy_from_slice(&arch.to_le_bytes());
    entry[40..48].copy_from_slice(&flags.to_le_bytes());
    entry[56..64].copy_from_slice(&size.to_le_bytes());
    entry.extend(payload);
    let mut all = CONTAINER.to_le_bytes().to_vec();
    all.extend([1, 0, 16, 0]);
    all.extend((entry.len() as u64).to_le_bytes());
    all.extend(entry);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 8.0\n.target sm_90, debug\n.address_size 64\n";

    #[test]
    fn ptx_comes_out_plain_or_compressed() {
        let plain = container_of(PTX, 90, 0, TEXT.as_bytes(), 0);
        assert_eq!(ptx(&plain, |target| target == "sm_90").unwrap(), TEXT);
        let packed = lz4_flex::block::compress(TEXT.as_bytes());
        let packed = container_of(PTX, 90, LZ4, &packed, TEXT.len() as u64);
        assert_eq!(ptx(&packed, |_| true).unwrap(), TEXT);
        assert_eq!(
            ptx(&plain, |_| false),
            Err(Problem::OtherTarget(vec!["sm_90".to_owned()]))
        );
    }

    #[test]
    fn sizes_that_no_text_has_are_not_believed() {
        let packed = lz4_flex::block::compress(TEXT.as_bytes());
        let claims = container_of(PTX, 90, LZ4, &packed, 1 << 46);
        assert!(matches!(ptx(&claims, |_| true), Err(Problem::Damaged(_))));
        // Another entry is still valid.
        let mut both = claims;
        let good = container_of(PTX, 90, 0, TEXT.as_bytes(), 0);
        both.extend(&good[16..]);
        let bytes = (both.len() - 16) as u64;
        both[8..16].copy_from_slice(&bytes.to_le_bytes());
        assert_eq!(ptx(&both, |_| true).unwrap(), TEXT);
    }

    #[test]
    fn machine_code_alone_is_named_and_cut_ones_are_damaged() {
        let mut empty = container_of(PTX, 90, 0, b"", 0);
        empty.truncate(16);
        empty[8..].fill(0);
        assert_eq!(ptx(&empty, |_| true), Err(Problem::Empty));
        let sass = container_of(ELF, 80, 0, b"\x7fELF", 0);
        assert_eq!(ptx(&sass, |_| true), Err(Problem::NoPtx(vec![80])));
        let whole = container_of(PTX, 90, 0, TEXT.as_bytes(), 0);
        for cut in 1..whole.len() {
            let result = ptx(&whole[..cut], |_| true);
            assert!(matches!(result, Err(Problem::Damaged(_))), "{cut}");
        }
    }
}
