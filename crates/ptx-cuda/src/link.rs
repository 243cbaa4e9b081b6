//! Linking: several PTX texts become one module.

use std::ffi::CString;

use crate::error::{Error, Result};
use crate::say::say;

/// Texts that are being linked, and the result.
#[derive(Default)]
pub(crate) struct Link {
    texts: Vec<String>,
    linked: Option<CString>,
}

impl Link {
    pub(crate) fn add(&mut self, text: &str) {
        self.texts.push(text.to_owned());
        self.linked = None;
    }

    /// The module, as `cuModuleLoadData` takes it. It lives as long as the link.
    pub(crate) fn complete(&mut self) -> Result<&CString> {
        if self.linked.is_none() {
            let text = join(&self.texts);
            if let Err(error) = ptx_emu::Module::load(&text) {
                say(&format!("the PTX cannot be linked: {error}"));
                return Err(Error::INVALID_PTX);
            }
            let text = CString::new(text).map_err(|_| Error::INVALID_PTX)?;
            self.linked = Some(text);
        }
        self.linked.as_ref().ok_or(Error::INVALID_VALUE)
    }
}

/// Joins several texts: directives that may occur only once are kept once, and the numbers of
/// source files, which differ from text to text, are left out with the lines that use them.
fn join(texts: &[String]) -> String {
    let [only] = texts else {
        let header = [".version", ".target", ".address_size"];
        let sources = [".file", ".loc"];
        let mut all = String::new();
        for (index, text) in texts.iter().enumerate() {
            let lines = text.lines().filter(|line| {
                let word = line.split_whitespace().next().unwrap_or_default();
                !sources.contains(&word) && (index == 0 || !header.contains(&word))
            });
            lines.for_each(|line| {
                all.push_str(line);
                all.push('\n');
            });
        }
        return all;
    };
    only.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

    #[test]
    fn a_kernel_calls_a_function_of_another_text() {
        let mut link = Link::default();
        link.add(&format!(
            "{HEADER}.extern .func (.param .b32 r) two();\n\
             .visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<2>;\n.reg .b64 %d<2>;\n\
             ld.param.u64 %d0, [p];\n{{\n.param .b32 out;\ncall (out), two, ();\n\
             ld.param.b32 %r0, [out];\n}}\nst.global.b32 [%d0], %r0;\nret;\n}}\n"
        ));
        link.add(&format!(
            "{HEADER}.visible .func (.param .b32 r) two()\n{{\n.reg .b32 %r<1>;\n\
             mov.b32 %r0, 2;\nst.param.b32 [r], %r0;\nret;\n}}\n"
        ));
        let linked = link.complete().expect("it links").to_str().expect("text");
        let module = ptx_emu::Module::load(linked).expect("it loads");
        assert!(module.kernel("k").is_some(), "{:?}", module.refused());
        link.add("what is this");
        assert_eq!(link.complete().err(), Some(Error::INVALID_PTX));
    }
}
