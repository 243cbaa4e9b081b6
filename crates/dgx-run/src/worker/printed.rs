use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use dgx_core::domain::printable;

/// Bytes kept of the kernels' output during one request.
const KEPT: usize = 64 << 10;

/// A worker's stdout: the kernels' output, and after each request a mark that no kernel can know.
/// Kernels may print anything, in any amount: the text is kept up to a limit, and is never
/// interpreted.
#[derive(Debug, Default)]
struct MarkedOutput {
    kept: Vec<u8>,
    /// Bytes since the last mark.
    heard: u64,
    /// The expected mark, and the bytes in which its beginning may be.
    mark: Vec<u8>,
    tail: Vec<u8>,
    /// The output before the mark, once that has come.
    done: Option<String>,
    closed: bool,
}

impl MarkedOutput {
    fn expect(&mut self, mark: &str) {
        *self = Self {
            mark: mark.as_bytes().to_vec(),
            closed: self.closed,
            ..Self::default()
        };
    }

    fn add(&mut self, bytes: &[u8]) {
        let before = self.heard;
        self.heard += bytes.len() as u64;
        let room = KEPT.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend(&bytes[..room]);
        if self.mark.is_empty() || self.done.is_some() {
            return;
        }
        let overlap = self.tail.len() as u64;
        self.tail.extend(bytes);
        let met = self
            .tail
            .windows(self.mark.len())
            .position(|window| window == self.mark);
        if let Some(at) = met {
            self.done = Some(self.words(before - overlap + at as u64));
        }
        let keep = self.tail.len().min(self.mark.len() - 1);
        self.tail.drain(..self.tail.len() - keep);
    }

    /// The first `length` bytes as text.
    fn words(&self, length: u64) -> String {
        let kept = &self.kept[..self.kept.len().min(length as usize)];
        let mut text = printable(String::from_utf8_lossy(kept).trim());
        let lost = length - kept.len() as u64;
        if lost > 0 {
            text.push_str(&format!("\n… and {lost} bytes more"));
        }
        text
    }
}

/// A [`MarkedOutput`] that one thread fills and another waits on.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelOutput(Arc<(Mutex<MarkedOutput>, Condvar)>);

impl KernelOutput {
    /// From here on output belongs to a request that ends with `mark`.
    pub(super) fn expect(&self, mark: &str) {
        self.with(|stream| stream.expect(mark));
    }

    pub(super) fn add(&self, bytes: &[u8]) {
        self.with(|stream| stream.add(bytes));
    }

    /// No more output will come.
    pub(super) fn close(&self) {
        self.with(|stream| stream.closed = true);
    }

    fn with(&self, change: impl FnOnce(&mut MarkedOutput)) {
        if let Ok(mut stream) = self.0.0.lock() {
            change(&mut stream);
        }
        self.0.1.notify_all();
    }

    /// The output up to the mark, or up to the end, or up to now if neither comes in time.
    pub(super) fn take(&self, patience: Duration) -> Option<String> {
        let (lock, news) = &*self.0;
        let waiting = |stream: &mut MarkedOutput| stream.done.is_none() && !stream.closed;
        let waited = news.wait_timeout_while(lock.lock().ok()?, patience, waiting);
        let mut stream = waited.ok()?.0;
        let text = match stream.done.take() {
            Some(text) => text,
            None => stream.words(stream.heard),
        };
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "0123456789abcdef";
    const SOON: Duration = Duration::from_secs(5);

    fn after(chunks: &[&[u8]]) -> Option<String> {
        let words = KernelOutput::default();
        words.expect(MARK);
        chunks.iter().for_each(|chunk| words.add(chunk));
        words.take(SOON)
    }

    #[test]
    fn words_end_at_the_mark_wherever_it_is_torn() {
        let text = format!("hello\n{{\"to\":1,\"reply\":\"ran\"}}\n\n{MARK}\nlater");
        let expected = Some("hello\n{\"to\":1,\"reply\":\"ran\"}".to_owned());
        for cut in 0..text.len() {
            let (one, two) = text.as_bytes().split_at(cut);
            assert_eq!(after(&[one, two]), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(after(&bytes), expected);
        assert_eq!(after(&[format!("\n{MARK}\n").as_bytes()]), None);
    }

    #[test]
    fn megabytes_and_binary_are_cut_and_counted() {
        let flood = vec![0xff; 3 << 20];
        let kept = after(&[&flood, format!("\n{MARK}").as_bytes()]).unwrap();
        assert!(kept.ends_with("bytes more"), "{}", &kept[kept.len() - 40..]);
        assert!(kept.contains(&format!("{}", (3 << 20) + 1 - KEPT)));
        assert!(kept.len() < 4 * KEPT);
    }

    #[test]
    fn the_words_of_a_worker_that_died_are_all_there_are() {
        let words = KernelOutput::default();
        words.expect(MARK);
        words.add(b"the end is n");
        words.close();
        assert_eq!(words.take(SOON).as_deref(), Some("the end is n"));
    }

    #[test]
    fn each_request_has_its_own_words() {
        let words = KernelOutput::default();
        words.expect(MARK);
        words.add(format!("one\n{MARK}\n").as_bytes());
        assert_eq!(words.take(SOON).as_deref(), Some("one"));
        words.expect("fedcba9876543210");
        words.add(format!("{MARK} two\nfedcba9876543210\n").as_bytes());
        assert_eq!(words.take(SOON), Some(format!("{MARK} two")));
    }
}
