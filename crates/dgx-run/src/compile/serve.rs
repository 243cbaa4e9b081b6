//! The compiling process: compiles one unit after another, without access to the file system and
//! within its limits. A source that crashes, floods or never ends the compiler ends only this
//! process.

use std::io::{self, BufRead, Write};

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::nvrtc::{Nvrtc, Output};
use crate::child::end_with_supervisor;
use dgx_core::config::target::default_device;

/// More of a log than a user reads.
const MAX_LOG: usize = 64 << 10;
/// A larger image is a mistake, and would be in memory several times.
const MAX_IMAGE: usize = 256 << 20;
/// Compiled once before the files are closed off: NVRTC opens its own parts when they are first
/// needed.
const FIRST: &str = "extern \"C\" __global__ void dgx_first() {}";

/// One unit as the supervisor sends it, on one line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NvrtcRequest {
    pub name: String,
    pub source: String,
    pub flags: Vec<String>,
    /// Name and text of every file that can be included.
    pub headers: Vec<(String, String)>,
    /// Kernels by name expression.
    pub instances: Vec<String>,
}

/// The answer, on one line, followed by the given number of bytes of machine code.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum NvrtcReply {
    /// The compiler is loaded; sent once, first.
    Ready,
    Compiled {
        cubin: usize,
        ptx: String,
        log: String,
        /// The name of each instance in the PTX.
        #[serde(default)]
        lowered: Vec<(String, String)>,
    },
    /// The source is at fault.
    Refused { ptx: String, log: String },
    /// NVRTC is at fault, or nothing is.
    Failed { reason: String },
}

impl NvrtcReply {
    /// Whether the compiler gave up, perhaps for lack of memory.
    pub(super) fn gave_up(&self) -> bool {
        match self {
            Self::Compiled { .. } => false,
            Self::Refused { log, .. } => {
                let log = log.to_lowercase();
                log.contains("out of memory") || log.contains("memory allocation fail")
            }
            Self::Ready | Self::Failed { .. } => true,
        }
    }
}

/// Compiles units until there are no more.
pub fn serve(memory: u64, orders: impl BufRead, mut deliveries: impl Write) -> io::Result<()> {
    end_with_supervisor();
    let nvrtc = Nvrtc::find().map_err(io::Error::other)?;
    let flags = [format!(
        "--gpu-architecture={}",
        default_device().chip.target()
    )];
    nvrtc
        .compile("first.cu", FIRST, &flags, &[])
        .map_err(io::Error::other)?;
    // The compiler's memory so far differs by machine (a heap for every core) and is not the
    // unit's. Address space would count reservations too.
    limit(Resource::Data, data_in_use()?.saturating_add(memory))?;
    // From here on no file can be opened at all: a unit is compiled only from the contents of its
    // order.
    limit(Resource::Nofile, 0)?;
    // Some sources crash the compiler, and a core file would be useless.
    limit(Resource::Core, 0)?;
    send(&mut deliveries, &NvrtcReply::Ready, &[])?;
    for line in orders.lines() {
        let order: NvrtcRequest = serde_json::from_str(&line?)?;
        let (delivery, cubin) = make(nvrtc, &order);
        send(&mut deliveries, &delivery, &cubin)?;
    }
    Ok(())
}

fn send(deliveries: &mut impl Write, delivery: &NvrtcReply, cubin: &[u8]) -> io::Result<()> {
    serde_json::to_writer(&mut *deliveries, delivery)?;
    deliveries.write_all(b"\n")?;
    deliveries.write_all(cubin)?;
    deliveries.flush()
}

/// Bytes of private, writable memory of this process.
fn data_in_use() -> io::Result<u64> {
    const DATA: usize = 5;
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages = pages.split_whitespace().nth(DATA);
    let pages = pages.and_then(|p| p.parse::<u64>().ok());
    let page = rustix::param::page_size() as u64;
    Ok(pages.ok_or(io::ErrorKind::InvalidData)? * page)
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    Ok(setrlimit(resource, limit)?)
}

fn make(nvrtc: &Nvrtc, order: &NvrtcRequest) -> (NvrtcReply, Vec<u8>) {
    let compiled = nvrtc.compile_instances(
        &order.name,
        &order.source,
        &order.flags,
        &order.headers,
        &order.instances,
    );
    match compiled {
        Err(reason) => (NvrtcReply::Failed { reason }, Vec::new()),
        Ok(Output {
            cubin,
            ptx,
            log,
            lowered,
        }) => {
            let size = ptx.len() + cubin.as_ref().map_or(0, Vec::len);
            if size > MAX_IMAGE {
                let reason = format!(
                    "its image takes {} MiB, more than the {} MiB that are sensible",
                    size >> 20,
                    MAX_IMAGE >> 20
                );
                return (NvrtcReply::Failed { reason }, Vec::new());
            }
            let log = shortened(log);
            match cubin {
                Some(cubin) => {
                    let reply = NvrtcReply::Compiled {
                        cubin: cubin.len(),
                        ptx,
                        log,
                        lowered,
                    };
                    (reply, cubin)
                }
                None => (NvrtcReply::Refused { ptx, log }, Vec::new()),
            }
        }
    }
}

/// A long log without its middle: errors are at the beginning or at the end.
fn shortened(log: String) -> String {
    if log.len() <= MAX_LOG {
        return log;
    }
    let bytes = log.as_bytes();
    let head = String::from_utf8_lossy(&bytes[..MAX_LOG / 2]);
    let tail = String::from_utf8_lossy(&bytes[bytes.len() - MAX_LOG / 2..]);
    format!("{head}\n… and more …\n{tail}")
}
