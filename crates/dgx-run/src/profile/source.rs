//! From lines of PTX to lines of the `.cu`.

use std::collections::HashMap;

/// The source line of each line of a PTX text.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// By line of the PTX, from 0: file and line.
    places: Vec<Option<(u32, u32)>>,
    files: HashMap<u32, String>,
}

impl Sources {
    /// Reads the `.loc` and `.file` directives of `-lineinfo`. Inlined code counts at the place of
    /// its call.
    pub fn read(ptx: &str) -> Self {
        let mut sources = Self::default();
        let mut here = None;
        for line in ptx.lines() {
            let text = line.trim_start();
            if let Some(rest) = text.strip_prefix(".loc") {
                let called = rest.rsplit_once("inlined_at").map_or(rest, |(_, at)| at);
                here = pair(called);
            } else if let Some((number, name)) = text.strip_prefix(".file").and_then(file) {
                sources.files.insert(number, name);
            } else if text.starts_with('}') {
                here = None;
            }
            sources.places.push(here);
        }
        sources
    }

    /// `interleaved.cu:58`, for a line of the PTX counted from 1.
    pub fn place(&self, line: u32) -> Option<String> {
        let index = (line as usize).checked_sub(1)?;
        let (file, line) = (*self.places.get(index)?)?;
        let name = self.files.get(&file)?;
        let name = name.rsplit('/').next().unwrap_or(name);
        Some(format!("{name}:{line}"))
    }
}

/// File and line of `1 58 3`.
fn pair(text: &str) -> Option<(u32, u32)> {
    let mut words = text.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Number and name of `1 "/a/b.cu"`.
fn file(text: &str) -> Option<(u32, String)> {
    let (number, name) = text.trim().split_once([' ', '\t'])?;
    let name = name.trim().strip_prefix('"')?;
    Some((number.parse().ok()?, name.split('"').next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_ptx_says_where_in_the_source_it_is_from() {
        let ptx = "\
.entry k() {
\t.loc\t1 56 0
\tadd.u32 %r1, %r2, 1;
\t.loc\t2 26 3, function_name $L__info_string0, inlined_at 1 58 3
\tmov.u32 %r1, 4;
}
.entry l() {
\tret;
}
\t.file\t1 \"variants/two words.cu\"
\t.file\t2 \"dgx/ptx.cuh\"
";
        let sources = Sources::read(ptx);
        let places: Vec<Option<String>> = (0..9).map(|line| sources.place(line)).collect();
        let at = |line: u32| Some(format!("two words.cu:{line}"));
        assert_eq!(
            places[2..9],
            [at(56), at(56), at(58), at(58), None, None, None]
        );
        assert_eq!(sources.place(99), None);
        assert_eq!(Sources::read("").place(1), None);
    }
}
