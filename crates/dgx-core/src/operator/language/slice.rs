//! Slices.

use std::ops::Range;

use super::check::{Checked, Checker, refuse};
use super::graph::Graph;
use super::parse::{Subscript, Term};
use super::whole::whole;
use crate::expr::ExprError;
use crate::operator::{BinaryOp, Extent, NodeId, Op};

impl Checker<'_> {
    pub(super) fn slices(
        &mut self,
        of: &Term,
        subscripts: &[Subscript],
        span: &Range<usize>,
    ) -> Checked {
        let mut id = self.term(of)?;
        let rests = subscripts
            .iter()
            .filter(|s| matches!(s, Subscript::Rest))
            .count();
        let (given, rank) = (subscripts.len() - rests, self.graph.rank(id));
        if given > rank || rests > 1 {
            let written = self.written(&of.span);
            let message = format!("{given} slices of `{written}`, which has {rank} axes");
            let remedy = "write one begin:end for each axis, `...` once at most";
            return refuse(span, message, remedy);
        }
        let mut at = 0;
        for subscript in subscripts {
            match subscript {
                Subscript::Rest => at += rank - given,
                Subscript::Range(None, None) => at += 1,
                Subscript::Range(begin, end) => {
                    id = self.slice(id, rank - 1 - at, [begin.as_ref(), end.as_ref()], span)?;
                    at += 1;
                }
                Subscript::Single(term) => {
                    let written = self.written(&term.span);
                    return refuse(
                        &term.span,
                        format!("`{written}` alone is no slice"),
                        "write begin:end, which keeps the axis; take(x, index, axis) gathers",
                    );
                }
            }
        }
        Ok(id)
    }

    fn slice(
        &mut self,
        id: NodeId,
        axis: usize,
        bounds: [Option<&Term>; 2],
        span: &Range<usize>,
    ) -> Checked {
        let Some(extent) = self.graph.extent(id, axis) else {
            return Err(self.meets_nothing(span));
        };
        let [begin, end] = bounds.map(|bound| bound.map(|b| self.bound(b, &extent)).transpose());
        let begin = begin?.unwrap_or(Extent::Number(0));
        let end = end?.unwrap_or(extent.clone());
        let outside = |[begin, end, extent]: [i64; 3]| begin < 0 || end <= begin || end > extent;
        if let Some((sizes, values)) = self.graph.counterexample([&begin, &end, &extent], outside) {
            let sizes = self.graph.sizes_shown(sizes);
            let message = match values {
                Some([begin, end, extent]) => {
                    format!("the slice {begin}:{end} of an axis of {extent} ({sizes})")
                }
                None => format!("the bounds of the slice overflow ({sizes})"),
            };
            let remedy = "keep begin below end and end within the axis; where sizes must be so, \
                          say it in `requires`";
            return refuse(span, message, remedy);
        }
        let length = match begin {
            Extent::Number(0) => end.clone(),
            _ => Extent::of(BinaryOp::Subtract, end.clone(), begin.clone()),
        };
        if Graph::is_long(&length) {
            let remedy = "slice once, with the sum of the bounds";
            return refuse(span, "slices of slices of slices", remedy);
        }
        let draft = self.graph.node(id);
        let (mut extents, number) = (draft.extents.clone(), draft.number);
        let at = extents.len() - 1 - axis;
        extents[at] = Some(length);
        Ok(self.step(
            Op::Slice { axis, begin, end },
            vec![id],
            extents,
            number,
            span,
        ))
    }

    /// The bound of a slice; a negative one counts from the end.
    fn bound(&self, term: &Term, extent: &Extent) -> Result<Extent, ExprError> {
        let bound = whole(term, &self.graph.names)?;
        let negative = self
            .graph
            .counterexample([&bound], |[value]| value >= 0)
            .is_none();
        Ok(match negative {
            true => Extent::of(BinaryOp::Add, extent.clone(), bound),
            false => bound,
        })
    }
}
