//! The part of `dgx explain` that the time model answers: what binds, and what
//! each removal would give at most.

use crate::backend::emu::machine;
use crate::compile::Compiler;
use crate::domain::{BackendKind, Device, Micros};
use crate::plan::{Plan, Work};
use crate::present::{Align, Column, Grid, Style, belief_in, percent};
use crate::profile::{Saving, savings};
use crate::record::schema::DeviceRecord;
use crate::sweep::CompiledCell;

/// Savings below this share of the time are not worth a line.
const WORTH: f64 = 0.005;

/// The table for a contender of a plan on the first shape it runs on, or why
/// there is none.
pub(super) fn binding(
    plan: &Plan,
    contender: usize,
    device: &Device,
    compiler: &Compiler,
    style: &Style,
) -> String {
    let mut cells = plan.cells.iter().filter(|c| c.contender == contender);
    let Some(cell) = cells.find(|cell| matches!(cell.work, Work::Run { .. })) else {
        return "Nothing is modelled: it runs on none of these shapes.".to_owned();
    };
    let found = CompiledCell::new(plan, contender, cell.shape, compiler).and_then(|cell| {
        cell.traced(|traced| {
            let replay = |m: &_| traced.replay(m, false).map(|call| call.micros);
            savings(machine(device)?, replay)
        })
    });
    match found {
        Ok((whole, savings)) => {
            let record = DeviceRecord::new(BackendKind::Emu, device);
            let belief = belief_in(&record).unwrap_or_default();
            let shape = &plan.shapes[cell.shape].name;
            let head = headline(shape, whole, &savings);
            format!(
                "{}\n{}\n{}",
                style.fold(&head, 0),
                table(whole, &savings).render(style),
                style.fold(&belief, 0)
            )
        }
        Err(why) => style.fold(&why.to_string(), 2),
    }
}

fn headline(shape: &str, whole: Micros, savings: &[Saving]) -> String {
    let most = savings.first().filter(|s| s.saved.0 > WORTH * whole.0);
    let binds = match most {
        Some(most) => format!("bound most by {}", most.what),
        None => "bound by no one thing".to_owned(),
    };
    format!("On {shape} it takes {whole} µs (modelled), {binds}. If one thing cost nothing:")
}

fn table(whole: Micros, savings: &[Saving]) -> Grid {
    let mut grid = Grid::new(vec![
        Column::new("free", Align::Left, 9),
        Column::new("saves at most µs", Align::Right, 9),
        Column::new("share", Align::Right, 8),
        Column::new("µs left", Align::Right, 7),
    ]);
    for saving in savings.iter().filter(|s| s.saved.0 > WORTH * whole.0) {
        grid.push(vec![
            saving.what.to_owned(),
            saving.saved.to_string(),
            percent(saving.saved.0 / whole.0),
            Micros(whole.0 - saving.saved.0).to_string(),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_saves_most_binds_and_what_saves_nothing_is_left_out() {
        let saving = |what, micros| Saving {
            what,
            saved: Micros(micros),
        };
        let savings = [
            saving("tensor cores", 10.0),
            saving("launches", 4.0),
            saving("barriers", 0.01),
        ];
        let whole = Micros(40.0);
        assert!(headline("s", whole, &savings).contains("bound most by tensor cores"));
        assert!(headline("s", whole, &savings[2..]).contains("bound by no one thing"));
        let text = table(whole, &savings).render(&Style::PLAIN);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains("25 %") && text.contains("30.0"), "{text}");
    }
}
