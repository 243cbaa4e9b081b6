//! What a process tells of its run while it runs, so that nothing is lost however it ends.
//!
//! The environment names a folder; every process writes one file there, a JSON object a line. The
//! line of a kernel is written over with each launch.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
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
const NUMBERS: usize = 400;

#[derive(Default)]
struct Writer {
    file: Option<File>,
    /// Where the next line goes.
    end: u64,
    kernels: HashMap<String, (u64, Kernel)>,
    said: BTreeSet<String>,
    began: Option<std::time::Instant>,
}

static WRITER: LazyLock<Mutex<Writer>> = LazyLock::new(|| {
    let folder = std::env::var_os(REPORT).filter(|folder| !folder.is_empty());
    let file = folder.and_then(|folder| {
        let own = format!("{}.jsonl", std::process::id());
        let path = PathBuf::from(folder).join(own);
        let file = File::create(&path);
        if let Err(error) = &file {
            crate::call::say(&format!("{} cannot be written: {error}", path.display()));
        }
        file.ok()
    });
    Mutex::new(Writer {
        file,
        ..Writer::default()
    })
});

fn with(write: impl FnOnce(&mut Writer)) {
    let mut writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
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

/// A launch begins.
pub(crate) fn begun(kernel: &ptx_emu::Kernel<'_>, ctas: u64) {
    with(|writer| {
        let name = kernel.name;
        if !writer.kernels.contains_key(name) {
            writer.append(&Line::Forms(Forms::of(kernel)));
        }
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
