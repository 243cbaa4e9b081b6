//! The report of a process, written while it runs so that nothing is lost however it ends.
//!
//! The environment names a folder; each process writes one file there, one JSON object a line. The
//! line of a kernel is rewritten when a launch ends, and when one begins that may take long.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use ptx_emu::{Evidence, Finding};
use serde::{Deserialize, Serialize};

use crate::say::say_once;
use crate::time::Modelled;

/// The variable with the folder.
pub const REPORT: &str = "DGX_RUN_REPORT";

/// A file there that a process removes if it cannot write its whole report: that works on a full
/// disk.
pub const WHOLE: &str = "whole";

/// One line of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// A kernel that was launched.
    Kernel(Kernel),
    /// An access that was correct by luck.
    Hazard {
        /// Name in the PTX.
        kernel: String,
        /// Its kind.
        hazard: String,
        /// Both places, what is missing and the remedy.
        text: String,
    },
    /// A launch that was refused or ended early.
    Fault {
        /// Name in the PTX.
        kernel: String,
        /// What happened.
        text: String,
    },
    /// The instructions of a kernel, by how well they were verified.
    Forms(Forms),
    /// A launch whose time is not known.
    Untimed {
        /// Name in the PTX.
        kernel: String,
        /// Why.
        text: String,
    },
    /// A call that was refused.
    Refused {
        /// Its name, or a sentence.
        name: String,
    },
}

/// All launches of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Name in the PTX.
    pub kernel: String,
    /// Launches that began.
    pub launches: u64,
    /// Launches that ended normally.
    pub ended: u64,
    /// CTAs of all launches.
    pub ctas: u64,
    /// Warp instructions of those that ended.
    pub warp_instructions: u64,
    /// Nanoseconds the host took to emulate them.
    pub host_nanos: u64,
    /// Launches whose time on the device was modelled.
    pub timed: u64,
    /// Nanoseconds of these.
    pub modelled_nanos: u64,
    /// Nanoseconds of the longest, and what limits it.
    pub longest: Option<(u64, String)>,
    /// Clusters of the launches that were watched for hazards.
    #[serde(default)]
    pub clusters: u64,
    /// Clusters among these with full checks.
    #[serde(default)]
    pub remembered: u64,
    /// Bytes of memory that were not watched, in the launch with the most.
    #[serde(default)]
    pub unwatched: u64,
}

/// The forms of a kernel's instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forms {
    /// Name in the PTX.
    pub kernel: String,
    /// Compared bit for bit with a card's results.
    pub exact: BTreeSet<String>,
    /// Compared within the error that the PTX ISA allows.
    pub near: BTreeSet<String>,
    /// Written from the PTX ISA alone.
    pub documents: BTreeSet<String>,
}

impl Forms {
    fn of(kernel: &ptx_emu::Kernel<'_>) -> Self {
        let mut forms = Self {
            kernel: kernel.name.to_owned(),
            ..Self::default()
        };
        for form in kernel.forms {
            let list = match Evidence::of(form, crate::device::settings().config.mma_mode) {
                Evidence::Exact => &mut forms.exact,
                Evidence::Near => &mut forms.near,
                _ => &mut forms.documents,
            };
            list.insert(form.clone());
        }
        forms
    }
}

/// The line of a kernel, as [`Line::Kernel`].
#[derive(Serialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
enum Written<'k> {
    Kernel(&'k Kernel),
}

/// Maximum bytes of a kernel's numbers.
const NUMBERS: usize = 600;

/// A launch of more nanoseconds than this gets a line before it ends.
const LONG: u64 = 1_000_000;

/// A kernel and its line: its position, and its bytes.
struct Entry {
    kernel: Kernel,
    at: u64,
    width: usize,
}

#[derive(Default)]
struct Writer {
    /// The process it writes for: a forked child writes its own file.
    process: u32,
    file: Option<File>,
    /// The position of the next line.
    end: u64,
    kernels: HashMap<String, Entry>,
    said: BTreeSet<String>,
    began: Option<std::time::Instant>,
}

static WRITER: LazyLock<Mutex<Writer>> = LazyLock::new(Mutex::default);

/// A file for a process. Its number may already have one: of the program before it executed
/// another, or of a process that has ended.
fn create(process: u32) -> Option<File> {
    let folder = std::env::var_os(REPORT).filter(|folder| !folder.is_empty())?;
    for turn in 0.. {
        let path = PathBuf::from(&folder).join(format!("{process}-{turn}.jsonl"));
        match File::create_new(&path) {
            Ok(file) => return Some(file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                lose(&error);
                break;
            }
        }
    }
    None
}

/// Records that a part of the report is lost. The program continues.
fn lose(error: &std::io::Error) {
    let folder = PathBuf::from(std::env::var_os(REPORT).unwrap_or_default());
    // Another process may have removed it.
    let _ = std::fs::remove_file(folder.join(WHOLE));
    say_once(&format!(
        "what is launched cannot be written to {}: {error}",
        folder.display()
    ));
}

fn with(write: impl FnOnce(&mut Writer)) {
    let mut writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if writer.process != process {
        *writer = Writer {
            process,
            file: create(process),
            ..Writer::default()
        };
    }
    if writer.file.is_some() {
        write(&mut writer);
    }
}

impl Writer {
    fn put(&self, text: &[u8], at: u64) {
        let written = self.file.as_ref().map(|file| file.write_all_at(text, at));
        if let Some(Err(error)) = written {
            lose(&error);
        }
    }

    fn append(&mut self, line: &Line) {
        let text = serde_json::to_string(line).unwrap_or_default() + "\n";
        self.put(text.as_bytes(), self.end);
        self.end += text.len() as u64;
    }

    /// The numbers of a kernel, which then has a line.
    fn kernel(&mut self, name: &str) -> &mut Kernel {
        if !self.kernels.contains_key(name) {
            let width = serde_json::to_string(name).map_or(0, |name| name.len()) + NUMBERS;
            let entry = Entry {
                kernel: Kernel {
                    kernel: name.to_owned(),
                    ..Kernel::default()
                },
                at: self.end,
                width,
            };
            self.end += width as u64 + 1;
            self.kernels.insert(name.to_owned(), entry);
        }
        let entry = self.kernels.get_mut(name);
        &mut entry.expect("it was added").kernel
    }

    /// Writes the line of a kernel, if it has one.
    fn write(&self, name: &str) {
        if let Some(Entry { kernel, at, width }) = self.kernels.get(name) {
            let mut text = Vec::with_capacity(width + 1);
            // Numbers and names can always be written.
            let _ = serde_json::to_writer(&mut text, &Written::Kernel(kernel));
            text.resize(*width, b' ');
            text.push(b'\n');
            self.put(&text, *at);
        }
    }

    fn once(&mut self, line: &Line) {
        let text = serde_json::to_string(line).unwrap_or_default();
        if self.said.insert(text) {
            self.append(line);
        }
    }
}

/// A kernel of a module is launched for the first time. Other modules may have kernels of the same
/// name.
pub(crate) fn forms(kernel: &ptx_emu::Kernel<'_>) {
    with(|writer| writer.once(&Line::Forms(Forms::of(kernel))));
}

/// A launch begins. It is written now if earlier ones took long, or if there were none.
pub(crate) fn begun(name: &str, ctas: u64) {
    with(|writer| {
        writer.began = Some(std::time::Instant::now());
        let kernel = writer.kernel(name);
        kernel.launches += 1;
        kernel.ctas += ctas;
        if kernel.host_nanos >= LONG * kernel.ended {
            writer.write(name);
        }
    });
}

/// It was refused, and so has not begun.
pub(crate) fn taken_back(name: &str, ctas: u64) {
    with(|writer| {
        let kernel = writer.kernel(name);
        kernel.launches -= 1;
        kernel.ctas -= ctas;
    });
}

/// It has ended normally, and would take this long on the device.
pub(crate) fn ended(
    name: &str,
    warp_instructions: u64,
    time: Option<std::result::Result<Modelled, String>>,
) {
    with(|writer| {
        let began = writer.began;
        let kernel = writer.kernel(name);
        kernel.ended += 1;
        kernel.warp_instructions += warp_instructions;
        kernel.host_nanos += began.map_or(0, |began| began.elapsed().as_nanos() as u64);
        if let Some(Ok(Modelled { nanos, bound })) = time {
            kernel.timed += 1;
            kernel.modelled_nanos += nanos;
            let longest = kernel.longest.as_ref();
            if longest.is_none_or(|(most, _)| nanos > *most) {
                kernel.longest = Some((nanos, bound.to_owned()));
            }
        }
        writer.write(name);
        if let Some(Err(text)) = time {
            writer.once(&Line::Untimed {
                kernel: name.to_owned(),
                text,
            });
        }
    });
}

/// It was watched for hazards, this many of its clusters with full checks. Its end follows.
pub(crate) fn watched(name: &str, clusters: u64, remembered: u64, unwatched: u64) {
    with(|writer| {
        let kernel = writer.kernel(name);
        kernel.clusters += clusters;
        kernel.remembered += remembered;
        kernel.unwatched = kernel.unwatched.max(unwatched);
    });
}

/// It was correct by luck.
pub(crate) fn hazard(kernel: &str, finding: &Finding) {
    with(|writer| {
        writer.once(&Line::Hazard {
            kernel: kernel.to_owned(),
            hazard: finding.hazard.name().to_owned(),
            text: finding.to_string(),
        });
    });
}

/// It was refused, or ended early.
pub(crate) fn fault(kernel: &str, text: &str) {
    with(|writer| {
        writer.write(kernel);
        writer.once(&Line::Fault {
            kernel: kernel.to_owned(),
            text: text.to_owned(),
        });
    });
}

/// A call is not supported.
pub(crate) fn refused(name: &str) {
    with(|writer| {
        writer.once(&Line::Refused {
            name: name.to_owned(),
        });
    });
}
