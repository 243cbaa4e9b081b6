//! Turns shapes as written into shapes as run: broadcasts lists, expands grids, and checks every
//! extent against the limits of the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::GUIDE;
use super::wire::{self, Extents};
use crate::diagnostic::{InputError, nearest};
use crate::document::{Document, Spanned, Table};
use crate::domain::bounds::{self, GROUPS};
use crate::domain::{Group, Joined, Shape};
use crate::operator::{Operator, Requirement};

const MAX_EXTENT: i64 = bounds::EXTENT as i64;
const MAX_SHAPES: usize = 1024;

/// Every shape of the file with its place there.
pub(super) fn read(
    document: &Document<'_>,
    operator: &Operator,
    shapes: &[Spanned<wire::Shape>],
    grids: &[Spanned<wire::Grid>],
) -> Result<Vec<(Shape, Range<usize>)>, InputError> {
    let reader = Reader { document, operator };
    let mut list = Vec::new();
    for shape in shapes {
        list.push((reader.shape(shape)?, shape.span()));
    }
    for grid in grids {
        for shape in reader.grid(grid)? {
            list.push((shape, grid.span()));
        }
    }
    if list.is_empty() {
        return Err(document.error(
            0..0,
            "the round has no shapes",
            format!(
                "add [[shapes]] with {}, or a [[grid]]",
                listed(&operator.sizes)
            ),
        ));
    }
    if list.len() > MAX_SHAPES {
        let span = list[MAX_SHAPES].1.clone();
        let message = format!("more than {MAX_SHAPES} shapes");
        return Err(document.error(span, message, "shorten the grid's lists"));
    }
    let mut seen = BTreeSet::new();
    for (shape, span) in &list {
        if !seen.insert(shape.name.as_str()) {
            return Err(document.error(
                span.clone(),
                format!("a second shape named `{}`", shape.name),
                "give it a name of its own",
            ));
        }
    }
    Ok(list)
}

struct Reader<'a> {
    document: &'a Document<'a>,
    operator: &'a Operator,
}

impl Reader<'_> {
    fn shape(&self, shape: &Spanned<wire::Shape>) -> Result<Shape, InputError> {
        let span = shape.span();
        let wire::Shape {
            name,
            groups,
            sizes,
        } = shape.get_ref();
        self.known(sizes.keys(), &["name", "groups"])?;
        let all = self
            .operator
            .sizes
            .iter()
            .all(|size| sizes.contains_key(size.as_str()));
        let (groups, dense) = match groups {
            Some(groups) if sizes.is_empty() => (self.explicit(groups)?, false),
            None if all => self.broadcast(sizes)?,
            _ => return Err(self.incomplete_grid(sizes, span)),
        };
        if groups.len() > 1 && !self.operator.groups {
            let message = format!("`{}` takes one problem a call", self.operator.name);
            let remedy =
                "give each problem a shape of its own, or add groups = true to the operator";
            return Err(self.document.error(span, message, remedy));
        }
        let name = match name {
            Some(name) => self.name(name)?,
            None if dense => groups[0].to_string(),
            None => {
                return Err(self.document.error(
                    span,
                    "a grouped shape has no name",
                    "add name = \"…\": tables need something short to print",
                ));
            }
        };
        Ok(Shape { name, groups })
    }

    /// A shape with `groups` and sizes, or with only some sizes.
    fn incomplete_grid(&self, given: &wire::Grid, span: Range<usize>) -> InputError {
        let sizes = || self.operator.sizes.iter();
        let quoted = |sizes: Vec<&String>| {
            let quoted: Vec<String> = sizes.into_iter().map(|s| format!("`{s}`")).collect();
            listed(&quoted)
        };
        let absent: Vec<&String> = sizes()
            .filter(|s| !given.contains_key(s.as_str()))
            .collect();
        let all = sizes().count();
        let message = match absent.len() {
            lacking if (1..all).contains(&lacking) => {
                let verb = if lacking == 1 { "is" } else { "are" };
                format!("{} {verb} missing", quoted(absent))
            }
            _ => format!(
                "a shape has either `groups`, or all of {}",
                quoted(sizes().collect())
            ),
        };
        let names = self.operator.sizes.iter().cloned();
        let small = self.operator.small[0].iter().map(|size| *size as u32);
        let example = Group::new(names.zip(small)).to_toml();
        self.document
            .error(span, message, format!("e.g. {example}"))
    }

    /// Whether these are sizes of the operator.
    fn known<'k>(
        &self,
        mut keys: impl Iterator<Item = &'k Spanned<String>>,
        others: &[&str],
    ) -> Result<(), InputError> {
        let sizes = &self.operator.sizes;
        if let Some(key) = keys.find(|key| !sizes.contains(key.get_ref())) {
            let known = || {
                others
                    .iter()
                    .copied()
                    .chain(sizes.iter().map(String::as_str))
            };
            // Very short names are all similar to each other.
            let close = nearest(key.get_ref(), known()).filter(|close| close.len() > 2);
            let remedy = match close {
                Some(close) => format!("did you mean `{close}`? ({GUIDE})"),
                None => format!("use one of {}; {GUIDE}", known().joined(", ")),
            };
            let message = format!("unknown key `{}`", key.get_ref().escape_debug());
            return Err(self.document.error(key.span(), message, remedy));
        }
        Ok(())
    }

    fn name(&self, name: &Spanned<String>) -> Result<String, InputError> {
        bounds::name("shape", name.get_ref()).map_err(|why| {
            self.document
                .error(name.span(), why, "give it a shorter name")
        })?;
        match super::is_plain(name.get_ref()) {
            true => Ok(name.get_ref().clone()),
            false => Err(self.document.error(
                name.span(),
                format!(
                    "`{}` cannot be a shape's name",
                    name.get_ref().escape_debug()
                ),
                "use letters, digits, - _ and .",
            )),
        }
    }

    fn explicit(
        &self,
        groups: &Spanned<Vec<Spanned<wire::Group>>>,
    ) -> Result<Vec<Group>, InputError> {
        self.count(groups.get_ref().len(), groups.span())?;
        let one = |group: &Spanned<wire::Group>| {
            self.known(group.get_ref().keys(), &[])?;
            self.group(|name| {
                let size = self.given(group.get_ref(), name, group.span())?;
                Ok((*size.get_ref(), size.span()))
            })
        };
        groups.get_ref().iter().map(one).collect()
    }

    /// The size of that name in a table that must have it.
    fn given<'t, T>(
        &self,
        table: &'t Table<Spanned<T>>,
        name: &str,
        span: Range<usize>,
    ) -> Result<&'t Spanned<T>, InputError> {
        table.get(name).ok_or_else(|| {
            let message = format!("the key `{name}` is missing");
            let remedy = format!("add `{name} = …`; {GUIDE}");
            self.document.error(span, message, remedy)
        })
    }

    /// Lists of equal length make groups; a single number applies to all of them.
    fn broadcast(&self, sizes: &wire::Grid) -> Result<(Vec<Group>, bool), InputError> {
        let mut count: Option<(&str, usize)> = None;
        for name in &self.operator.sizes {
            let extents = &sizes[name.as_str()];
            if let Extents::Many(list) = extents.get_ref() {
                self.count(list.len(), extents.span())?;
                if let Some((other, other_len)) = count.filter(|(_, len)| *len != list.len()) {
                    let own = match list.len() {
                        1 => "1 entry".to_owned(),
                        len => format!("{len} entries"),
                    };
                    return Err(self.document.error(
                        extents.span(),
                        format!("`{name}` has {own} and `{other}` has {other_len}"),
                        "lists of a grouped shape have one entry per group",
                    ));
                }
                count = Some((name, list.len()));
            }
        }
        let groups = (0..count.map_or(1, |(_, len)| len))
            .map(|i| self.group(|name| Ok(entry(&sizes[name], i))))
            .collect::<Result<_, _>>()?;
        Ok((groups, count.is_none()))
    }

    fn count(&self, count: usize, span: Range<usize>) -> Result<(), InputError> {
        if (1..=GROUPS).contains(&count) {
            return Ok(());
        }
        Err(self.document.error(
            span,
            format!("a shape of {count} groups"),
            format!("give between 1 and {GROUPS}"),
        ))
    }

    /// Every combination of a grid's sizes; the last size changes fastest.
    fn grid(&self, grid: &Spanned<wire::Grid>) -> Result<Vec<Shape>, InputError> {
        self.known(grid.get_ref().keys(), &[])?;
        let lists = self.operator.sizes.iter().map(|name| {
            let extents = self.given(grid.get_ref(), name, grid.span())?;
            Ok((name.as_str(), all(extents)))
        });
        let lists: Vec<(&str, Vec<Extent>)> = lists.collect::<Result<_, InputError>>()?;
        let count = lists
            .iter()
            .fold(1_usize, |count, (_, list)| count.saturating_mul(list.len()));
        let mut shapes = Vec::new();
        for mut place in 0..count.min(MAX_SHAPES + 1) {
            let mut chosen: BTreeMap<&str, &Extent> = BTreeMap::new();
            for (name, list) in lists.iter().rev() {
                chosen.insert(name, &list[place % list.len()]);
                place /= list.len();
            }
            let group = self.group(|name| Ok(chosen[name].clone()))?;
            shapes.push(Shape {
                name: group.to_string(),
                groups: vec![group],
            });
        }
        Ok(shapes)
    }

    /// A group whose sizes are given one by one, checked against the operator's requirements.
    fn group(
        &self,
        given: impl Fn(&str) -> Result<Extent, InputError>,
    ) -> Result<Group, InputError> {
        let names = self.operator.sizes.iter();
        let given: Vec<Extent> = names.map(|name| given(name)).collect::<Result<_, _>>()?;
        let named = || self.operator.sizes.iter().zip(&given);
        for (name, extent) in named() {
            self.extent(name, extent)?;
        }
        let sizes: Vec<u64> = given.iter().map(|(value, _)| *value as u64).collect();
        match self.operator.unmet(&sizes) {
            Some(unmet) => Err(self.unmet(unmet, &given)),
            None => Ok(Group::new(
                named().map(|(name, (value, _))| (name.clone(), *value as u32)),
            )),
        }
    }

    fn extent(&self, name: &str, (value, span): &Extent) -> Result<(), InputError> {
        let error = |message: String, remedy: String| {
            Err(self.document.error(span.clone(), message, remedy))
        };
        if *value < 1 {
            let message = format!("{name} = {value}: sizes start at 1");
            return error(message, format!("give a positive {name}"));
        }
        if *value > MAX_EXTENT {
            let message = format!("{name} = {value} is beyond any memory");
            return error(message, format!("give at most {MAX_EXTENT}"));
        }
        Ok(())
    }

    /// The error for sizes that do not meet a requirement, at the first size it names.
    fn unmet(&self, unmet: &Requirement, given: &[Extent]) -> InputError {
        if let Some((size, of)) = unmet.condition.multiple() {
            let (value, span) = &given[size];
            let name = &self.operator.sizes[size];
            let message = format!("{name} = {value} is not a multiple of {of}");
            let (below, above) = (value / of * of, (value / of + 1) * of);
            let remedy = match below {
                0 => format!("the operator is defined for multiples of {of}: take {above}"),
                _ => format!("the operator is defined for multiples of {of}: {below} or {above}"),
            };
            return self.document.error(span.clone(), message, remedy);
        }
        let first = unmet.condition.first_size().unwrap_or(0);
        let sizes = self.operator.sizes.iter().zip(given);
        let sizes = sizes
            .map(|(name, (value, _))| format!("{name} = {value}"))
            .joined(", ");
        let message = format!("{} does not meet `{}`", sizes, unmet.text);
        let remedy = format!("operators/{}.toml requires it", self.operator.name);
        self.document.error(given[first].1.clone(), message, remedy)
    }
}

type Extent = (i64, Range<usize>);

fn entry(extents: &Spanned<Extents>, index: usize) -> Extent {
    match extents.get_ref() {
        Extents::One(value) => (*value, extents.span()),
        Extents::Many(list) => (*list[index].get_ref(), list[index].span()),
    }
}

fn all(extents: &Spanned<Extents>) -> Vec<Extent> {
    match extents.get_ref() {
        Extents::One(value) => vec![(*value, extents.span())],
        Extents::Many(list) => list.iter().map(|v| (*v.get_ref(), v.span())).collect(),
    }
}

/// `rows, columns and depth`.
fn listed(names: &[String]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
