use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::includes::wishes;
use super::library::Library;

/// The files one source is compiled with. The compiler is shown these and
/// nothing else, so they are all that can take part: what it is not shown it
/// cannot open, wherever it lies and however its name is put together.
///
/// Preprocessor conditions are not evaluated: a header behind an `#if` counts.
/// Where a name is made by macros, every file of the library is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// By the name an `#include` gives.
    shown: BTreeMap<String, Shown>,
    /// Names that are there and may not be included, and why.
    left_out: BTreeMap<String, String>,
    folders: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    File {
        path: PathBuf,
        text: String,
    },
    /// Another name of a file, as one beside it writes it.
    Alias(String),
    /// A name that means different files in different places.
    Ambiguous(BTreeSet<String>),
}

impl Headers {
    /// What `source` may reach in `library`.
    pub fn of(source: &str, library: &Library) -> Self {
        let mut headers = Self {
            shown: BTreeMap::new(),
            left_out: library.left_out.clone(),
            folders: library.folders.clone(),
        };
        let mut computed = headers.follow(source, "", library);
        let mut followed = BTreeSet::new();
        loop {
            let next = headers.shown.iter().find_map(|(name, shown)| match shown {
                Shown::File { text, .. } if !followed.contains(name) => {
                    Some((name.clone(), text.clone()))
                }
                _ => None,
            });
            match next {
                Some((name, text)) => {
                    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
                    computed |= headers.follow(&text, folder, library);
                    followed.insert(name);
                }
                None if computed => {
                    computed = false;
                    library.files.keys().for_each(|n| headers.show(n, library));
                }
                None => return headers,
            }
        }
    }

    /// Takes in what a text in `folder` asks for; whether names are computed.
    fn follow(&mut self, text: &str, folder: &str, library: &Library) -> bool {
        let asked = wishes(text);
        for wish in asked.wishes {
            let beside = match wish.quoted {
                true => join(folder, &wish.name).filter(|n| library.files.contains_key(n)),
                false => None,
            };
            let plain = || join("", &wish.name).filter(|n| library.files.contains_key(n));
            if let Some(file) = beside.or_else(plain) {
                self.show(&file, library);
                self.call(wish.name, file);
            }
        }
        asked.computed
    }

    fn show(&mut self, name: &str, library: &Library) {
        let Some(header) = library.files.get(name) else {
            return;
        };
        let shown = match self.shown.get(name) {
            Some(Shown::File { .. } | Shown::Ambiguous(_)) => return,
            Some(Shown::Alias(other)) => {
                Shown::Ambiguous(BTreeSet::from([name.to_owned(), other.clone()]))
            }
            None => Shown::File {
                path: header.path.clone(),
                text: header.text.clone(),
            },
        };
        self.shown.insert(name.to_owned(), shown);
    }

    /// Lets `name` mean `file`.
    fn call(&mut self, name: String, file: String) {
        if name == file {
            return;
        }
        let other = match self.shown.get_mut(&name) {
            Some(Shown::Ambiguous(all)) => {
                all.insert(file);
                return;
            }
            Some(Shown::Alias(other)) if *other == file => return,
            Some(Shown::Alias(other)) => other.clone(),
            Some(Shown::File { .. }) => name.clone(),
            None => {
                self.shown.insert(name, Shown::Alias(file));
                return;
            }
        };
        let both = BTreeSet::from([other, file]);
        self.shown.insert(name, Shown::Ambiguous(both));
    }

    /// Name and text of each as the compiler is given them: lines are counted
    /// in the file as the user has it.
    pub fn texts(&self) -> impl Iterator<Item = (&str, String)> {
        self.shown.iter().map(|(name, shown)| {
            let text = match shown {
                Shown::File { path, text } => {
                    let path = path.display().to_string();
                    format!("#line 1 {}\n{text}", c_string(&path))
                }
                Shown::Alias(file) => format!("#include <{file}>\n"),
                Shown::Ambiguous(files) => {
                    let all: Vec<&str> = files.iter().map(String::as_str).collect();
                    format!(
                        "#error {name} may be {}: give it in full\n",
                        all.join(" or ")
                    )
                }
            };
            (name.as_str(), text)
        })
    }

    /// What the files hold, wherever they lie: names and texts.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.shown.iter().flat_map(|(name, shown)| {
            let content = match shown {
                Shown::File { text, .. } => text.as_str(),
                Shown::Alias(file) => file.as_str(),
                Shown::Ambiguous(_) => "",
            };
            [name.as_str(), content]
        })
    }

    /// Why an `#include` of `name` failed, and what to do.
    pub fn remedy(&self, name: &str) -> String {
        let why = join("", name).and_then(|name| self.left_out.get(&name));
        let folders: Vec<String> = self
            .folders
            .iter()
            .map(|f| f.display().to_string())
            .collect();
        let rule = match folders.is_empty() {
            true => "nothing can be included here".to_owned(),
            false => format!(
                "a variant may include what lies in {}",
                folders.join(" or ")
            ),
        };
        match why {
            Some(why) => format!("{why}; {rule}"),
            None => format!("there is no such file to include; {rule}"),
        }
    }
}

/// `name` as seen from `folder`, if it stays inside.
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

/// SHA-256 of the parts, each with its length so that no two lists collide.
pub fn content_hash<S: AsRef<[u8]>>(parts: impl IntoIterator<Item = S>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
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
            ["beside.cuh"]
        );
        assert!(names(&folder.headers("#include \"neighbour.cu\"")).is_empty());
    }

    #[test]
    fn a_computed_name_shows_everything() {
        let folder = Folder::with(&[("beside.cuh", ""), ("include/a.cuh", ""), ("x.cu", "")]);
        let headers = folder.headers("#define N <a.cuh>\n#include N\n");
        assert_eq!(names(&headers), ["a.cuh", "beside.cuh"]);
    }

    #[test]
    fn a_name_with_two_meanings_is_refused() {
        let folder = Folder::with(&[
            ("tile.cuh", ""),
            ("include/dgx/tile.cuh", ""),
            ("include/dgx/a.cuh", "#include \"tile.cuh\""),
        ]);
        let headers = folder.headers("#include \"tile.cuh\"\n#include <dgx/a.cuh>\n");
        let text = headers
            .texts()
            .find(|(name, _)| *name == "tile.cuh")
            .unwrap()
            .1;
        assert_eq!(
            text,
            "#error tile.cuh may be dgx/tile.cuh or tile.cuh: give it in full\n"
        );
        // Nobody asks for the other one.
        let headers = folder.headers("#include \"tile.cuh\"\n");
        assert_eq!(names(&headers), ["tile.cuh"]);
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
                .contains("may include what lies in")
        );
    }

    #[test]
    fn hash_tells_apart_what_concatenation_would_not() {
        assert_ne!(content_hash(["ab", "c"]), content_hash(["a", "bc"]));
    }
}
