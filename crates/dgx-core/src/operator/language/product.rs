//! Products of matrices.

use std::ops::Range;

use super::check::{Checked, Checker, refuse, wider};
use super::graph::ExtentConflict;
use super::parse::{Term, TermKind};
use crate::expr::ExprError;
use crate::operator::{Extent, NodeId, Op};

impl Checker<'_> {
    pub(super) fn product(&mut self, left: &Term, right: &Term, span: &Range<usize>) -> Checked {
        let mut ids = [self.term(left)?, self.term(right)?];
        for (id, term) in ids.iter().zip([left, right]) {
            self.numeric(*id, &term.span)?;
            if self.graph.rank(*id) < 2 {
                let written = self.written(&term.span);
                let shown = self.graph.shown(*id);
                return refuse(
                    &term.span,
                    format!("`@` needs two axes or more, and `{written}` is {shown}"),
                    "give a vector a second axis: size = [1, \"k\"]; multiply numbers with *",
                );
            }
        }
        let stretched = self.graph.meet(&mut ids, &[0, 1]);
        let extents = [self.graph.extent(ids[0], 0), self.graph.extent(ids[1], 1)];
        let clash = match (stretched, extents) {
            (Err(clash), _) => Some(clash),
            (_, [Some(columns), Some(rows)]) => {
                (!self.graph.same(&columns, &rows)).then_some(ExtentConflict(columns, rows))
            }
            _ => return Err(self.meets_nothing(span)),
        };
        if let Some(clash) = clash {
            return Err(self.products_clash(&clash, ids, [left, right], span));
        }
        let rank = ids
            .map(|id| self.graph.rank(id))
            .into_iter()
            .max()
            .unwrap_or(2);
        let mut extents = Vec::new();
        for axis in (2..rank).rev() {
            extents.push(self.meet(&mut ids, axis, span)?);
        }
        extents.extend([self.graph.extent(ids[0], 1), self.graph.extent(ids[1], 0)]);
        let [a, b] = ids.map(|id| self.graph.node(id).number);
        Ok(self.step(Op::MatMul, ids.to_vec(), extents, wider(a, b), span))
    }

    fn products_clash(
        &self,
        clash: &ExtentConflict,
        ids: [NodeId; 2],
        terms: [&Term; 2],
        span: &Range<usize>,
    ) -> ExprError {
        let says = |a, b| format!("{a} columns meet {b} rows");
        let message = self.clash(clash, span, says);
        let same = |a: Option<Extent>, b: Option<Extent>| match (a, b) {
            (Some(a), Some(b)) => self.graph.same(&a, &b),
            _ => false,
        };
        let [a, b] = terms.map(|term| self.written(&term.span));
        let remedy = if same(self.graph.extent(ids[0], 0), self.graph.extent(ids[1], 0)) {
            format!("did you mean `{}`?", self.transposed(terms[1]))
        } else if same(self.graph.extent(ids[0], 1), self.graph.extent(ids[1], 1)) {
            format!("did you mean `{}`?", self.transposed(terms[0]))
        } else {
            let [x, y] = ids.map(|id| self.graph.shown(id));
            format!("`{a}` is {x} and `{b}` is {y}: the last axis meets the second last")
        };
        ExprError::new(span.clone(), message, remedy)
    }

    /// The text of a term's transpose.
    fn transposed(&self, term: &Term) -> String {
        let written = self.written(&term.span);
        match &term.kind {
            TermKind::Transpose(of) => self.written(&of.span).to_owned(),
            TermKind::Negate(_) | TermKind::Binary(..) | TermKind::MatMul(_) => {
                format!("({written}).T")
            }
            _ => format!("{written}.T"),
        }
    }

    pub(super) fn transpose(&mut self, of: &Term, span: &Range<usize>) -> Checked {
        let id = self.term(of)?;
        let mut extents = self.graph.node(id).extents.clone();
        let rank = extents.len();
        if rank < 2 {
            let written = self.written(&of.span);
            let message = format!("`.T` needs two axes, and `{written}` has {rank}");
            return refuse(span, message, "remove `.T`");
        }
        extents.swap(rank - 2, rank - 1);
        let number = self.graph.node(id).number;
        Ok(self.step(Op::Transpose, vec![id], extents, number, span))
    }
}
