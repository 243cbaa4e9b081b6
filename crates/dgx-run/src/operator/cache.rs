//! Expected results kept on disk. They depend only on sizes, distribution, seed and this code; a
//! file that is torn, foreign or stale is computed again.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::{GroupOperands, GroupOracle, Operands, Oracle, ProblemKey, is_gated};
use dgx_core::domain::Group;
use dgx_core::files;
use dgx_core::operator::{Op, Operator};

/// Raised by any change to how operands are drawn or answers computed.
const VERSION: u32 = 9;
/// The cache's folder of expected results.
pub const ANSWERS: &str = "oracles";
/// Prefix of files that are being written.
const STAGING: &str = ".new-";
/// Maximum bytes of expected results that are kept.
pub const ANSWERS_LIMIT: u64 = 4 << 30;

/// A folder of expected results, limited in size.
#[derive(Clone, Debug)]
pub struct OracleCache {
    folder: PathBuf,
    limit: u64,
}

impl OracleCache {
    /// Results in `folder`, which is made when the first is kept.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            limit: ANSWERS_LIMIT,
        }
    }

    /// The same with room for `limit` bytes.
    #[cfg(test)]
    pub(crate) fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// The result from disk, or computed and kept. `operands` must be those of the key. A cache that
    /// cannot be read or written costs time, but never the result.
    pub fn answer(&self, problem: &ProblemKey, operands: &Operands) -> Oracle {
        if !is_costly(&problem.operator) {
            return Oracle::compute(operands);
        }
        let key = key(problem);
        if let Ok(oracle) = load(&self.path(&key), &key, operands) {
            return oracle;
        }
        let oracle = Oracle::compute(operands);
        self.keep(problem, &oracle);
        oracle
    }

    /// Keeps a result computed elsewhere. If that fails it will be computed again: losing the cache
    /// is no reason to lose the run.
    pub fn keep(&self, problem: &ProblemKey, oracle: &Oracle) {
        let key = key(problem);
        let _ = self.write(&self.path(&key), &key, oracle);
    }

    fn path(&self, key: &[u8; 32]) -> PathBuf {
        self.folder.join(format!("{}.oracle", hex(key)))
    }

    /// Whether the result is already on disk, without reading it.
    pub fn has(&self, problem: &ProblemKey) -> bool {
        !is_costly(&problem.operator) || self.path(&key(problem)).is_file()
    }

    /// Written to a temporary name and renamed, so that no reader meets half a file.
    fn write(&self, path: &Path, key: &[u8; 32], oracle: &Oracle) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::Builder::new()
            .prefix(STAGING)
            .tempfile_in(&self.folder)?;
        file.write_all(key)?;
        let mut sum = Checksum::default();
        let mut bytes = Vec::new();
        for group in &oracle.groups {
            let mut put = |bytes: &[u8]| {
                sum.add(bytes);
                file.write_all(bytes)
            };
            for values in [&group.gate, &group.up] {
                bytes.clear();
                bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                put(&bytes)?;
            }
            bytes.clear();
            bytes.extend(group.values.iter().flat_map(|value| value.to_le_bytes()));
            put(&bytes)?;
        }
        file.write_all(&sum.0.to_le_bytes())?;
        // A folder with contents is not the cache's: then the result is not kept.
        if path.is_dir() {
            fs::remove_dir(path)?;
        }
        file.persist(path).map_err(|error| error.error)?;
        self.evict(path)
    }

    /// Removes the least recently used until the rest fits, except `newest`.
    fn evict(&self, newest: &Path) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let path = entry.path();
            if is_answer(&path) {
                let metadata = entry.metadata()?;
                files.push((metadata.modified()?, metadata.len(), path));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, len, _)| len).sum();
        for (_, len, path) in files {
            if total <= self.limit {
                break;
            }
            if path != newest {
                fs::remove_file(path)?;
                total -= len;
            }
        }
        Ok(())
    }
}

/// Names do not matter: two shapes with the same groups share a result.
fn key(problem: &ProblemKey) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(VERSION.to_le_bytes());
    hash.update(problem.seed.to_le_bytes());
    hash.update(problem.distribution.as_str());
    hash.update(&problem.operator.digest);
    for extent in problem.shape.groups.iter().flat_map(Group::sizes) {
        hash.update(extent.to_le_bytes());
    }
    hash.finalize().into()
}

/// Whether this is a file of a result, or one that is being written.
pub fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    is_answer(path) || (name.starts_with(STAGING) && is_file(path))
}

fn is_answer(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let key = name.strip_suffix(".oracle").filter(|key| key.len() == 24);
    key.is_some_and(|key| key.bytes().all(|b| b.is_ascii_hexdigit())) && is_file(path)
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_file())
}

fn hex(key: &[u8; 32]) -> String {
    key[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn load(path: &Path, key: &[u8; 32], operands: &Operands) -> io::Result<Oracle> {
    let mut file = files::open(path)?;
    let gated = is_gated(&operands.operator);
    let extents = extents(operands);
    let elements: usize = extents.iter().map(|(rows, columns)| rows * columns).sum();
    let expected = 32 + 8 * elements as u64 + 8;
    let mut found = [0; 32];
    file.read_exact(&mut found)?;
    if found != *key || file.metadata()?.len() != expected {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut sum = Checksum::default();
    let mut bytes = Vec::new();
    let mut read = |count: usize| -> io::Result<Vec<u8>> {
        bytes.resize(count, 0);
        file.read_exact(&mut bytes)?;
        sum.add(&bytes);
        Ok(std::mem::take(&mut bytes))
    };
    let mut groups = Vec::with_capacity(extents.len());
    for (rows, columns) in extents {
        let singles = if gated { rows * columns } else { 0 };
        groups.push(GroupOracle {
            rows,
            columns,
            gate: numbers(&read(4 * singles)?, f32::from_le_bytes),
            up: numbers(&read(4 * singles)?, f32::from_le_bytes),
            values: numbers(&read(8 * (rows * columns - singles))?, f64::from_le_bytes),
        });
    }
    let mut stored = [0; 8];
    file.read_exact(&mut stored)?;
    if u64::from_le_bytes(stored) != sum.0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Marks it as used, for eviction; a read-only cache still serves.
    let _ = file.set_modified(SystemTime::now());
    Ok(Oracle { groups })
}

fn numbers<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .map(|word| read(*word))
        .collect()
}

/// Rows and columns of every output of each group.
fn extents(operands: &Operands) -> Vec<(usize, usize)> {
    let operator = &operands.operator;
    let of = |group: &GroupOperands| {
        let group = group.group.clone();
        (0..operator.outputs.len()).filter_map(move |o| operator.output_extents(o, &group))
    };
    operands.groups.iter().flat_map(of).collect()
}

/// Whether a result is worth keeping: it contains a product.
fn is_costly(operator: &Operator) -> bool {
    let mut nodes = operator.outputs.iter().flat_map(|o| &o.value.nodes);
    nodes.any(|node| node.op == Op::MatMul)
}

/// Against torn writes and flipped bits, not against malice: a cryptographic hash would take longer
/// than reading the file.
#[derive(Default)]
struct Checksum(u64);

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            let mixed = self.0.rotate_left(5) ^ u64::from_le_bytes(padded);
            self.0 = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::domain::{Distribution, Shape};
    use dgx_core::operator::default_operator;
    use dgx_core::record::synthetic::grouped;

    fn shape() -> Shape {
        grouped("t", &[5, 5], 128, 256)
    }

    fn problem(distribution: Distribution, seed: u64) -> ProblemKey {
        ProblemKey::new(default_operator(), &shape(), distribution, seed)
    }

    /// Results kept by an earlier dgx are those of other data.
    #[test]
    fn the_version_is_raised_with_the_data() {
        let shape = shape();
        let mut hash = Sha256::new();
        for distribution in Distribution::ALL[..4].iter().copied() {
            for group in Operands::draw(default_operator(), &shape, distribution, 7).groups {
                group.inputs.iter().for_each(|t| hash.update(&t.elements));
                group.inputs.iter().for_each(|t| hash.update(&t.scales));
            }
        }
        let drawn = &hex(&hash.finalize().into())[..16];
        assert_eq!((VERSION, drawn), (9, "c5bf6eb340b18e20"), "raise VERSION");
    }

    #[test]
    fn a_kept_answer_comes_back_and_a_torn_one_is_recomputed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = OracleCache::new(folder.path());
        let problem = problem(Distribution::Full, 3);
        let operands = problem.operands();
        assert!(!cache.has(&problem));
        let computed = cache.answer(&problem, &operands);
        assert!(cache.has(&problem));
        let key = key(&problem);
        let path = folder.path().join(format!("{}.oracle", hex(&key)));
        assert_eq!(load(&path, &key, &operands).unwrap(), computed);

        let mut bytes = fs::read(&path).unwrap();
        bytes[100] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(load(&path, &key, &operands).is_err());
        fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        assert_eq!(cache.answer(&problem, &operands), computed);
        assert_eq!(load(&path, &key, &operands).unwrap(), computed);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(cache.answer(&problem, &operands), computed);
        assert_eq!(load(&path, &key, &operands).unwrap(), computed);
        fs::write(&path, &bytes[..50]).unwrap();
        assert_eq!(cache.answer(&problem, &operands), computed);
        assert_eq!(load(&path, &key, &operands).unwrap(), computed);
    }

    #[test]
    fn old_answers_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let cache = OracleCache::new(folder.path()).with_limit(25_000);
        let problem = |seed| problem(Distribution::Full, seed);
        for seed in 0..4 {
            cache.answer(&problem(seed), &problem(seed).operands());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(cache.has(&problem(3)));
    }

    #[test]
    fn a_folder_that_cannot_be_made_costs_nothing_but_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = OracleCache::new(file.path().join("below-a-file"));
        let problem = problem(Distribution::Benchmark, 1);
        let operands = problem.operands();
        let oracle = cache.answer(&problem, &operands);
        assert_eq!(oracle, Oracle::compute(&operands));
    }
}
