use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::host_code::{DeviceWords, definitions};
use super::includes::includes;
use super::library::{BESIDE, Header, Library, MAX_BYTES, MAX_FILES};
use super::standins;
use dgx_core::diagnostic::nearest;
use dgx_core::files;

/// The files one source is compiled with. The compiler gets these and nothing else, so no other
/// file can take part: it cannot open any other, wherever that lies and however its name is
/// composed.
///
/// The compiler looks headers up by the name as written, from any file and in any brackets. So each
/// name gets the one meaning it has where it is written, and a name with several is refused rather
/// than guessed.
///
/// Preprocessor conditions are not evaluated: a header behind an `#if` counts. If a macro composes
/// a name, the compiler gets every file of the library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// By their names in the library.
    files: BTreeMap<String, Header>,
    /// The files that a name means, in different places; `None` if there is no such file.
    meanings: BTreeMap<String, BTreeSet<Option<String>>>,
    /// Names of files that may not be included, with the reason.
    left_out: BTreeMap<String, String>,
    variants: PathBuf,
    include: Vec<PathBuf>,
    /// Names composed by macros, in folders too large to pass completely.
    computed: BTreeSet<String>,
    bytes: usize,
}

/// The compiler's input under one name.
enum HeaderText<'a> {
    File(&'a Header),
    /// Another name of a file.
    Alias(&'a str),
    /// A name that means different files in different places.
    Ambiguous(&'a BTreeSet<Option<String>>),
}

impl Headers {
    /// The headers that `source` may reach in `library`.
    pub fn of(source: &str, library: &Library) -> Self {
        let mut headers = Self {
            left_out: library.left_out.clone(),
            variants: library.variants.clone(),
            include: library.include.clone(),
            ..Self::default()
        };
        let mut computed = headers.follow(source, BESIDE, library);
        let mut followed = BTreeSet::new();
        loop {
            let mut files = headers.files.iter();
            let next = files.find(|(name, _)| !followed.contains(*name));
            match next.map(|(name, header)| (name.clone(), header.text.clone())) {
                Some((name, text)) => {
                    computed |= headers.follow(&text, &name, library);
                    followed.insert(name);
                }
                None if computed => {
                    computed = false;
                    for name in library.files.keys() {
                        let written = name.strip_prefix(BESIDE).unwrap_or(name);
                        headers.take(name, library);
                        headers.mean(written, Some(name));
                    }
                }
                None if !headers.computed.is_empty() => headers.compute(library),
                None => return headers,
            }
        }
    }

    /// Adds the files whose names are composed by macros.
    fn compute(&mut self, library: &Library) {
        let computed = std::mem::take(&mut self.computed);
        let own = self.files.values().filter(|header| !header.of_toolkit);
        let macros: Vec<(&str, &str)> = own
            .flat_map(|header| definitions(&header.text))
            .filter(|(_, body)| body.trim_end().ends_with(['>', '"']))
            .collect();
        let made = |written: &str| {
            let (name, argument) = written.split_once('(').unwrap_or((written, ")"));
            let argument = argument.trim_end_matches(')').trim();
            let made = macros.iter().filter(|(own, _)| *own == name.trim());
            let made = made.map(|(_, body)| {
                let (parameter, body) = match body.strip_prefix('(') {
                    Some(rest) => rest.split_once(')').unwrap_or(("", rest)),
                    None => ("", *body),
                };
                let body = body.trim().trim_matches(['<', '>', '"']);
                match parameter.trim() {
                    "" => body.to_owned(),
                    parameter => body.replace(parameter, argument),
                }
            });
            made.collect::<Vec<String>>()
        };
        let names: BTreeSet<String> = computed.iter().flat_map(|name| made(name)).collect();
        for name in names {
            if self.take(&name, library) {
                self.mean(&name, Some(&name));
            }
        }
    }

    /// Adds the files that the text of `includer` includes; returns whether it composes names that may
    /// be any file's.
    fn follow(&mut self, text: &str, includer: &str, library: &Library) -> bool {
        let asked = includes(text);
        let of_toolkit = (self.files.get(includer)).is_some_and(|header| header.of_toolkit);
        for include in asked.includes {
            let near = match include.quoted {
                true => neighbour(includer, &include.name),
                false => None,
            };
            let mut names = near.into_iter().chain(join("", &include.name));
            let found = names.find(|name| self.take(name, library));
            match (found, standins::text(&include.name)) {
                (None, Some(_)) if of_toolkit => {}
                (None, Some(text)) => {
                    let header = Header::made(&include.name, text);
                    self.files.insert(include.name.clone(), header);
                    self.mean(&include.name, Some(&include.name));
                }
                (found, _) => self.mean(&include.name, found.as_deref()),
            }
        }
        // A toolkit's headers compose names only for hosts.
        let owns = library.owns(includer);
        let is_computed = !asked.computed.is_empty();
        if !owns && !of_toolkit {
            self.computed.extend(asked.computed);
        }
        is_computed && owns
    }

    /// Blanks the host code of `source`, whose headers these are, and of the files beside it.
    pub(super) fn without_host_code(&mut self, source: &str) -> String {
        let own = self.files.values().filter(|header| !header.of_toolkit);
        let texts = own.map(|header| &*header.text).chain([source]);
        let words = DeviceWords::of(texts);
        for (name, header) in &mut self.files {
            if name.starts_with(BESIDE) {
                header.text = words.without_host_code(&header.text);
            }
        }
        words.without_host_code(source)
    }

    /// Adds the file `name`, if there is one.
    fn take(&mut self, name: &str, library: &Library) -> bool {
        if self.files.contains_key(name) {
            return true;
        }
        // Searched files have the same limits as gathered ones.
        if self.files.len() >= MAX_FILES || self.bytes > MAX_BYTES {
            let why = format!("{name} is not included: the source includes too much");
            self.left_out.insert(name.to_owned(), why);
            return false;
        }
        let header = library.find(name);
        let is_there = header.is_some();
        self.bytes += header.as_ref().map_or(0, |header| header.text.len());
        self.files
            .extend(header.map(|header| (name.to_owned(), header)));
        is_there
    }

    /// Records that `name` means `file`.
    fn mean(&mut self, name: &str, file: Option<&str>) {
        for name in std::iter::once(name).chain(file) {
            let meanings = self.meanings.entry(name.to_owned()).or_default();
            meanings.insert(file.map(str::to_owned));
        }
    }

    fn shown(&self) -> impl Iterator<Item = (&str, HeaderText<'_>)> {
        self.meanings.iter().filter_map(|(name, meanings)| {
            let shown = match (meanings.len(), meanings.first()?) {
                (1, Some(file)) if file == name => HeaderText::File(self.files.get(file)?),
                (1, Some(file)) => HeaderText::Alias(file),
                (1, None) => return None,
                _ => HeaderText::Ambiguous(meanings),
            };
            Some((name.as_str(), shown))
        })
    }

    /// Name and text of each in the compiler's form: with the line numbers of the user's file.
    pub fn texts(&self) -> impl Iterator<Item = (&str, String)> {
        self.shown().map(|(name, shown)| {
            let text = match shown {
                HeaderText::File(Header { path, text, .. }) => {
                    let path = path.display().to_string();
                    format!("#line 1 {}\n{text}", c_string(&path))
                }
                HeaderText::Alias(file) => format!("#include <{file}>\n"),
                HeaderText::Ambiguous(meanings) => {
                    let all: Vec<String> = meanings.iter().map(|m| self.place(m)).collect();
                    format!(
                        "#error {name} may be {}: give one of them another name\n",
                        all.join(" or ")
                    )
                }
            };
            (name, text)
        })
    }

    fn place(&self, meaning: &Option<String>) -> String {
        let header = meaning.as_ref().and_then(|file| self.files.get(file));
        match header {
            Some(header) => c_string(&header.path.display().to_string()),
            None => "no file at all".to_owned(),
        }
    }

    /// Names and texts of the files that take part and lie among the variants, those beside them
    /// under their own names: without those of a toolkit, of a searched folder, or of dgx.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let made = |name: &str, file: &Header| file.path.as_os_str() == name;
        let files = self
            .files
            .iter()
            .filter(move |(name, file)| !made(name, file));
        files.map(|(name, file)| (name.strip_prefix(BESIDE).unwrap_or(name), &*file.text))
    }

    /// The files found in folders that the user named.
    pub fn found(&self) -> impl Iterator<Item = &Path> {
        self.files.values().filter_map(|file| file.found.as_deref())
    }

    /// The contents of all files: names and texts.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.shown().flat_map(|(name, shown)| {
            let content = match shown {
                HeaderText::File(header) => header.text.as_str(),
                HeaderText::Alias(file) => file,
                HeaderText::Ambiguous(_) => "",
            };
            [name, content]
        })
    }

    /// Why an `#include` of `name` failed, and the remedy.
    pub fn remedy(&self, name: &str) -> String {
        let beside = neighbour(BESIDE, name).and_then(|name| self.left_out.get(&name));
        let why = beside.or_else(|| self.left_out.get(&join("", name)?));
        let folders: Vec<String> = self
            .include
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        let below = match folders.is_empty() {
            true => String::new(),
            false => format!("what lies below {}, and ", folders.join(" or ")),
        };
        let rule = match self.variants.as_os_str().is_empty() {
            true => "nothing can be included here".to_owned(),
            false => format!(
                "a variant may include {below}in \"quotes\" what lies right beside it in {}",
                self.variants.display()
            ),
        };
        match why {
            Some(why) => format!("{why}; {rule}"),
            None => match self.similar(name) {
                Some(near) => format!("did you mean `{near}`? {rule}"),
                None => format!("there is no such file to include; {rule}"),
            },
        }
    }

    /// A file of the `include` folders with a similar name in the same subfolder.
    fn similar(&self, name: &str) -> Option<String> {
        let name = join("", name)?;
        let (folder, _) = name.rsplit_once('/').unwrap_or(("", &name));
        let places = self.include.iter().map(|include| include.join(folder));
        let files = places.flat_map(|place| files::entries(&place));
        let names = files.filter_map(|file| join(folder, file.file_name()?.to_str()?));
        let names: Vec<String> = names.collect();
        nearest(&name, names.iter().map(String::as_str)).map(str::to_owned)
    }
}

/// The library's name of the file that `includer` includes as `name` in quotes.
fn neighbour(includer: &str, name: &str) -> Option<String> {
    match includer.strip_prefix(BESIDE) {
        Some(_) => join("", name).map(|name| format!("{BESIDE}{name}")),
        None => join(
            includer.rsplit_once('/').map_or("", |(folder, _)| folder),
            name,
        ),
    }
}

/// `name` relative to `folder`, if it stays inside.
fn join(folder: &str, name: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    if name.starts_with('/') {
        return None;
    }
    for part in folder.split('/').chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn c_string(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => '_',
            c if c.is_control() => '_',
            c => c,
        })
        .collect();
    format!("\"{plain}\"")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn with(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(folder)
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn headers(&self, source: &str) -> Headers {
            let library = Library::gather(self.path(), &[self.path().join("include")]);
            Headers::of(source, &library)
        }
    }

    fn names(headers: &Headers) -> Vec<&str> {
        headers.texts().map(|(name, _)| name).collect()
    }

    fn text_of(headers: &Headers, name: &str) -> String {
        let found = headers.texts().find(|(shown, _)| *shown == name);
        found.unwrap_or_else(|| panic!("{name} is not shown")).1
    }

    #[test]
    fn what_is_asked_for_is_shown_and_nothing_else() {
        let folder = Folder::with(&[
            (
                "include/dgx/ptx/tma.cuh",
                "#pragma once\n#include \"bar.cuh\"\n",
            ),
            (
                "include/dgx/ptx/bar.cuh",
                "# include <dgx/ptx/tma.cuh>\n#include \"../up.cuh\"\n",
            ),
            ("include/dgx/up.cuh", ""),
            ("include/dgx/other.cuh", ""),
            ("beside.cuh", ""),
            ("neighbour.cu", ""),
        ]);
        let headers = folder.headers("#include <dgx/ptx/tma.cuh>\n#include <nowhere.h>\n");
        assert_eq!(
            names(&headers),
            [
                "../up.cuh",
                "bar.cuh",
                "dgx/ptx/bar.cuh",
                "dgx/ptx/tma.cuh",
                "dgx/up.cuh"
            ]
        );
        assert_eq!(
            names(&folder.headers("#include \"beside.cuh\"")),
            ["./beside.cuh", "beside.cuh"]
        );
        assert!(names(&folder.headers("#include \"neighbour.cu\"")).is_empty());
    }

    #[test]
    fn a_computed_name_shows_everything() {
        let folder = Folder::with(&[("beside.cuh", ""), ("include/a.cuh", ""), ("x.cu", "")]);
        let headers = folder.headers("#define N <a.cuh>\n#include N\n");
        assert_eq!(names(&headers), ["./beside.cuh", "a.cuh", "beside.cuh"]);
    }

    #[test]
    fn a_macro_makes_names_in_folders_that_are_searched() {
        let folder = Folder::with(&[
            (
                "large/a.h",
                "#define OF(x) <sub/x>\n#include OF(b.h)\n#include OF(none)\n",
            ),
            ("large/sub/b.h", ""),
            ("large/sub/c.h", ""),
        ]);
        let library = Library::gather(folder.path(), &[]);
        let library = library.searching(&[folder.path().join("large")]);
        let headers = Headers::of("#include <a.h>\n", &library);
        assert_eq!(names(&headers), ["a.h", "sub/b.h"]);
    }

    #[test]
    fn what_no_file_has_a_stand_in_may() {
        let folder = Folder::with(&[
            ("kit/kit.h", "#include <utility>\n#include <stdint.h>\n"),
            ("kit/cublas_v2.h", "host"),
            ("stdint.h", "mine"),
        ]);
        let library = Library::gather(folder.path(), &[]);
        let library = library.with_toolkit(&[folder.path().join("kit")]);
        let headers = Headers::of(
            "#include <kit.h>\n#include <cstdint>\n#include <cublas_v2.h>\n",
            &library,
        );
        assert_eq!(
            names(&headers),
            ["cstdint", "cublas_v2.h", "kit.h", "stddef.h", "stdint.h"]
        );
        assert!(!text_of(&headers, "cublas_v2.h").contains("host"));
        let mine = Headers::of("#include \"stdint.h\"\n", &library);
        assert!(text_of(&mine, "./stdint.h").ends_with("mine"));
    }

    #[test]
    fn a_name_with_two_meanings_is_refused() {
        let folder = Folder::with(&[
            ("tile.cuh", ""),
            ("include/dgx/tile.cuh", ""),
            ("include/dgx/a.cuh", "#include \"tile.cuh\""),
        ]);
        let headers = folder.headers("#include \"tile.cuh\"\n#include <dgx/a.cuh>\n");
        let text = text_of(&headers, "tile.cuh");
        assert!(text.starts_with("#error tile.cuh may be "), "{text}");
        assert!(text.contains("include/dgx/tile.cuh\""), "{text}");
        // No file includes the other one.
        let headers = folder.headers("#include \"tile.cuh\"\n");
        assert_eq!(names(&headers), ["./tile.cuh", "tile.cuh"]);
    }

    #[test]
    fn angle_brackets_never_mean_what_lies_beside() {
        let folder = Folder::with(&[
            ("both.cuh", "beside"),
            ("include/both.cuh", "include"),
            ("only.cuh", ""),
            ("include/asks.cuh", "#include \"only.cuh\""),
        ]);
        let quoted = folder.headers("#include \"both.cuh\"");
        assert_eq!(text_of(&quoted, "both.cuh"), "#include <./both.cuh>\n");
        assert!(text_of(&quoted, "./both.cuh").ends_with("beside"));
        let angled = folder.headers("#include <both.cuh>");
        assert_eq!(names(&angled), ["both.cuh"]);
        assert!(text_of(&angled, "both.cuh").ends_with("include"));
        let mixed = folder.headers("#include <both.cuh>\n#include \"both.cuh\"");
        assert!(text_of(&mixed, "both.cuh").contains("give one of them another name"));
        for absent in ["#if __has_include(<only.cuh>)", "#include <./only.cuh>"] {
            assert!(names(&folder.headers(absent)).is_empty(), "{absent}");
        }
        let mixed = folder.headers("#include \"only.cuh\"\n#if __has_include(<only.cuh>)");
        assert!(text_of(&mixed, "only.cuh").contains("no file at all or"));
        // A header of an include folder has other neighbours than the variant.
        assert_eq!(names(&folder.headers("#include <asks.cuh>")), ["asks.cuh"]);
    }

    #[test]
    fn a_path_may_be_written_in_more_than_one_way() {
        let folder = Folder::with(&[("include/sub/m.cuh", ""), ("near/n.cuh", "")]);
        for way in ["sub//m.cuh", "./sub/m.cuh", "sub/../sub/m.cuh"] {
            let headers = folder.headers(&format!("#include <{way}>"));
            assert_eq!(text_of(&headers, way), "#include <sub/m.cuh>\n");
        }
        let headers = folder.headers("#include \"near/n.cuh\"");
        assert!(names(&headers).is_empty());
        let remedy = headers.remedy("near/n.cuh");
        assert!(remedy.contains("in \"quotes\" what lies right beside it"));
    }

    #[test]
    fn a_similar_header_is_named() {
        let folder = Folder::with(&[("include/sub/abi.cuh", ""), ("include/tile.cuh", "")]);
        let headers = folder.headers("#include <sub/aby.cuh>");
        let remedy = headers.remedy("sub/aby.cuh");
        assert!(
            remedy.starts_with("did you mean `sub/abi.cuh`?"),
            "{remedy}"
        );
        assert!(headers.remedy("else.cuh").contains("no such file"));
    }

    #[test]
    fn what_leads_out_or_is_no_text_is_left_out_with_its_reason() {
        let outside = Folder::with(&[("secret.cuh", "")]);
        let folder = Folder::with(&[("include/a.cuh", "")]);
        let include = folder.path().join("include");
        std::os::unix::fs::symlink(outside.path().join("secret.cuh"), include.join("s.cuh"))
            .unwrap();
        std::os::unix::fs::symlink(outside.path(), include.join("out")).unwrap();
        std::os::unix::fs::symlink(&include, include.join("round")).unwrap();
        fs::write(include.join("nul.cuh"), "a\0b").unwrap();
        let source = "#include <s.cuh>\n#include <out/secret.cuh>\n#include \"../x.cuh\"\n\
            #include <nul.cuh>\n#include \"/etc/passwd\"\n";
        let headers = folder.headers(source);
        assert!(names(&headers).is_empty(), "{headers:?}");
        assert!(headers.remedy("s.cuh").contains("leads out of"));
        assert!(headers.remedy("nul.cuh").contains("NUL"));
        assert!(
            headers
                .remedy("/etc/passwd")
                .contains("may include what lies below")
        );
    }
}
