//! The names that a front matter defines: parameters, tuned choices, constants and values of each
//! group. A name replaces the same name of an extended variant, of whatever kind.

use std::collections::{BTreeMap, BTreeSet};

use super::front_matter::{MAX_ENTRIES, Reader, is_identifier};
use super::variant::{Definition, MAKESPAN, combinations};
use super::wire::FrontMatter;
use dgx_core::diagnostic::InputError;
use dgx_core::document::{Spanned, Table, Value};
use dgx_core::domain::ContenderId;
use dgx_core::domain::bounds;

/// More contenders from one file than any user wants to run.
const MAX_COMBINATIONS: usize = 256;

type Choices = BTreeMap<String, Vec<i64>>;

/// The names that a variant's expressions may use.
pub(super) struct DefinedNames {
    pub(super) params: Choices,
    /// The tuned constants.
    pub(super) choose: Choices,
    /// In the order in which they become known.
    pub(super) definitions: Vec<Definition>,
}

impl Reader<'_> {
    pub(super) fn definitions(
        &mut self,
        wire: &mut FrontMatter,
    ) -> Result<DefinedNames, InputError> {
        let own = self.own_names(wire)?;
        let parent = self.parent.clone();
        let parent = parent.as_deref();
        let inherited = |choices: &Choices| -> Choices {
            let kept = choices.iter().filter(|(name, _)| !own.contains(*name));
            kept.map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let place = wire.params.keys().next().map_or(0..0, Spanned::span);
        let params = parent.map_or_else(Choices::new, |p| inherited(&p.params));
        let params = self.choices(params, std::mem::take(&mut wire.params))?;
        for chosen in combinations(&params) {
            let id = ContenderId::new(self.name, &chosen);
            bounds::name("contender", id.as_str()).map_err(|why| {
                let remedy = "shorten the variant's name, or those of its parameters";
                self.document.error(place.clone(), why, remedy)
            })?;
        }
        let choose = match (&mut wire.tune, parent.and_then(|p| p.tune.as_ref())) {
            (Some(tune), _) => self.choices(Choices::new(), std::mem::take(&mut tune.choose))?,
            (None, Some(tune)) => inherited(&tune.choose),
            (None, None) => Choices::new(),
        };
        self.names
            .extend(params.keys().chain(choose.keys()).cloned());

        let inherited = parent.map_or(&[][..], |p| &p.definitions);
        let constants = std::mem::take(&mut wire.constants);
        let lets = std::mem::take(&mut wire.lets);
        let mut all = self.laid_over(constants, false, inherited, &own)?;
        all.extend(self.laid_over(lets, true, inherited, &own)?);
        if all.len() > MAX_ENTRIES {
            return Err(self.document.error(
                0..0,
                format!("{} constants and lets, {MAX_ENTRIES} at most", all.len()),
                "remove some, here or in the extended variant",
            ));
        }
        let tiles = wire.tiles.is_some() || parent.is_some_and(|p| p.tiles.is_some());
        Ok(DefinedNames {
            params,
            choose,
            definitions: self.in_order(all, tiles)?,
        })
    }

    /// Every name defined here, each once.
    fn own_names(&self, wire: &FrontMatter) -> Result<BTreeSet<String>, InputError> {
        let mut own = BTreeSet::new();
        let choose = wire.tune.iter().flat_map(|tune| tune.choose.keys());
        let values = wire.constants.keys().chain(wire.lets.keys());
        for key in wire.params.keys().chain(choose).chain(values) {
            self.check_name(key)?;
            if !own.insert(key.get_ref().clone()) {
                let message = format!("`{}` is defined twice", key.get_ref());
                let error = self
                    .document
                    .error(key.span(), message, "remove one of them");
                return Err(error);
            }
        }
        Ok(own)
    }

    /// Refuses an unsuitable new name.
    fn check_name(&self, key: &Spanned<String>) -> Result<(), InputError> {
        let name = key.get_ref();
        let error =
            |message: String, remedy: &str| Err(self.document.error(key.span(), message, remedy));
        if !is_identifier(name) {
            return error(
                format!("`{name}` cannot be a C macro"),
                "use letters, digits and underscores",
            );
        }
        let reserved = self.is_of_shape(name)
            || name == MAKESPAN
            || name == "MAPS"
            || name.starts_with("MAP_")
            || name.starts_with("SCRATCH_");
        match reserved {
            true => error(
                format!("`{name}` already has a meaning"),
                "choose another name; capitals are usual for constants",
            ),
            false => Ok(()),
        }
    }

    /// `params`, and the choices of `tune`: lists of values, besides the inherited ones.
    fn choices(
        &self,
        mut choices: Choices,
        table: Table<Spanned<Vec<i64>>>,
    ) -> Result<Choices, InputError> {
        let mut combinations = choices.values().map(Vec::len).product::<usize>();
        for (key, values) in table {
            let list = values.get_ref();
            let distinct: BTreeSet<&i64> = list.iter().collect();
            if list.is_empty() || distinct.len() < list.len() {
                return Err(self.document.error(
                    values.span(),
                    format!("`{}` needs one or more different values", key.get_ref()),
                    "list each value once",
                ));
            }
            combinations = combinations.saturating_mul(list.len());
            if combinations > MAX_COMBINATIONS {
                return Err(self.document.error(
                    values.span(),
                    format!("more than {MAX_COMBINATIONS} combinations"),
                    "list fewer values",
                ));
            }
            choices.insert(key.into_inner(), values.into_inner());
        }
        Ok(choices)
    }

    /// A table's formulas in the order written, on top of inherited ones of its kind: each replaces
    /// the one of its name, new ones come last. Names in them are not checked yet.
    fn laid_over(
        &self,
        table: Table<Spanned<Value>>,
        per_group: bool,
        inherited: &[Definition],
        own: &BTreeSet<String>,
    ) -> Result<Vec<Definition>, InputError> {
        let mut written: Vec<_> = table.into_iter().collect();
        written.sort_by_key(|(key, _)| key.span().start);
        let mut new = Vec::with_capacity(written.len());
        for (key, value) in written {
            new.push(Definition {
                formula: self.parsed(value.get_ref(), value.span())?,
                name: key.into_inner(),
                per_group,
            });
        }
        let mut all = Vec::new();
        for old in inherited.iter().filter(|old| old.per_group == per_group) {
            match new.iter().position(|new| new.name == old.name) {
                Some(at) => all.push(new.remove(at)),
                None if own.contains(&old.name) => {}
                None => all.push(old.clone()),
            }
        }
        all.extend(new);
        Ok(all)
    }

    /// Orders definitions so that each comes after all that it names.
    fn in_order(
        &mut self,
        mut waiting: Vec<Definition>,
        tiles: bool,
    ) -> Result<Vec<Definition>, InputError> {
        self.later = waiting.iter().map(|d| d.name.clone()).collect();
        // Tiles are counted once all definitions are known.
        self.later.extend(tiles.then(|| "tiles".to_owned()));
        for Definition { formula, .. } in &waiting {
            self.checked_for(formula, |n| self.knows(n) || self.later.contains(n))?;
        }
        let mut definitions = Vec::with_capacity(waiting.len());
        let ready = |reader: &Self, definition: &Definition| {
            let names = definition.formula.expr.names();
            names.iter().all(|(name, _)| reader.knows(name))
        };
        while let Some(at) = waiting.iter().position(|next| ready(self, next)) {
            let next = waiting.remove(at);
            self.later.remove(&next.name);
            self.names.insert(next.name.clone());
            if next.per_group {
                self.lets.insert(next.name.clone());
            }
            definitions.push(next);
        }
        // Others may only wait for one that names something that is never known here.
        let hopeless = |d: &&Definition| d.formula.expr.names().iter().any(|(n, _)| *n == "tiles");
        match waiting.iter().find(hopeless).or(waiting.first()) {
            Some(stuck) => self.checked(&stuck.formula).map(|()| definitions),
            None => Ok(definitions),
        }
    }
}
