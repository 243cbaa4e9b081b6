//! Several cards of one machine, simulated by a script.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::stage::{SCRIPT, SHAPES, SHARE, Stage, share_of};
use crate::sweep::ended;

const CARDS: &str = "cards = [\"GPU-a\", \"GPU-b\"]\n";

fn stage(events: &str) -> Stage {
    Stage::with(crate::stage::ROUND, &format!("{CARDS}{SCRIPT}{events}"))
}

fn sweep(stage: &Stage, gpus: &str, code: i32) -> String {
    let round = stage.path("round.toml").display().to_string();
    ended(&mut stage.command(&[&round, "--gpus", gpus]), code)
}

/// Cards by shape, as the blocks say.
fn cards(stage: &Stage) -> BTreeMap<String, BTreeSet<String>> {
    let mut cards: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for block in stage.lines("block") {
        let word = |key: &str| block[key].as_str().expect("a name").to_owned();
        cards.entry(word("shape")).or_default().insert(word("card"));
    }
    cards
}

#[test]
fn shapes_are_dealt_to_cards_and_contenders_stay_together() {
    let stage = stage("");
    let said = sweep(&stage, "all", 0);
    assert!(said.contains(", 2 cards"), "{said}");
    assert!(said.contains("over shapes from 2 cards"), "{said}");
    let cards = cards(&stage);
    assert!(cards.values().all(|cards| cards.len() == 1), "{cards:?}");
    let used: BTreeSet<&String> = cards.values().flatten().collect();
    assert_eq!(used.len(), 2, "{cards:?}");
    assert_eq!(stage.lines("header")[0]["device"]["uuid"], Value::Null);
    let blocks = stage.blocks();
    for shape in SHAPES {
        assert_eq!(share_of(&blocks, shape), [(0, SHARE), (1, SHARE)]);
    }
    // Nobody was called on a shape elsewhere, not even to be judged.
    let mut called: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for call in stage.journal() {
        let shape = call["shape"].as_str().expect("a name").to_owned();
        let card = call["card"].as_u64().expect("a number");
        called.entry(shape).or_default().insert(card);
    }
    assert!(called.values().all(|cards| cards.len() == 1), "{called:?}");
}

#[test]
fn one_of_several_cards_can_be_named() {
    let stage = stage("");
    sweep(&stage, "1", 0);
    let uuid = stage.lines("header")[0]["device"]["uuid"].clone();
    assert_eq!(uuid, "GPU-b");
    for (gpus, why) in [
        ("0,2", "there is no card 2: 2 can be seen"),
        ("1,1", "card 1 is listed twice"),
        ("first", "write `all`, or numbers"),
    ] {
        let said = sweep(&stage, gpus, 2);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn the_shapes_of_a_card_that_disappears_go_to_the_others() {
    let stage = stage("[[on]]\ncard = 1\ncall = 30\nvanishes = true\n");
    let said = sweep(&stage, "0,1", 0);
    assert!(said.contains("card GPU-b is lost"), "{said}");
    assert!(said.contains("its shapes go to the other cards"), "{said}");
    let voids = stage.lines("void");
    assert_eq!(voids.len(), 1, "{voids:?}");
    assert!(stage.lines("end")[0]["complete"] == true);
    let show = stage.tell(&["show"], 0);
    assert!(
        !show.contains("2 cards"),
        "all that counts ran on one:\n{show}"
    );
    // What was timed on the lost card is on record, and does not count.
    let shape = voids[0]["shape"].as_str().expect("a name");
    assert_eq!(cards(&stage)[shape].len(), 2);
}

#[test]
fn when_the_last_card_is_gone_the_rest_is_for_later() {
    let stage = stage("[[on]]\ncall = 30\nvanishes = true\n");
    let said = sweep(&stage, "all", 4);
    assert!(said.contains("is lost"), "{said}");
    assert!(said.contains("dgx sweep --resume"), "{said}");
    let before = stage.blocks();
    // The cards are back.
    fs::remove_file(stage.path("calls.jsonl")).expect("a journal");
    let script = format!("{CARDS}{SCRIPT}");
    fs::write(stage.path("script.toml"), script).expect("a script");
    stage.resume(0);
    assert!(stage.lines("void").is_empty(), "each goes on where it was");
    assert!(cards(&stage).values().all(|cards| cards.len() == 1));
    for (of, numbers) in before {
        assert_eq!(stage.blocks()[&of], numbers, "{of:?} is kept as it was");
    }
}

#[test]
fn what_was_begun_on_a_card_that_is_not_here_any_more_is_timed_anew() {
    let stage = stage("[[on]]\ncall = 30\nvanishes = true\n");
    sweep(&stage, "all", 4);
    let begun = cards(&stage);
    let gone: Vec<&String> = (begun.iter())
        .filter_map(|(shape, cards)| cards.contains("GPU-b").then_some(shape))
        .collect();
    assert!(!gone.is_empty(), "{begun:?}");
    // CUDA_VISIBLE_DEVICES shows another in its place now.
    fs::remove_file(stage.path("calls.jsonl")).expect("a journal");
    let script = format!("cards = [\"GPU-c\", \"GPU-a\"]\n{SCRIPT}");
    fs::write(stage.path("script.toml"), script).expect("a script");
    stage.resume(0);
    let void: Vec<String> = (stage.lines("void").iter())
        .map(|void| void["shape"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(void.iter().collect::<Vec<_>>(), gone);
    assert!(stage.lines("end").last().expect("an end")["complete"] == true);
    let show = stage.tell(&["show"], 0);
    assert!(!show.contains("GPU-b"), "{show}");
}
