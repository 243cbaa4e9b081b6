//! `[[launch]]`: the kernels of a call, with their grids and arguments.

use super::Language;
use super::args::Buffers;
use super::front_matter::{Reader, is_identifier};
use super::variant::Launch;
use super::wire::{self, Extent};
use dgx_core::diagnostic::InputError;
use dgx_core::document::{Formula, Spanned};
use dgx_core::domain::printable_line;

/// Threads of a block of four warps, which is Triton's default.
const TRITON_THREADS: i64 = 128;
/// Letters of a template's instance.
const MAX_KERNEL: usize = 500;

impl Reader<'_> {
    pub(super) fn launches(
        &self,
        list: &[wire::Launch],
        buffers: Buffers<'_>,
    ) -> Result<Vec<Launch>, InputError> {
        match (list.is_empty(), &self.parent) {
            (true, Some(parent)) => self.inherited_launches(&parent.launches),
            (true, None) => Err(self.document.error(
                0..0,
                "no launch: the variant would do nothing",
                "add a [[launch]]",
            )),
            (false, _) if self.language == Language::Triton && list.len() > 1 => {
                Err(self.document.error(
                    list[1].kernel.span(),
                    "a Triton contender with two launches",
                    "make one kernel of them",
                ))
            }
            (false, _) => list.iter().map(|l| self.launch(l, buffers)).collect(),
        }
    }

    fn launch(&self, launch: &wire::Launch, buffers: Buffers<'_>) -> Result<Launch, InputError> {
        let kernel = launch.kernel.get_ref().trim();
        if !self.may_be_kernel(kernel) {
            return Err(self.document.error(
                launch.kernel.span(),
                format!("`{}` cannot be a kernel's name", printable_line(kernel)),
                "name a __global__ function of this file, or an instance as in gemm<128, float>",
            ));
        }
        let args = launch.args.as_ref().map(|args| self.args(args, buffers));
        let launch = Launch {
            kernel: kernel.to_owned(),
            grid: self.extent(&launch.grid)?,
            block: self.block(launch)?,
            cluster: match &launch.cluster {
                Some(cluster) => self.extent(cluster)?,
                None => Vec::new(),
            },
            smem: launch.smem.as_ref().map(|s| self.formula(s)).transpose()?,
            pdl: launch.pdl,
            args: args.transpose()?,
            options: self.options(launch)?,
            written: (
                self.file.clone(),
                self.document.place(launch.kernel.span()),
                (launch.args.as_ref()).map(|args| self.document.place(args.span())),
            ),
        };
        Ok(launch)
    }

    fn may_be_kernel(&self, name: &str) -> bool {
        let plain = |c: char| c.is_ascii_graphic() || c == ' ';
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':');
        match self.language {
            Language::Cuda => {
                first
                    && name.len() <= MAX_KERNEL
                    && name.chars().all(plain)
                    && !name.contains(['"', ';', '{', '}', '#', '\\'])
            }
            Language::Ptx => is_identifier(&name.replace('$', "_")),
            Language::Triton => is_identifier(name),
        }
    }

    fn block(&self, launch: &wire::Launch) -> Result<Vec<Formula>, InputError> {
        if let Some(block) = &launch.block {
            return self.extent(block);
        }
        let missing = || {
            let remedy = "say how many threads a block has: block = 128";
            let message = "the key `block` is missing";
            self.document.error(launch.kernel.span(), message, remedy)
        };
        match (self.language, launch.options.get("num_warps")) {
            (Language::Triton, None) => Ok(vec![self.document.number(TRITON_THREADS, 0..0)]),
            (Language::Triton, Some(warps)) => {
                let threads = format!("32 * ({})", warps.get_ref());
                let formula = self.document.formula(&threads, warps.span())?;
                self.check_names(&formula, |name| self.knows(name))?;
                Ok(vec![formula])
            }
            (Language::Cuda | Language::Ptx, _) => Err(missing()),
        }
    }

    fn options(&self, launch: &wire::Launch) -> Result<Vec<(String, Formula)>, InputError> {
        if self.language != Language::Triton {
            return match launch.options.keys().next() {
                None => Ok(Vec::new()),
                Some(key) => Err(self.document.error(
                    key.span(),
                    "`options` are for Triton's compiler",
                    "leave them out; constants reach the source as macros",
                )),
            };
        }
        if launch.args.is_none() {
            return Err(self.document.error(
                launch.kernel.span(),
                "a Triton kernel without `args`",
                "list what its parameters are given, but for those that are constexpr",
            ));
        }
        let options = launch.options.iter();
        options
            .map(|(name, value)| Ok((name.get_ref().clone(), self.formula(value)?)))
            .collect()
    }

    fn extent(&self, extent: &Spanned<Extent>) -> Result<Vec<Formula>, InputError> {
        match extent.get_ref() {
            Extent::One(value) => Ok(vec![self.formula_at(value, extent.span())?]),
            Extent::Many(list) if (1..=wire::AXES).contains(&list.len()) => self.formulas(list),
            Extent::Many(list) => Err(self.document.error(
                extent.span(),
                format!("{} dimensions where one to three are possible", list.len()),
                "give x, or x and y, or x, y and z",
            )),
        }
    }
}
