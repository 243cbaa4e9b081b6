//! A profile as a Chrome trace, which Perfetto and `chrome://tracing` open.

use serde_json::{Value, json};

use super::{Profile, Sources, Timeline, roles::spent_word};

/// The SM as a whole, which has a track beside its CTAs.
const STAGES: usize = 0;

/// Complete events in µs: a process for each CTA, a thread for each of its
/// warps, and one process that has the stages of all launches. What came out
/// of one line and went to one thing is one event.
pub(crate) fn chrome(profile: &Profile, sources: &Sources) -> String {
    let mut events = vec![process(STAGES, "stages of the SM that ends last")];
    let mut pid = STAGES;
    for (number, launch) in profile.launches.iter().enumerate() {
        let line = &launch.timeline;
        events.push(thread(STAGES, number, &launch.kernel));
        for (stage, from, to) in &line.stages {
            let name = match stage.words().0 {
                "waiting" => "main loop",
                other => other,
            };
            events.push(complete(STAGES, number, name, from.0, to.0));
        }
        for (cta, warps) in line.warps.iter().enumerate() {
            let name = format!("{}: CTA {}", launch.kernel, line.ctas[cta].0);
            events.push(process(pid + 1 + cta, &name));
            let named = warps.iter().enumerate();
            events.extend(named.map(|(warp, name)| thread(pid + 1 + cta, warp, name)));
        }
        events.extend(spans(line, pid + 1, sources));
        pid += line.ctas.len();
    }
    let about = json!({
        "modelled for": profile.target,
        "belief": profile.belief,
        "contender": profile.contender.as_str(),
        "shape": profile.shape,
        "micros": profile.micros.0,
    });
    let mut text =
        json!({ "traceEvents": events, "displayTimeUnit": "ns", "otherData": about }).to_string();
    text.push('\n');
    text
}

fn spans(line: &Timeline, first: usize, sources: &Sources) -> Vec<Value> {
    // Warps take turns, so that what follows on in time lies apart.
    let mut order: Vec<usize> = (0..line.spans.len()).collect();
    let key = |i: &usize| (line.spans[*i].cta, line.spans[*i].warp);
    order.sort_by_key(key);
    let same = |a: usize, b: usize| {
        let (a, b) = (&line.spans[a], &line.spans[b]);
        (a.cta, a.warp, a.spent) == (b.cta, b.warp, b.spent) && a.to == b.from && {
            a.line == b.line || sources.place(a.line) == sources.place(b.line)
        }
    };
    let chunks = order.chunk_by(|a, b| same(*a, *b));
    chunks
        .map(|chunk| {
            let (from, to) = (&line.spans[chunk[0]], &line.spans[chunk[chunk.len() - 1]]);
            let name = match sources.place(from.line) {
                Some(place) => format!("{} {place}", spent_word(from.spent)),
                None => spent_word(from.spent).to_owned(),
            };
            let (start, end) = (line.at(from.from), line.at(to.to));
            let mut event = complete(first + from.cta, from.warp, &name, start, end);
            event["cat"] = json!(spent_word(from.spent));
            event["args"] = json!({ "ptx line": from.line });
            event
        })
        .collect()
}

fn complete(pid: usize, tid: usize, name: &str, from: f64, to: f64) -> Value {
    // Nanoseconds have three decimals here, and ends must not pass beginnings.
    let round = |micros: f64| (micros * 1e4).round() / 1e4;
    let (from, to) = (round(from), round(to));
    let dur = round(to - from);
    json!({ "ph": "X", "pid": pid, "tid": tid, "name": name, "ts": from, "dur": dur })
}

fn process(pid: usize, name: &str) -> Value {
    json!({ "ph": "M", "pid": pid, "name": "process_name", "args": { "name": name } })
}

fn thread(pid: usize, tid: usize, name: &str) -> Value {
    json!({ "ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": { "name": name } })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::profile::tests::profile;

    /// Process and thread.
    type Track = (u64, u64);
    /// Start, end, and name.
    type Told<'a> = (f64, f64, &'a str);

    #[test]
    fn a_trace_has_tracks_on_which_nothing_overlaps() {
        let ptx = ".entry gemm() {\n.loc 1 58 3\n}\n.file 1 \"a/gemm.cu\"\n";
        let text = chrome(&profile(), &Sources::read(ptx));
        let trace: Value = serde_json::from_str(&text).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let mut tracks: BTreeMap<Track, Vec<Told<'_>>> = BTreeMap::new();
        for event in events.iter().filter(|e| e["ph"] == "X") {
            let number = |key: &str| event[key].as_f64().unwrap();
            let track = (
                event["pid"].as_u64().unwrap(),
                event["tid"].as_u64().unwrap(),
            );
            assert!(number("ts") >= 0.0 && number("dur") >= 0.0, "{event}");
            let name = event["name"].as_str().unwrap();
            let end = number("ts") + number("dur");
            tracks
                .entry(track)
                .or_default()
                .push((number("ts"), end, name));
        }
        assert_eq!(tracks.len(), 3, "stages, and two warps");
        for events in tracks.values() {
            for pair in events.windows(2) {
                assert!(pair[0].1 <= pair[1].0 + 1e-9, "{pair:?}");
            }
        }
        let names: Vec<&str> = tracks[&(1, 1)].iter().map(|e| e.2).collect();
        assert_eq!(
            names,
            [
                "mbarriers gemm.cu:58",
                "products gemm.cu:58",
                "issuing gemm.cu:58"
            ]
        );
        let named = |name: &str| {
            let is = |e: &&Value| e["ph"] == "M" && e["args"]["name"] == name;
            events.iter().filter(is).count()
        };
        assert_eq!((named("gemm: CTA 7"), named("warp 0, producer")), (1, 1));
        assert_eq!(trace["otherData"]["modelled for"], "NVIDIA H200");
    }
}
