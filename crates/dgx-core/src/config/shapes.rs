//! Shapes as written become shapes as run: lists broadcast, grids multiplied
//! out, and every extent held against what the operator is defined for.

use std::collections::BTreeSet;
use std::ops::Range;

use super::limits::{K_MULTIPLE, N_MULTIPLE};
use super::wire::{self, Extents};
use crate::diagnostic::InputError;
use crate::document::{Document, Spanned};
use crate::domain::bounds::{self, GROUPS};
use crate::domain::{Group, Shape};

const MAX_EXTENT: i64 = bounds::EXTENT as i64;
const MAX_SHAPES: usize = 1024;

/// Every shape of the file with the place that gave it.
pub(super) fn read(
    document: &Document<'_>,
    shapes: &[Spanned<wire::Shape>],
    grids: &[Spanned<wire::Grid>],
) -> Result<Vec<(Shape, Range<usize>)>, InputError> {
    let reader = Reader { document };
    let mut list = Vec::new();
    for shape in shapes {
        list.push((reader.shape(shape)?, shape.span()));
    }
    for grid in grids {
        for shape in reader.grid(grid.get_ref())? {
            list.push((shape, grid.span()));
        }
    }
    if list.is_empty() {
        return Err(document.error(
            0..0,
            "the round has no shapes",
            "add [[shapes]] with m, n and k, or a [[grid]]",
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
}

impl Reader<'_> {
    fn shape(&self, shape: &Spanned<wire::Shape>) -> Result<Shape, InputError> {
        let span = shape.span();
        let wire::Shape {
            name,
            m,
            n,
            k,
            groups,
        } = shape.get_ref();
        let (groups, dense) = match (groups, m, n, k) {
            (Some(groups), None, None, None) => (self.explicit(groups)?, false),
            (None, Some(m), Some(n), Some(k)) => self.broadcast(m, n, k)?,
            _ => {
                return Err(self.document.error(
                    span,
                    "a shape has either `groups`, or all of `m`, `n` and `k`",
                    "e.g. { m = 256, n = 4096, k = 7168 }",
                ));
            }
        };
        let name = match name {
            Some(name) => self.name(name)?,
            None if dense => dense_name(&groups[0]),
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
        groups
            .get_ref()
            .iter()
            .map(|group| {
                let wire::Group { m, n, k } = group.get_ref();
                self.group(
                    (*m.get_ref(), m.span()),
                    (*n.get_ref(), n.span()),
                    (*k.get_ref(), k.span()),
                )
            })
            .collect()
    }

    /// Lists of one length make groups; a single number serves them all.
    fn broadcast(
        &self,
        m: &Spanned<Extents>,
        n: &Spanned<Extents>,
        k: &Spanned<Extents>,
    ) -> Result<(Vec<Group>, bool), InputError> {
        let mut count: Option<usize> = None;
        for extents in [m, n, k] {
            if let Extents::Many(list) = extents.get_ref() {
                self.count(list.len(), extents.span())?;
                if let Some(other) = count.filter(|other| *other != list.len()) {
                    return Err(self.document.error(
                        extents.span(),
                        format!("a list of {} beside one of {other}", list.len()),
                        "lists of a grouped shape have one entry per group",
                    ));
                }
                count = Some(list.len());
            }
        }
        let groups = (0..count.unwrap_or(1))
            .map(|i| self.group(entry(m, i), entry(n, i), entry(k, i)))
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

    fn grid(&self, grid: &wire::Grid) -> Result<Vec<Shape>, InputError> {
        let (ms, ns, ks) = (all(&grid.m), all(&grid.n), all(&grid.k));
        let mut shapes = Vec::new();
        for m in &ms {
            for n in &ns {
                for k in &ks {
                    let group = self.group(m.clone(), n.clone(), k.clone())?;
                    shapes.push(Shape {
                        name: dense_name(&group),
                        groups: vec![group],
                    });
                    if shapes.len() > MAX_SHAPES {
                        return Ok(shapes);
                    }
                }
            }
        }
        Ok(shapes)
    }

    fn group(&self, m: Extent, n: Extent, k: Extent) -> Result<Group, InputError> {
        Ok(Group {
            m: self.extent("m", m, 1)?,
            n: self.extent("n", n, N_MULTIPLE)?,
            k: self.extent("k", k, K_MULTIPLE)?,
        })
    }

    fn extent(&self, name: &str, (value, span): Extent, of: i64) -> Result<u32, InputError> {
        let error = |message: String, remedy: String| self.document.error(span, message, remedy);
        if value < 1 {
            let message = format!("{name} = {value}: sizes start at 1");
            return Err(error(message, format!("give a positive {name}")));
        }
        if value > MAX_EXTENT {
            let message = format!("{name} = {value} is beyond any memory");
            return Err(error(message, format!("give at most {MAX_EXTENT}")));
        }
        if value % of != 0 {
            let message = format!("{name} = {value} is not a multiple of {of}");
            let (below, above) = (value / of * of, (value / of + 1) * of);
            let remedy = match below {
                0 => format!("the operator is defined for multiples of {of}: take {above}"),
                _ => format!("the operator is defined for multiples of {of}: {below} or {above}"),
            };
            return Err(error(message, remedy));
        }
        Ok(value as u32)
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

fn dense_name(group: &Group) -> String {
    format!("{}x{}x{}", group.m, group.n, group.k)
}
