//! `[[pick]]`: a variant that dispatches to others, each for the shapes it suits.

use super::Lookup;
use super::front_matter::Reader;
use super::variant::{MINIMUM, Pick, Term, Variant};
use super::wire::{self, FrontMatter};
use dgx_core::config::Selection;
use dgx_core::diagnostic::InputError;
use dgx_core::domain::bounds::TERMS;

impl Reader<'_> {
    pub(super) fn picks(&self, wire: &FrontMatter) -> Result<Vec<Pick>, InputError> {
        let Some(first) = wire.pick.first() else {
            return Ok(Vec::new());
        };
        let own = !wire.params.is_empty()
            || wire.extend.is_some()
            || !wire.constants.is_empty()
            || !wire.lets.is_empty()
            || wire.requires.is_some()
            || !wire.scratch.is_empty()
            || !wire.map.is_empty()
            || !wire.launch.is_empty()
            || wire.tune.is_some()
            || wire.tiles.is_some()
            || wire.order.is_some()
            || wire.deal.is_some();
        if own {
            return Err(self.document.error(
                first.contender.span(),
                "a variant that picks others has no constants, buffers or launches of its own",
                "keep [[pick]] and drop the rest, or the other way round",
            ));
        }
        let costly = wire.pick.iter().filter(|pick| !pick.cost.is_empty());
        if ![0, wire.pick.len()].contains(&costly.count()) {
            let free = wire.pick.iter().find(|pick| pick.cost.is_empty());
            return Err(self.document.error(
                free.map_or(0..0, |pick| pick.contender.span()),
                "a pick without `cost` among others that have one",
                "give every pick a cost, or none: then the first that applies is taken",
            ));
        }
        wire.pick.iter().map(|pick| self.pick(pick)).collect()
    }

    /// The cost of calling `variant`, in terms of its names.
    fn cost(&self, terms: &[wire::Term], variant: &Variant) -> Result<Vec<Term>, InputError> {
        if let Some(extra) = terms.get(TERMS) {
            let message = format!("a cost of {} terms, {TERMS} at most", terms.len());
            let remedy = "add up what has the same coefficient";
            return Err(self.document.error(extra.ns.span(), message, remedy));
        }
        let known = |name: &str| match name {
            "tiles" => variant.tiles.is_some(),
            MINIMUM => variant.tune.is_some(),
            _ => {
                let tuned = variant.tune.iter().flat_map(|tune| tune.choose.keys());
                let defined = variant.definitions.iter().map(|d| &d.name);
                let mut own = variant.params.keys().chain(tuned).chain(defined);
                self.is_of_shape(name) || own.any(|own| own == name)
            }
        };
        let term = |term: &wire::Term| {
            let nanos = *term.ns.get_ref();
            if !nanos.is_finite() || nanos < 0.0 {
                let remedy = "give 0 or more; `dgx dispatch --fit` finds it";
                let message = format!("{nanos} ns is no cost");
                return Err(self.document.error(term.ns.span(), message, remedy));
            }
            let of = self.parsed(term.of.get_ref(), term.of.span())?;
            self.check_names(&of, known)?;
            Ok(Term { nanos, of })
        };
        terms.iter().map(term).collect()
    }

    fn pick(&self, pick: &wire::Pick) -> Result<Pick, InputError> {
        let error = |message: String, remedy: &str| {
            self.document.error(pick.contender.span(), message, remedy)
        };
        let text = pick.contender.get_ref();
        if self.lookup.picked {
            let message = "a variant that is picked picks others itself".to_owned();
            return Err(error(message, "name those it picks in the first place"));
        }
        let place = self.document.place(pick.contender.span());
        let selection = Selection::parse(text, place)
            .map_err(|why| error(why, "write NAME or NAME:PARAM=1; see `dgx list`"))?;
        self.catalog.knows(&selection.variant).map_err(|missing| {
            let (message, remedy) = missing.explain();
            error(message, &remedy)
        })?;
        let lookup = Lookup {
            picked: true,
            chip: self.lookup.chip,
            beside: self.lookup.beside.clone(),
            ..Lookup::default()
        };
        let variant = self.catalog.read(&selection.variant, &lookup)?;
        if let Some((message, remedy)) = variant.refused(&selection.params) {
            return Err(error(message, &remedy));
        }
        let mut contenders = variant.contenders(&selection.params);
        match (contenders.pop(), contenders.is_empty()) {
            (Some(contender), true) => Ok(Pick {
                when: pick.when.as_ref().map(|w| self.formula(w)).transpose()?,
                cost: self.cost(&pick.cost, &contender.variant)?,
                contender,
            }),
            (Some(last), false) => Err(error(
                format!("`{text}` is {} contenders", contenders.len() + 1),
                &format!("fix its parameters: `{}`", last.id),
            )),
            (None, _) => Err(error(
                format!("`{text}` is not one of its parameter choices"),
                "its front matter lists their values",
            )),
        }
    }
}
