//! `extend`: front matter on top of another variant's. The settings of the host are inherited
//! unless they are given again; the description of the design (summary, round, claim, expectation)
//! is not inherited.

use std::sync::Arc;

use super::Lookup;
use super::front_matter::Reader;
use super::variant::{Launch, Scratch, TensorMap, Variant};
use super::wire::FrontMatter;
use dgx_core::diagnostic::InputError;
use dgx_core::document::{Formula, Spanned, Value};

/// More than any reader would follow.
const MOST_GENERATIONS: usize = 8;

impl Reader<'_> {
    /// The variant that this one extends.
    pub(super) fn extended(&self, wire: &FrontMatter) -> Result<Option<Arc<Variant>>, InputError> {
        let Some(extend) = &wire.extend else {
            return Ok(None);
        };
        let parent = extend.get_ref();
        let error = |message: String, remedy: &str| {
            Err(self.document.error(extend.span(), message, remedy))
        };
        if !wire.pick.is_empty() {
            // Reported with its reason where picks are read.
            return Ok(None);
        }
        let mut heirs = self.lookup.heirs.clone();
        heirs.push(self.name.to_owned());
        if let Some(at) = heirs.iter().position(|heir| heir == parent) {
            let circle = [&heirs[at..], std::slice::from_ref(parent)].concat();
            return error(
                format!("variants extend each other: {}", circle.join(" → ")),
                "let one of them stand on its own",
            );
        }
        if heirs.len() > MOST_GENERATIONS {
            let message = format!("more than {MOST_GENERATIONS} variants extend one another");
            return error(message, "extend a variant that extends none");
        }
        if let Err(missing) = self.catalog.knows(parent) {
            let (message, remedy) = missing.explain();
            return error(message, &remedy);
        }
        // From a source for the same chip: the host's part differs by chip.
        let lookup = Lookup {
            heirs,
            beside: self.lookup.beside.clone(),
            ..Lookup::default()
        };
        let found = self.catalog.read(parent, &lookup);
        let found = found.map_err(|why| self.inherited_mistake(why))?;
        if found.language != self.language {
            let message = format!("`{parent}` is written in another language");
            return error(message, "extend one in the same");
        }
        if !found.picks.is_empty() {
            let message = format!("`{parent}` picks others, and has nothing to extend");
            return error(message, "extend one of those it picks");
        }
        Ok(Some(found))
    }

    /// A mistake in another file, with its relation to this one.
    fn inherited_mistake(&self, why: InputError) -> InputError {
        why.noting(&format!("`{}` extends it", self.name))
    }

    /// Checks that every name in an inherited formula still has a meaning.
    pub(super) fn checked(&self, formula: &Formula) -> Result<(), InputError> {
        self.checked_for(formula, |name| self.knows(name))
    }

    pub(super) fn checked_for(
        &self,
        formula: &Formula,
        known: impl Fn(&str) -> bool,
    ) -> Result<(), InputError> {
        let own = formula.file == *self.file;
        self.check_names(formula, known).map_err(|why| match own {
            true => why,
            false => self.inherited_mistake(why),
        })
    }

    pub(super) fn inherit(&self, formula: &Formula) -> Result<Formula, InputError> {
        self.checked(formula).map(|()| formula.clone())
    }

    pub(super) fn inherit_all(&self, formulas: &[Formula]) -> Result<Vec<Formula>, InputError> {
        formulas
            .iter()
            .map(|formula| self.inherit(formula))
            .collect()
    }

    /// The value written here, else the inherited one.
    pub(super) fn either(
        &self,
        own: Option<&Spanned<Value>>,
        inherited: Option<&Formula>,
    ) -> Result<Option<Formula>, InputError> {
        match (own, inherited) {
            (Some(value), _) => self.formula(value).map(Some),
            (None, Some(formula)) => self.inherit(formula).map(Some),
            (None, None) => Ok(None),
        }
    }

    pub(super) fn inherited_scratch(&self) -> Result<Vec<Scratch>, InputError> {
        let inherited = self.parent.iter().flat_map(|parent| &parent.scratch);
        inherited
            .map(|scratch| {
                self.checked(&scratch.bytes)?;
                Ok(scratch.clone())
            })
            .collect()
    }

    pub(super) fn inherited_maps(&self) -> Result<Vec<TensorMap>, InputError> {
        let inherited = self.parent.iter().flat_map(|parent| &parent.maps);
        inherited
            .map(|map| {
                let mut formulas = map.dims.iter().chain(&map.strides).chain(&map.box_dims);
                formulas.try_for_each(|f| self.checked(f))?;
                Ok(map.clone())
            })
            .collect()
    }

    pub(super) fn inherited_launches(&self, list: &[Launch]) -> Result<Vec<Launch>, InputError> {
        let check = |launch: &Launch| {
            let extents = launch
                .grid
                .iter()
                .chain(&launch.block)
                .chain(&launch.cluster);
            let args = launch.args.iter().flat_map(|args| &args.list);
            let options = launch.options.iter().map(|(_, formula)| formula);
            let others = args.flat_map(|arg| arg.formulas()).chain(options);
            let mut formulas = extents.chain(&launch.smem).chain(others);
            formulas.try_for_each(|f| self.checked(f))?;
            Ok(launch.clone())
        };
        list.iter().map(check).collect()
    }
}
