//! The compiler's input for a source: its text, and the files it may include.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::front_matter::Reader;
use super::standins;
use super::variant::Variant;
use super::wire::FrontMatter;
use super::{Headers, Library};
use crate::operator::abi;
use dgx_core::diagnostic::{InputError, SourceFile};
use dgx_core::operator::{self, Operator};

/// The header that declares a kernel's parameters.
const ABI: &str = "dgx/abi.cuh";

/// Adapts a file that was written for nvcc to NVRTC.
pub(super) fn adapt(variant: &mut Variant, file: &SourceFile, library: &Library) {
    let prelude = format!("#include <{}>\n", standins::PRELUDE);
    let mut headers = Headers::of(&format!("{prelude}{}", file.text), library);
    let device = headers.without_host_code(&file.text);
    variant.code = format!("{prelude}#line 1\n{device}").into();
    variant.headers = Arc::new(headers);
    variant.flags.push("-default-device".to_owned());
}

/// The files that a source of `operator` may include: the library's own, copied only if something
/// is added to them.
pub(super) fn shown<'l>(
    library: &'l Library,
    operator: &Operator,
    include: &[PathBuf],
    empty: &[String],
) -> Cow<'l, Library> {
    let mut library = Cow::Borrowed(library);
    // For the default operator a file may take its place.
    if *operator != **operator::default_operator() || library.find(ABI).is_none() {
        library = Cow::Owned(library.with(ABI, abi::header(operator)));
    }
    if !include.is_empty() {
        library = Cow::Owned(library.into_owned().searching(include));
    }
    empty.iter().fold(library, |library, name| {
        Cow::Owned(library.with(name, String::new()))
    })
}

impl Reader<'_> {
    /// The include folders that it names, relative to its own; then those of the variant it
    /// extends.
    pub(super) fn include(&self, wire: &FrontMatter) -> Result<Vec<PathBuf>, InputError> {
        let here = self.file.path.parent().unwrap_or(Path::new(""));
        let folders = wire.include.iter().map(|folder| {
            let path = here.join(folder.get_ref());
            match path.is_dir() {
                true => Ok(path),
                false => Err(self.document.error(
                    folder.span(),
                    format!("there is no folder {}", path.display()),
                    "name a folder of headers, as seen from this file's",
                )),
            }
        });
        let mut folders = folders.collect::<Result<Vec<PathBuf>, InputError>>()?;
        let inherited = self.parent.iter().flat_map(|parent| &parent.include);
        for folder in inherited {
            if !folders.contains(folder) {
                folders.push(folder.clone());
            }
        }
        Ok(folders)
    }
}
