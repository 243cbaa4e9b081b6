//! The part of `dgx explain` that comes from the time model: what limits a call, and how much
//! removing each limit would save at most.

use crate::present::{Column, Style, Table, accuracy_in_short, percent};
use dgx_core::domain::{BackendKind, Device, Micros};
use dgx_core::record::schema::DeviceRecord;
use dgx_run::backend::emu::machine;
use dgx_run::compile::Compiler;
use dgx_run::plan::Plan;
use dgx_run::profile::{Saving, savings};
use dgx_run::sweep::CompiledCell;

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
    let Some(cell) = cells.find(|cell| cell.run().is_some()) else {
        return "Nothing is modelled: it runs on none of these shapes.".to_owned();
    };
    let found = CompiledCell::runnable(plan, contender, cell.shape, compiler).and_then(|cell| {
        cell.traced(|traced| {
            let replay = |m: &_| traced.replay(m, false);
            savings(machine(device)?, replay)
        })
    });
    match found {
        Ok((whole, savings)) => {
            let record = DeviceRecord::new(BackendKind::Emu, device);
            let accuracy =
                accuracy_in_short(&record, &plan.round.operator.name).unwrap_or_default();
            let shape = &plan.shapes[cell.shape].name;
            let head = headline(shape, whole, &savings);
            format!(
                "{}\n{}\n{}",
                style.fold(&head, 0),
                table(whole, &savings).render(style),
                style.fold(&accuracy, 0)
            )
        }
        Err(why) => style.fold(&why.to_string(), 2),
    }
}

fn headline(shape: &str, whole: Micros, savings: &[Saving]) -> String {
    let binds = savings.first().map_or(String::new(), |most| {
        let share = percent(most.on_way.0 / whole.0);
        let word = most.cause.word();
        format!(", bound by {word}: {share} of its time (the critical path)")
    });
    format!(
        "On {shape} it takes {whole} µs (modelled, on operands that are zero){binds}. If one thing \
         cost nothing:"
    )
}

/// The critical path goes through whatever the last warp had to wait for. Removing two causes may
/// save more than the sum of both, and removing one less than its share of the path.
fn table(whole: Micros, savings: &[Saving]) -> Table {
    let mut grid = Table::new(vec![
        Column::left(""),
        Column::right("critical path µs"),
        Column::right("share").weight(8),
        Column::right("free, saves at most µs"),
        Column::right("µs left").weight(7),
    ]);
    let worth = |micros: Micros| micros.0 > WORTH * whole.0;
    let worth_naming = |s: &&Saving| worth(s.on_way) || s.saved.is_some_and(worth);
    for saving in savings.iter().filter(worth_naming) {
        let saved = saving.saved;
        grid.push(vec![
            saving.cause.word().to_owned(),
            saving.on_way.to_string(),
            percent(saving.on_way.0 / whole.0),
            saved.map_or("–".to_owned(), |saved| saved.to_string()),
            saved.map_or(String::new(), |saved| Micros(whole.0 - saved.0).to_string()),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_time::Cause;

    #[test]
    fn what_takes_most_of_the_way_binds_and_what_is_nothing_is_left_out() {
        let saving = |cause, on_way, saved: Option<f64>| Saving {
            cause,
            on_way: Micros(on_way),
            saved: saved.map(Micros),
        };
        let savings = [
            saving(Cause::Tensor, 24.0, Some(10.0)),
            saving(Cause::Issue, 12.0, None),
            saving(Cause::Launch, 4.0, Some(4.0)),
            saving(Cause::Barriers, 0.01, Some(0.01)),
        ];
        let whole = Micros(40.0);
        let head = headline("s", whole, &savings);
        assert!(
            head.contains("bound by tensor cores: 60 % of its time (the critical path)"),
            "{head}"
        );
        let text = table(whole, &savings).render(&Style::PLAIN);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.contains("60 %") && text.contains("30.0"), "{text}");
    }
}
