//! PTX text around a body: header, parameters, registers and buffer pointers.

use crate::case::{Case, Compare, ENTRY, Launch, MapSpec};

/// Builds a case whose body is written by hand.
///
/// The body finds `%in0…`, `%out0…` as global addresses (`.b64`), `%thread` as the
/// thread index in x, and scratch registers `%h<32>` (16 bit), `%r<128>` (32 bit),
/// `%l<64>` (64 bit) and `%p<16>` (predicates). Tensor maps are `map0…`, to be
/// addressed by `mov.b64 %l0, map0;`.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    name: String,
    forms: Vec<String>,
    target: &'static str,
    module: String,
    attributes: String,
    declarations: String,
    body: String,
    launch: Launch,
    inputs: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
    maps: Vec<MapSpec>,
    compare: Compare,
}

/// What unwritten output bytes hold, so that a store that should not happen shows.
pub(crate) const UNWRITTEN: u8 = 0xcd;

impl Kernel {
    /// A kernel covering the form before the first `/` of `name`.
    pub(crate) fn new(name: impl Into<String>, launch: Launch) -> Self {
        let name = name.into();
        let form = name.split('/').next().unwrap_or_default().to_owned();
        Self {
            name,
            forms: vec![form],
            target: "sm_90a",
            module: String::new(),
            attributes: String::new(),
            declarations: String::new(),
            body: String::new(),
            launch,
            inputs: Vec::new(),
            outputs: Vec::new(),
            maps: Vec::new(),
            compare: Compare::Exact,
        }
    }

    /// Replaces the target, which is Hopper.
    pub(crate) fn target(mut self, target: &'static str) -> Self {
        self.target = target;
        self
    }

    /// Replaces the covered forms.
    pub(crate) fn forms<S: Into<String>>(mut self, forms: impl IntoIterator<Item = S>) -> Self {
        self.forms = forms.into_iter().map(Into::into).collect();
        self
    }

    /// Text between the header and the entry: variables and functions.
    pub(crate) fn module(mut self, text: &str) -> Self {
        self.module = text.to_owned();
        self
    }

    /// Performance or cluster directives after the parameter list.
    pub(crate) fn attributes(mut self, text: &str) -> Self {
        self.attributes = text.to_owned();
        self
    }

    /// Further registers and shared variables.
    pub(crate) fn declare(mut self, text: &str) -> Self {
        self.declarations.push_str(text);
        self.declarations.push('\n');
        self
    }

    /// An input buffer.
    pub(crate) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.inputs.push(bytes);
        self
    }

    /// An output buffer of `length` bytes that begins as [`UNWRITTEN`].
    pub(crate) fn output(self, length: usize) -> Self {
        self.output_from(vec![UNWRITTEN; length])
    }

    /// An output buffer with given initial bytes.
    pub(crate) fn output_from(mut self, bytes: Vec<u8>) -> Self {
        self.outputs.push(bytes);
        self
    }

    /// A tensor map.
    pub(crate) fn map(mut self, map: MapSpec) -> Self {
        self.maps.push(map);
        self
    }

    /// How outputs are compared.
    pub(crate) fn compare(mut self, compare: Compare) -> Self {
        self.compare = compare;
        self
    }

    /// Appends to the body.
    pub(crate) fn body(mut self, text: &str) -> Self {
        self.body.push_str(text);
        self.body.push('\n');
        self
    }

    /// The finished case.
    pub(crate) fn case(self) -> Case {
        let ptx = self.text();
        Case {
            name: self.name,
            forms: self.forms,
            ptx,
            launch: self.launch,
            inputs: self.inputs,
            outputs: self.outputs,
            maps: self.maps,
            compare: self.compare,
        }
    }

    fn text(&self) -> String {
        let names: Vec<String> = (0..self.inputs.len())
            .map(|i| format!("in{i}"))
            .chain((0..self.outputs.len()).map(|i| format!("out{i}")))
            .collect();
        let params: Vec<String> = names
            .iter()
            .map(|name| format!("    .param .u64 p_{name}"))
            .chain((0..self.maps.len()).map(|i| format!("    .param .align 64 .b8 map{i}[128]")))
            .collect();
        let pointers: String = names
            .iter()
            .map(|name| {
                format!(
                    ".reg .b64 %{name};\nld.param.u64 %{name}, [p_{name}];\ncvta.to.global.u64 %{name}, %{name};\n"
                )
            })
            .collect();
        format!(
            ".version 9.0\n.target {target}\n.address_size 64\n{module}\n.visible .entry {ENTRY}(\n{params}\n)\n{attributes}\n{{\n\
             .reg .b16 %h<32>;\n.reg .b32 %r<128>;\n.reg .b64 %l<64>;\n.reg .pred %p<16>;\n\
             .reg .b32 %thread;\nmov.u32 %thread, %tid.x;\n{declarations}{pointers}{body}ret;\n}}\n",
            target = self.target,
            module = self.module,
            params = params.join(",\n"),
            attributes = self.attributes,
            declarations = self.declarations,
            body = self.body,
        )
    }
}
