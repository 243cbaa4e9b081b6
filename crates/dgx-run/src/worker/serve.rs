use std::io::{BufRead, Write};
use std::path::Path;

use super::examine::examine;
use super::measure::measure;
use super::problems::Problems;
use super::protocol::{Reply, ReplyLine, Request, RequestLine};
use super::trace::trace;
use super::validate::judge;
use crate::backend::{Backend, Opening};
use crate::child::end_with_supervisor;

/// The worker's side: opens its backend, then answers requests until there are no more. Returns
/// early if the backend is no longer usable. Stdout is left to the output of kernels.
pub fn serve(opening: &Opening, cache: &Path, requests: impl BufRead, replies: impl Write) {
    end_with_supervisor();
    let mut line = ReplyWriter {
        replies,
        number: 0,
        mark: String::new(),
    };
    let mut opened = match opening.open() {
        Ok(opened) => opened,
        Err(message) => {
            line.send(&Reply::Failed { message });
            return;
        }
    };
    line.send(&Reply::Ready {
        device: Box::new(opened.device().clone()),
        yardstick: opened.yardstick(),
    });
    let mut problems = Problems::new(cache);
    for text in requests.lines().map_while(Result::ok) {
        let request = match serde_json::from_str(&text) {
            Ok(RequestLine {
                number,
                mark,
                request,
            }) => {
                (line.number, line.mark) = (number, mark);
                request
            }
            Err(error) => {
                line.send(&Reply::Failed {
                    message: format!("a request that is none: {error}"),
                });
                continue;
            }
        };
        let usable = answer(request, opened.as_mut(), &mut problems, &mut |r| {
            line.send(r)
        });
        if !usable {
            return;
        }
    }
}

/// Executes a request. False if this process is no longer usable.
fn answer(
    request: Request,
    backend: &mut dyn Backend,
    problems: &mut Problems,
    send: &mut dyn FnMut(&Reply),
) -> bool {
    match request {
        Request::Validate(job) => {
            trace(|| format!("validate {} on {}", job.code.contender, job.shape.name));
            judge(backend, problems, &job, send)
        }
        Request::Examine(job) => {
            trace(|| format!("examine {} on {}", job.code.contender, job.shape.name));
            send(&examine(backend, problems, &job));
            true
        }
        Request::Answer(key) => {
            trace(|| format!("answer {} {}", key.shape.name, key.distribution));
            send(&match problems.answer(&key, backend) {
                Ok(()) => Reply::Answered,
                Err(message) => Reply::Failed { message },
            });
            true
        }
        Request::Measure(job) => {
            trace(|| format!("measure {}", job.shape.name));
            measure(backend, problems, &job, send)
        }
    }
}

/// Writes replies to the current request.
struct ReplyWriter<W: Write> {
    replies: W,
    number: u64,
    mark: String,
}

impl<W: Write> ReplyWriter<W> {
    fn send(&mut self, reply: &Reply) {
        if reply.is_last() {
            self.end_words();
        }
        let answer = ReplyLine {
            to: self.number,
            reply: reply.clone(),
        };
        let mut text = serde_json::to_string(&answer).unwrap_or_default();
        text.push('\n');
        let sent = self
            .replies
            .write_all(text.as_bytes())
            .and_then(|()| self.replies.flush());
        if sent.is_err() {
            // The supervisor is gone; there is nothing left to do.
            std::process::exit(0);
        }
    }

    /// Signals the supervisor that the kernels' output is complete.
    fn end_words(&self) {
        flush_printed();
        let mut stdout = std::io::stdout().lock();
        // Output that cannot be delivered is no reason to lose the answer.
        let _ = writeln!(stdout, "\n{}", self.mark).and_then(|()| stdout.flush());
    }
}

/// A GPU's driver prints the kernels' output through the C library, which buffers it while stdout
/// is a pipe.
fn flush_printed() {
    unsafe extern "C" {
        fn fflush(stream: *mut std::ffi::c_void) -> std::ffi::c_int;
    }
    // SAFETY: a null stream means all of them.
    unsafe { fflush(std::ptr::null_mut()) };
}
