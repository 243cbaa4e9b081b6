//! A profile as a Chrome trace, which Perfetto and `chrome://tracing` open.

use ptx_time::Span;
use serde_json::{Value, json};

use super::timeline::TimeSlice;
use super::{LaunchProfile, ProfiledCell, Sources, roles::activity_word};

/// Events that a browser still opens quickly. If there are more, each warp's row is divided into
/// pieces, each named after the cause of most of its time.
const MOST_EVENTS: usize = 200_000;

/// Complete events in µs: a process for each CTA, a thread for each of its warps, and one process
/// with the stages of all launches. Adjacent time of one source line and one cause is one event.
/// Several profiles of one cell stand below each other.
pub fn chrome(profiles: &[&ProfiledCell], sources: &Sources) -> String {
    let mut events = Vec::new();
    let mut about = Vec::new();
    let mut pid = 0;
    for profile in profiles {
        let timing = profile.timing.as_str();
        let stages = pid;
        let name = format!("{timing}: stages of the SM that ends last");
        events.extend(process(stages, &name));
        let mut coarsest = 0.0;
        for (number, launch) in profile.launches.iter().enumerate() {
            events.push(thread(stages, number, &launch.kernel));
            for (stage, from, to) in &launch.timeline.stages {
                let name = match stage.words().0 {
                    "waiting" => "main loop",
                    other => other,
                };
                events.extend(complete(stages, number, name, from.0, to.0));
            }
            let (of_warps, width) = warps(launch, timing, pid + 1, sources);
            events.extend(of_warps);
            coarsest = f64::max(coarsest, width);
            pid += launch.timeline.ctas.len();
        }
        pid += 1;
        let mut said = json!({
            "timing": timing,
            "target": profile.target,
            "belief": profile.accuracy,
            "contender": profile.contender.as_str(),
            "shape": profile.shape,
            "micros": profile.micros.0,
        });
        if coarsest > 0.0 {
            said["pieces"] = json!(format!("merged into pieces of {:.0} ns", 1e3 * coarsest));
        }
        about.push(said);
    }
    let mut text =
        json!({ "traceEvents": events, "displayTimeUnit": "ns", "otherData": { "profiles": about } })
            .to_string();
    text.push('\n');
    text
}

/// The warps of a launch, from process `first` on, and the length of pieces if there were too many
/// events.
fn warps(
    launch: &LaunchProfile,
    timing: &str,
    first: usize,
    sources: &Sources,
) -> (Vec<Value>, f64) {
    let line = &launch.timeline;
    let mut events = Vec::new();
    let mut rows = Vec::new();
    for (cta, warps) in line.warps.iter().enumerate() {
        let name = format!("{timing}: {}: CTA {}", launch.kernel, line.ctas[cta].0);
        events.extend(process(first + cta, &name));
        for (warp, name) in warps.iter().enumerate() {
            events.push(thread(first + cta, warp, name));
            rows.push((cta, warp));
        }
    }
    let same = |a: &Span, b: &Span| {
        a.activity == b.activity
            && (a.line == b.line || sources.place(a.line) == sources.place(b.line))
    };
    let mut slices: Vec<Vec<TimeSlice>> = rows.iter().map(|row| line.row(*row, same)).collect();
    let mut width = 0.0;
    if slices.iter().map(Vec::len).sum::<usize>() > MOST_EVENTS {
        let reach = (launch.start.0, launch.start.0 + launch.micros.0);
        let count = (MOST_EVENTS / rows.len().max(1)).max(1);
        width = launch.micros.0 / count as f64;
        slices = (rows.iter().map(|row| line.coarse(*row, reach, count))).collect();
    }
    for ((cta, warp), pieces) in rows.into_iter().zip(slices) {
        let event = |piece: &TimeSlice| {
            let word = activity_word(piece.activity);
            let name = match sources.place(piece.line) {
                Some(place) => format!("{word} {place}"),
                None => word.to_owned(),
            };
            let mut event = complete(first + cta, warp, &name, piece.from, piece.to)?;
            event["cat"] = json!(word);
            if piece.line > 0 {
                event["args"] = json!({ "ptx line": piece.line });
            }
            Some(event)
        };
        events.extend(pieces.iter().filter_map(event));
    }
    (events, width)
}

/// Whole nanoseconds, the resolution of viewers: differently rounded events would overlap. Shorter
/// events are left out.
fn complete(pid: usize, tid: usize, name: &str, from: f64, to: f64) -> Option<Value> {
    let nanos = |micros: f64| (1e3 * micros).round();
    let (ts, dur) = (nanos(from) / 1e3, (nanos(to) - nanos(from)) / 1e3);
    let event = json!({ "ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur });
    (dur > 0.0).then_some(event)
}

/// A process and its sort index: viewers would sort processes by how busy they are.
fn process(pid: usize, name: &str) -> [Value; 2] {
    let about =
        |key: &str, args: Value| json!({ "ph": "M", "pid": pid, "name": key, "args": args });
    [
        about("process_name", json!({ "name": name })),
        about("process_sort_index", json!({ "sort_index": pid })),
    ]
}

fn thread(pid: usize, tid: usize, name: &str) -> Value {
    json!({ "ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": { "name": name } })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ptx_time::Activity;

    use super::*;
    use crate::profile::tests::profile;

    /// Process and thread.
    type Track = (u64, u64);
    /// Start, end, and name.
    type TraceEvent<'a> = (f64, f64, &'a str);

    #[test]
    fn a_trace_has_tracks_on_which_nothing_overlaps() {
        let ptx = ".entry gemm() {\n.loc 1 58 3\n}\n.file 1 \"a/gemm.cu\"\n";
        let text = chrome(&[&profile()], &Sources::read(ptx));
        let trace: Value = serde_json::from_str(&text).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let mut tracks: BTreeMap<Track, Vec<TraceEvent<'_>>> = BTreeMap::new();
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
        let cta = named("modelled: gemm: CTA 7");
        assert_eq!((cta, named("warp 0, producer")), (1, 1));
        let about = &trace["otherData"]["profiles"][0];
        assert_eq!(
            (&about["timing"], &about["target"]),
            (&json!("modelled"), &json!("NVIDIA H200"))
        );
    }

    #[test]
    fn two_profiles_share_no_track() {
        let text = chrome(&[&profile(), &profile()], &Sources::default());
        let trace: Value = serde_json::from_str(&text).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let is = |e: &&Value| e["ph"] == "M" && e["name"] == "process_name";
        let mut pids: Vec<u64> = (events.iter().filter(is))
            .map(|e| e["pid"].as_u64().unwrap())
            .collect();
        pids.dedup();
        assert_eq!(pids, [0, 1, 2, 3]);
    }

    #[test]
    fn a_long_trace_is_told_in_pieces() {
        let mut long = profile();
        let activity = |i: usize| Activity::ALL[i % 2];
        let span = |i: usize| Span {
            cta: 0,
            warp: i % 2,
            from: (i / 2) as f64 / 500.0,
            to: (i / 2 + 1) as f64 / 500.0,
            activity: activity(i / 2),
            line: 2,
        };
        let spans = (0..MOST_EVENTS + 1000).map(span).collect();
        long.launches[0].timeline.keep(spans);
        let text = chrome(&[&long], &Sources::default());
        let trace: Value = serde_json::from_str(&text).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert!(events.len() < MOST_EVENTS + 100, "{}", events.len());
        let about = &trace["otherData"]["profiles"][0]["pieces"];
        assert!(about.as_str().unwrap().contains("pieces of"), "{about}");
    }
}
