use maud::{Markup, html};

use super::RankedRun;

/// Fields that restrict the page to some contenders and shapes. The page's script applies and shows
/// them.
pub(super) fn bar(ranked: &RankedRun) -> Markup {
    let contenders = ranked.ranking.rows.len();
    let shapes = ranked.run.header.shapes.len();
    html! {
        form.filter hidden {
            (one("c", "Contenders", contenders, "swap, pipe*"))
            (one("s", "Shapes", shapes, "g8, m64*"))
        }
    }
}

fn one(kind: &str, what: &str, count: usize, example: &str) -> Markup {
    html! {
        label { (what) " "
            input type="search" data-kind=(kind) placeholder={ "all " (count) ", or " (example) } {}
            output {}
        }
    }
}
