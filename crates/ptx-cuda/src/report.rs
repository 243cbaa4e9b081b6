//! What a process tells of its run while it runs, so that nothing is lost however it ends.
//!
//! The environment names a folder; every process writes one file there, a JSON object a line. The
//! line of a kernel is written over with each launch.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use ptx_emu::{Evidence, Finding};
use serde::{Deserialize, Serialize};

use crate::time::Modelled;

/// Names the folder.
pub const REPORT: &str = "DGX_RUN_REPORT";

/// One line of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// A kernel that was launched.
    Kernel(Kernel),
    /// What was right by luck.
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
    /// What a kernel is made of, by what is known of it.
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
    /// Launches that ended as they should.
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
    /// Nanoseconds of the longest, and what binds it.
    pub longest: Option<(u64, String)>,
    /// Clusters of the launches that were watched for hazards.
    #[serde(default)]
    pub clusters: u64,
    /// Clusters among these whose every access was remembered.
    #[serde(default)]
    pub remembered: u64,
    /// Bytes of memory that were not watched, in the launch with most.
    #[serde(default)]
    pub unwatched: u64,
}

/// The forms of a kernel's instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forms {
    /// Name in the PTX.
    pub kernel: String,
    /// Compared bit for bit with results of a card.
    pub exact: BTreeSet<String>,
    /// Compared within the error that the PTX ISA allows.
    pub near: BTreeSet<String>,
    /// By the PTX ISA alone.
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

/// Bytes that the numbers of a kernel take, at most.
const NUMBERS: usize = 600;

#[derive(Default)]
struct Writer {
    /// The process it writes for: one that was made by a fork writes a file of its own.
    process: u32,
    file: Option<File>,
    /// Where the next line goes.
    end: u64,
    kernels: HashMap<String, (u64, Kernel)>,
    said: BTreeSet<String>,
    began: Option<std::time::Instant>,
}

static WRITER: LazyLock<Mutex<Writer>> = LazyLock::new(Mutex::default);

/// A file for a process. Its number may have had one: of a program that it was before it executed
/// another, or of a process that has ended.
fn create(process: u32) -> Option<File> {
    let folder = std::env::var_os(REPORT).filter(|folder| !folder.is_empty())?;
    for turn in 0.. {
        let path = PathBuf::from(&folder).join(format!("{process}-{turn}.jsonl"));
        match File::create_new(&path) {
            Ok(file) => return Some(file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                crate::call::say(&format!("{} cannot be written: {error}", path.display()));
                break;
            }
        }
    }
    None
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
    fn put(&self, text: &str, at: u64) {
        if let Some(file) = &self.file {
            // A full disk loses the report, not the program.
            let _ = file.write_all_at(text.as_bytes(), at);
        }
    }

    fn append(&mut self, line: &Line) {
        let text = serde_json::to_string(line).unwrap_or_default() + "\n";
        self.put(&text, self.end);
        self.end += text.len() as u64;
    }

    fn kernel(&mut self, name: &str, change: impl FnOnce(&mut Kernel)) {
        let end = self.end;
        let (at, kernel) = self.kernels.entry(name.to_owned()).or_insert_with(|| {
            let kernel = Kernel {
                kernel: name.to_owned(),
                ..Kernel::default()
            };
            (end, kernel)
        });
        change(kernel);
        let at = *at;
        let width = serde_json::to_string(name).map_or(0, |name| name.len()) + NUMBERS;
        let text = serde_json::to_string(&Line::Kernel(kernel.clone())).unwrap_or_default();
        self.put(&format!("{text:width$}\n"), at);
        if at == end {
            self.end += width as u64 + 1;
        }
    }

    fn once(&mut self, line: &Line) {
        let text = serde_json::to_string(line).unwrap_or_default();
        if self.said.insert(text) {
            self.append(line);
        }
    }
}

/// A kernel of a module is launched for the first time. Other modules may have others of its name.
pub(crate) fn forms(kernel: &ptx_emu::Kernel<'_>) {
    with(|writer| writer.once(&Line::Forms(Forms::of(kernel))));
}

/// A launch begins.
pub(crate) fn begun(name: &str, ctas: u64) {
    with(|writer| {
        writer.began = Some(std::time::Instant::now());
        writer.kernel(name, |kernel| {
            kernel.launches += 1;
            kernel.ctas += ctas;
        });
    });
}

/// It has ended as it should, and would take so long on the device.
pub(crate) fn ended(
    name: &str,
    warp_instructions: u64,
    time: Option<std::result::Result<Modelled, String>>,
) {
    with(|writer| {
        let nanos = writer
            .began
            .map_or(0, |began| began.elapsed().as_nanos() as u64);
        let (time, why) = time.map_or((None, None), |time| match time {
            Ok(time) => (Some(time), None),
            Err(why) => (None, Some(why)),
        });
        writer.kernel(name, |kernel| {
            kernel.ended += 1;
            kernel.warp_instructions += warp_instructions;
            kernel.host_nanos += nanos;
            if let Some(Modelled { nanos, bound }) = time {
                kernel.timed += 1;
                kernel.modelled_nanos += nanos;
                if kernel
                    .longest
                    .as_ref()
                    .is_none_or(|(most, _)| nanos > *most)
                {
                    kernel.longest = Some((nanos, bound.to_owned()));
                }
            }
        });
        if let Some(text) = why {
            writer.once(&Line::Untimed {
                kernel: name.to_owned(),
                text,
            });
        }
    });
}

/// It was watched for hazards: so many of its clusters in all they did.
pub(crate) fn watched(name: &str, clusters: u64, remembered: u64, unwatched: u64) {
    with(|writer| {
        writer.kernel(name, |kernel| {
            kernel.clusters += clusters;
            kernel.remembered += remembered;
            kernel.unwatched = kernel.unwatched.max(unwatched);
        });
    });
}

/// It was right by luck.
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
