//! Which files of a folder are variants, and where their front matter is.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::front_matter;
use super::vocabulary::Language;
use dgx_core::diagnostic::{InputError, SourceFile};
use dgx_core::domain::printable_line;
use dgx_core::files;
use dgx_core::operator;

/// Whether a file is a source. Editors leave hidden files, which are not. A `.cu` is always a
/// variant; PTX and Python only with front matter: their own, or a `NAME.toml` that does not belong
/// to a `.cu`.
pub(super) fn is_source(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let has_matter = |language: Language| {
        let (open, _) = language.comment();
        let opens = |text: String| text[language.skipped(&text)..].starts_with(open);
        let own = sidecar(path).is_file() && !path.with_extension("cu").is_file();
        own || beginning(path).is_some_and(opens)
    };
    !name.starts_with(b".")
        && Language::of(path)
            .is_some_and(|language| language == Language::Cuda || has_matter(language))
}

/// The beginning of a file, as much as front matter can be in: PTX may be large.
fn beginning(path: &Path) -> Option<String> {
    const MOST: u64 = 64 << 10;
    let file = path.is_file().then(|| std::fs::File::open(path))?.ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn sidecar(source: &Path) -> PathBuf {
    source.with_extension("toml")
}

/// The file that the `source` of a `NAME.toml` names, before the rest is read: other mistakes there
/// affect only rounds that name the variant.
pub(super) fn named_source(matter: &Path) -> Option<PathBuf> {
    let text = files::read_text(matter, files::LARGEST).ok();
    let text = text.filter(|_| matter.extension() == Some(OsStr::new("toml")))?;
    let top = text.lines().take_while(|line| !line.starts_with('['));
    let mut values = top.filter_map(|line| {
        let value = line
            .strip_prefix("source")?
            .trim_start()
            .strip_prefix('=')?;
        let (value, _) = value.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(matter.parent()?.join(value))
    });
    values.next()
}

/// The error of a `NAME.toml` whose `source` is missing.
pub(super) fn lost_source(matter: &Path, source: &Path) -> InputError {
    let text = files::read_text(matter, files::LARGEST).unwrap_or_default();
    let key = match text.starts_with("source") {
        true => 0,
        false => text.find("\nsource").map_or(0, |at| at + 1),
    };
    let line = text[key..].lines().next().unwrap_or_default();
    let quotes = line.find('"').zip(line.rfind('"'));
    let place = quotes.map_or(key..key, |(from, to)| key + from..key + to + 1);
    let named = (matter.parent()).and_then(|folder| source.strip_prefix(folder).ok());
    let named = printable_line(&named.unwrap_or(source).display().to_string());
    let file = SourceFile {
        path: matter.to_owned(),
        text: text.as_str().into(),
    };
    let message = format!("`source` names {named}, which does not exist");
    let remedy = "give the path of the code, relative to this file";
    file.error(place, message, remedy)
}

/// `NAME.toml` of a source that has no front matter itself.
pub(super) fn beside(file: &SourceFile, path: PathBuf) -> Result<Option<SourceFile>, InputError> {
    let own = front_matter::locate(file);
    match (path.is_file(), own) {
        (false, _) => Ok(None),
        (true, Err(_)) => {
            let text = files::read_text(&path, files::LARGEST).map_err(|why| {
                let message = format!("cannot read {}: {why}", path.display());
                InputError::new(message, "check the file's kind, permissions and encoding")
            })?;
            Ok(Some(SourceFile {
                path,
                text: text.into(),
            }))
        }
        (true, Ok(_)) => {
            let (one, two) = (file.path.display(), path.display());
            let message = format!("{one} and {two} both have its front matter");
            Err(InputError::new(message, "remove one of the two"))
        }
    }
}

/// Why a path among the variants is not one, if it may have been meant to be.
pub(super) fn passed_over(path: &Path) -> Option<InputError> {
    let name = path.file_name()?.as_encoded_bytes();
    if name.starts_with(b".") || name == b"include" {
        return None;
    }
    let shown = printable_line(&path.display().to_string());
    if path.is_dir() {
        if operator::known().any(|operator| operator.as_bytes() == name) {
            return None;
        }
        let mut entries = std::fs::read_dir(path).ok()?.flatten();
        entries.find(|entry| is_source(&entry.path()))?;
        let mut beside = std::fs::read_dir(path.parent()?).ok()?.flatten();
        if beside.any(|e| named_source(&e.path()).is_some_and(|s| s.starts_with(path))) {
            return None;
        }
        return Some(InputError::new(
            format!("the variants in {shown} are left out: its name is not a compile target"),
            format!("call it sm_90a, sm_100a, …, or say --variants {shown}"),
        ));
    }
    let ending = path.extension()?;
    if ending == OsStr::new("toml") {
        let has_source = |l: Language| path.with_extension(l.ending()).is_file();
        let languages = [Language::Cuda, Language::Ptx, Language::Triton];
        let is_named = named_source(path).is_some();
        return (!is_named && !languages.into_iter().any(has_source)).then(|| {
            let message = format!("{shown} is left out: there is no source beside it");
            InputError::new(message, "give both the same name, but for the ending")
        });
    }
    let alike = ending.eq_ignore_ascii_case("cu");
    let opens = || beginning(path).is_some_and(|text| text.starts_with("/*dgx"));
    (path.is_file() && (alike || opens())).then(|| {
        let message = format!("{shown} is left out: variants are .cu, .ptx and .py files");
        InputError::new(message, "rename it")
    })
}
