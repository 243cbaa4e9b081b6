//! Writes tensors and scratch of a call to files, with the bytes of its memory.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use half::f16;

use super::CapturedCall;
use super::npy::npy;
use super::{make_folder, scratch_lost, unwritten};
use crate::plan::OperatorCall;
use dgx_core::diagnostic::{CommandError, InputError, nearest};
use dgx_core::domain::Group;
use dgx_core::fields;
use dgx_core::operator::{ElementType, Operator};

/// How a dump is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DumpFormat {
    /// NumPy's format
    Npy,
    /// Numbers to read
    Text,
}

/// A buffer by name, and the type its bytes are read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpItem {
    pub name: String,
    kind: Option<Element>,
}

impl FromStr for DumpItem {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (name, kind) = match word.split_once(':') {
            Some((name, kind)) => (name, Some(kind.parse()?)),
            None => (word, None),
        };
        match name.is_empty() {
            true => Err("a name is empty".to_owned()),
            false => Ok(Self {
                name: name.to_owned(),
                kind,
            }),
        }
    }
}

/// The oracle's result, besides the contents of memory.
const EXPECTED: &str = "expected";
/// Tables that the host writes.
const TABLES: [&str; 3] = ["groups", "maps", "deal"];

/// The buffers to dump, and the folder.
#[derive(Clone, Debug)]
pub struct Dump {
    requests: Vec<DumpItem>,
    folder: PathBuf,
    form: DumpFormat,
}

impl Dump {
    /// The buffers of a call are known before it runs; the folder is made now.
    pub fn new(
        requests: Vec<DumpItem>,
        folder: PathBuf,
        form: DumpFormat,
        operator: &Operator,
        call: Option<&OperatorCall>,
    ) -> Result<Self, CommandError> {
        let lacks = |table: &str| match table {
            "maps" => call.is_some_and(|call| call.maps.is_empty()),
            "deal" => call.is_some_and(|call| call.deal.is_none()),
            _ => false,
        };
        let scratch: Vec<&str> = call.map_or(Vec::new(), |call| {
            call.scratch.iter().map(|s| s.name.as_str()).collect()
        });
        // Outputs first: they are requested most often.
        let mut fields = operator.fields();
        fields.sort_by_key(|field| field.form != fields::PointedPart::Output);
        let known = || {
            let tables = TABLES.iter().filter(|table| !lacks(table));
            let others = [EXPECTED].into_iter().chain(tables.copied());
            let fields = fields.iter().map(|field| field.name.as_str());
            fields.chain(others).chain(scratch.iter().copied())
        };
        for DumpItem { name, .. } in &requests {
            if !known().any(|known| known == name) {
                let all: Vec<&str> = known().collect();
                let remedy = match nearest(name, all.iter().copied()) {
                    Some(close) => format!("did you mean `{close}`? There are {}", all.join(", ")),
                    None => format!("there are {}", all.join(", ")),
                };
                let message = match lacks(name) {
                    true => format!("there is nothing to dump: the variant has no {name}"),
                    false => format!("there is no buffer `{name}` to dump"),
                };
                return Err(InputError::new(message, remedy).into());
            }
        }
        make_folder(&folder)?;
        Ok(Self {
            requests,
            folder,
            form,
        })
    }

    /// The buffers that a backend must keep for it.
    pub fn buffers(&self) -> Vec<String> {
        let names = self.requests.iter().map(|r| r.name.clone());
        names.filter(|name| name != EXPECTED).collect()
    }

    /// Writes the buffers of a call; returns the files, in the requested order.
    pub fn write(&self, call: &CapturedCall) -> Result<Vec<PathBuf>, CommandError> {
        let mut files = Vec::new();
        for request in &self.requests {
            for (group, array) in self.arrays(request, call)? {
                let whose = group.map_or(String::new(), |group| format!("-g{group}"));
                let (bytes, end) = match self.form {
                    DumpFormat::Npy => (array.npy(), "npy"),
                    DumpFormat::Text => (array.text().into_bytes(), "txt"),
                };
                let file = self.folder.join(format!("{}{whose}.{end}", request.name));
                fs::write(&file, bytes).map_err(|e| unwritten(&file, &e))?;
                files.push(file);
            }
        }
        Ok(files)
    }

    fn arrays(
        &self,
        request: &DumpItem,
        call: &CapturedCall,
    ) -> Result<Vec<(Option<usize>, Array)>, CommandError> {
        let name = request.name.as_str();
        if name == EXPECTED {
            let groups = 0..call.oracle.groups.len();
            return Ok(groups.map(|g| (Some(g), expected(call, g))).collect());
        }
        let kept = call.kept.bytes(name).map_err(|e| scratch_lost(&e))?;
        if kept.is_empty() {
            let why = call.kept.missing.as_deref();
            return Err(CommandError::could_not_run(
                format!(
                    "`{name}` cannot be dumped: {}",
                    why.unwrap_or("the call has no bytes of it")
                ),
                match why {
                    Some(_) => {
                        "a call that took its device along leaves nothing; --backend emu does"
                    }
                    None => "leave it out of --dump",
                },
            ));
        }
        let arrays = kept.into_iter().map(|(group, bytes)| {
            let own = group.map(|g| &call.operands.groups[g].group);
            let (kind, shape) = layout(&call.operands.operator, name, own, bytes.len());
            let (kind, shape) = match request.kind {
                Some(asked) if asked != kind => (asked, vec![bytes.len() / asked.bytes()]),
                _ => (kind, shape),
            };
            if bytes.len() % kind.bytes() != 0 {
                return Err(divided(name, bytes.len(), kind));
            }
            let data = bytes;
            Ok((group, Array { kind, shape, data }))
        });
        arrays.collect()
    }
}

fn divided(name: &str, bytes: usize, kind: Element) -> CommandError {
    CommandError::usage(
        format!(
            "`{name}` has {bytes} bytes, which numbers of {} each do not fill",
            kind.bytes()
        ),
        format!("--dump {name}:u8 takes them one by one"),
    )
}

/// The expected result of exactly this call.
fn expected(call: &CapturedCall, group: usize) -> Array {
    let answer = &call.oracle.groups[group];
    let value = |index: usize| answer.c(index) as f32;
    Array {
        kind: Element::F32,
        shape: vec![answer.rows, answer.columns],
        data: (0..answer.rows * answer.columns)
            .flat_map(|i| value(i).to_le_bytes())
            .collect(),
    }
}

/// The layout of a buffer, if its name gives it; otherwise bytes.
fn layout(
    operator: &Operator,
    name: &str,
    group: Option<&Group>,
    bytes: usize,
) -> (Element, Vec<usize>) {
    let known = || {
        let fields = operator.fields();
        let field = fields.iter().find(|field| field.name == name)?;
        let lies = operator.rows(field, group?)?;
        let kind = match field.form {
            fields::PointedPart::Elements | fields::PointedPart::Output => {
                Element::of(operator.tensor(field).element)
            }
            _ => Element::U8,
        };
        let shape = vec![lies.rows as usize, lies.row_bytes as usize / kind.bytes()];
        Some((kind, shape))
    };
    // A scratch buffer may have the name of a field.
    known()
        .filter(|(kind, shape)| shape.iter().product::<usize>() * kind.bytes() == bytes)
        .unwrap_or((Element::U8, vec![bytes]))
}

/// A type of numbers: its name, and NumPy's, which ends with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Element(&'static str, &'static str);

impl Element {
    const U8: Self = Self("u8", "|u1");
    const F16: Self = Self("f16", "<f2");
    const F32: Self = Self("f32", "<f4");
    const ALL: [Self; 8] = [
        Self::U8,
        Self("u16", "<u2"),
        Self("u32", "<u4"),
        Self("i32", "<i4"),
        Self("u64", "<u8"),
        Self::F16,
        Self::F32,
        Self("f64", "<f8"),
    ];

    /// NumPy's type for it; an integer of the same bits if NumPy has none.
    fn of(element: ElementType) -> Self {
        match element {
            ElementType::F64 => Self("f64", "<f8"),
            ElementType::F32 => Self::F32,
            ElementType::F16 => Self::F16,
            ElementType::Bf16 => Self("u16", "<u2"),
            ElementType::I32 => Self("i32", "<i4"),
            _ => Self::U8,
        }
    }

    fn bytes(self) -> usize {
        usize::from(self.1.as_bytes()[2] - b'0')
    }

    fn word(self, bytes: &[u8]) -> String {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(word);
        match self.0 {
            "u8" => format!("{bits:02x}"),
            "i32" => (bits as u32 as i32).to_string(),
            "f16" => f16::from_bits(bits as u16).to_string(),
            "f32" => f32::from_bits(bits as u32).to_string(),
            "f64" => f64::from_bits(bits).to_string(),
            _ => bits.to_string(),
        }
    }
}

impl FromStr for Element {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.0 == word);
        found.ok_or_else(|| {
            let all = Self::ALL.map(|kind| kind.0);
            format!("`{word}` is no type; write one of {}", all.join(", "))
        })
    }
}

/// Numbers in C order.
struct Array {
    kind: Element,
    shape: Vec<usize>,
    data: Vec<u8>,
}

/// Numbers per line of text, if there is no row.
const PER_LINE: usize = 16;

impl Array {
    fn npy(&self) -> Vec<u8> {
        npy(self.kind.1, &self.shape, &self.data)
    }

    /// One row per line, after its number.
    fn text(&self) -> String {
        let (per_line, what) = match self.shape.as_slice() {
            [_, columns] => ((*columns).max(1), "row"),
            _ => (PER_LINE, "element"),
        };
        let step = match what {
            "row" => 1,
            _ => PER_LINE,
        };
        let mut text = String::new();
        let lines = self.data.chunks(per_line * self.kind.bytes());
        for (number, line) in lines.enumerate() {
            let words: Vec<String> = line
                .chunks_exact(self.kind.bytes())
                .map(|bytes| self.kind.word(bytes))
                .collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{what} {}: {}", number * step, words.join(" "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::operator::default_operator;
    use dgx_core::record::synthetic::group;

    #[test]
    fn a_request_names_a_buffer_and_perhaps_a_type() {
        let parse = |word: &str| word.parse::<DumpItem>();
        assert_eq!(parse("c").unwrap().kind, None);
        assert_eq!(parse("half_a:f16").unwrap().kind, Some(Element::F16));
        assert!(parse("x:f8").unwrap_err().contains("`f8` is no type"));
        assert!(parse(":f16").is_err());
    }

    #[test]
    fn text_has_a_line_for_each_row() {
        let array = |kind, shape: &[usize], data: &[u8]| Array {
            kind,
            shape: shape.to_vec(),
            data: data.to_vec(),
        };
        let halves = [0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38, 0x5a, 0x7e];
        let text = array(Element::F16, &[2, 2], &halves).text();
        assert_eq!(text, "row 0: 1 -2\nrow 1: 0.5 NaN\n");
        let bytes: Vec<u8> = (0..18).collect();
        let text = array(Element::U8, &[18], &bytes).text();
        assert!(text.ends_with("element 16: 10 11\n"), "{text}");
    }

    #[test]
    fn a_buffer_of_another_size_is_just_bytes() {
        let group = group(2, 8, 32);
        let layout = |name: &str, bytes| layout(default_operator(), name, Some(&group), bytes);
        assert_eq!(layout("c", 32), (Element::F16, vec![2, 8]));
        assert_eq!(layout("b1", 8 * 16), (Element::U8, vec![8, 16]));
        assert_eq!(layout("sfa", 4), (Element::U8, vec![2, 2]));
        assert_eq!(layout("c", 33), (Element::U8, vec![33]));
        assert_eq!(layout("half_a", 7), (Element::U8, vec![7]));
    }
}
