//! The designs on the B200 target, emulated: correct on ragged shapes, and each mistake specific to
//! Blackwell is reported by name. A mistake is one edit of a correct design.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::sweep::{Sweep, ended};
use crate::workspace::{VARIANT, Workspace, copy};

fn round(contenders: &str) -> String {
    format!(
        "question   = \"Is it right?\"
contenders = [{contenders}]
baseline   = \"interleaved\"
yardstick  = false
shapes     = [{{ name = \"ragged\", groups = [
  {{ m = 130, n = 256, k = 512 }}, {{ m = 40, n = 128, k = 1024 }}, {{ m = 1, n = 128, k = 256 }},
] }}]
[validate]
seed = 1
"
    )
}

#[test]
fn the_whole_field_is_right_in_its_native_form() {
    let field = "\"single-gemm\", \"two-pass\", \"sequential\", \"interleaved\", \"pipelined\", \
                 \"warp-specialized\", \"ping-pong\", \"tma-store\", \"tile-tuned\", \
                 \"grouped-scheduler\", \"swap-ab\", \"two-cta\"";
    let sweep = Sweep::new(&round(field));
    let said = sweep.run(&[&sweep.round(), "--target", "b200"], 0);
    let verdicts = sweep.verdicts();
    assert_eq!(verdicts.len(), 15, "{verdicts:?}");
    assert_told(&said, &["All times are modelled for NVIDIA B200"]);
    assert!(!said.contains("not timed"), "{said}");
    let run = fs::read_to_string(sweep.run_file().expect("a run")).expect("lines");
    let builds = run
        .lines()
        .filter(|line| line.contains(r#""type":"build""#));
    let builds: Vec<Value> = builds.map(|b| serde_json::from_str(b).unwrap()).collect();
    assert_eq!(builds.len(), 15);
    for build in builds {
        assert!(
            build["remarks"].as_array().is_none_or(Vec::is_empty),
            "{build}"
        );
        let kernels = build["kernels"].as_array().expect("kernels");
        assert!(
            kernels.iter().all(|kernel| kernel["spill_bytes"] == 0),
            "{build}"
        );
    }
}

/// Nobody compared these times with a card, and every table says so.
#[test]
fn the_pair_is_modelled_profiled_and_explained() {
    let text = round("\"interleaved\", \"two-cta\"");
    let sweep = Sweep::new(&text);
    let round = sweep.round();
    let said = sweep.run(&[&round, "--target", "b200", "--time-only"], 0);
    assert_told(&said, &["modelled for NVIDIA B200, uncalibrated"]);
    let asked = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("NO_COLOR", "1")
            .args(args)
            .args([&round, "--target", "b200"]);
        ended(&mut command, 0)
    };
    assert_told(
        &asked(&["profile", "two-cta"]),
        &["producer", "consumer", "epilogue", "The epilogue is"],
    );
    assert_told(&asked(&["explain", "two-cta"]), &["tensor cores"]);
    // A machine whose numbers are gone is no Blackwell.
    let target = fs::read_to_string("configs/targets/b200.toml").expect("a target");
    let lines = target.lines().filter(|line| !line.starts_with("tmem_"));
    let file = sweep.folder.path().join("bare.toml");
    fs::write(&file, lines.collect::<Vec<_>>().join("\n")).expect("a file");
    let bare = file.display().to_string();
    let said = sweep.run(&[&round, "--target", &bare, "--time-only"], 0);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_told(
        &said,
        &["works in tensor memory, of which the machine has no numbers"],
    );
}

/// What a sweep says of `contender` with the one occurrence of `from` in
/// `file` changed into `to`.
fn mistaken(contender: &str, file: &str, from: &str, to: &str) -> String {
    mistaken_on(("b200", "1"), contender, file, from, to)
}

/// What a slip leads to depends on the order of calls, which follows from `seed`.
fn mistaken_on(
    (target, seed): (&str, &str),
    contender: &str,
    file: &str,
    from: &str,
    to: &str,
) -> String {
    let text = round(&format!("\"{contender}\""));
    let text = text.replacen(
        "\"interleaved\"\nyard",
        &format!("\"{contender}\"\nyard"),
        1,
    );
    let sweep = Sweep::new(&text);
    let variants = sweep.folder.path().join("variants");
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("variants"),
        &variants,
    );
    let path = variants.join(file);
    let text = fs::read_to_string(&path).expect("a source");
    assert_eq!(text.matches(from).count(), 1, "{from} in {file}");
    fs::write(&path, text.replace(from, to)).expect("a source");
    let folder = variants.display().to_string();
    let round = sweep.round();
    let args = [
        &*round,
        "--target",
        target,
        "--variants",
        &folder,
        "--timeout",
        "20",
        "--data-seed",
        seed,
    ];
    let said = sweep.run(&args, 3);
    // The terminal's lines are folded.
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_told(said: &str, told: &[&str]) {
    for words in told {
        assert!(said.contains(words), "no {words}: {said}");
    }
}

#[test]
fn every_lane_issues_where_none_is_elected() {
    let said = mistaken(
        "warp-specialized",
        "sm_100a/warp-specialized.cu",
        "} else if (ptx::elect_one()) {",
        "} else if (warp == MULTIPLIER || ptx::elect_one()) {",
    );
    assert_told(&said, &["each of which issues its own: elect one"]);
}

#[test]
fn a_warp_reads_another_quarter() {
    let said = mistaken(
        "interleaved",
        "include/dgx/ptx/tmem.cuh",
        "threadIdx.x / 32 % 4 * 32",
        "(threadIdx.x / 32 + 1) % 4 * 32",
    );
    assert_told(&said, &["crashed", "only (warp number modulo 4)"]);
}

#[test]
fn registers_are_used_before_their_loads_are_waited_for() {
    let said = mistaken(
        "interleaved",
        "include/dgx/ptx/tmem.cuh",
        "asm volatile(\"tcgen05.wait::ld.sync.aligned;\" ::: \"memory\");",
        "",
    );
    assert_told(&said, &["wrong", "read before tcgen05.wait::ld"]);
}

#[test]
fn nobody_commits() {
    let said = mistaken(
        "interleaved",
        "include/dgx/sm100/interleaved.cuh",
        "ptx::mma_commit(shared.done);",
        "",
    );
    assert_told(
        &said,
        &[
            "hung",
            "deadlock: 4 warps wait at ",
            "1 of 1 arrivals missing",
            "no tcgen05.commit names it (the last tcgen05.mma is at",
            "include/dgx/ptx/tcgen05.cuh:",
        ],
    );
}

#[test]
fn scales_come_from_the_wrong_atom() {
    let said = mistaken(
        "interleaved",
        "include/dgx/sm100/operand.cuh",
        "+ k64 * ATOM_BYTES)",
        "+ (k64 + 1) % K64S * ATOM_BYTES)",
    );
    assert_told(
        &said,
        &[
            "wrong",
            "have the scales of A, B1 and B2 from the wrong atom: one atom (64 of K) on in every 4",
        ],
    );
}

#[test]
fn tiles_of_64_columns_forget_where_their_scales_begin() {
    let said = mistaken(
        "warp-specialized",
        "include/dgx/sm100/operand.cuh",
        "return row % ATOM_ROWS / 32;",
        "return 0;",
    );
    assert_told(
        &said,
        &[
            "wrong",
            "have the scales of B1 and B2 from the column 64 before, the wrong part of an atom's 128",
        ],
    );
}

#[test]
fn columns_are_freed_before_the_other_cta_is_done() {
    let said = mistaken(
        "two-cta",
        "sm_100a/two-cta.cu",
        "  ptx::cluster_wait();\n  ptx::tensor_fence_after();\n  if (warp == MULTIPLIER)",
        "  if (warp == MULTIPLIER)",
    );
    assert_told(
        &said,
        &["crashed", "of tensor memory, which are not all allocated"],
    );
}

#[test]
fn columns_are_freed_before_they_are_read() {
    let read = "  read_columns(up, tmem.accumulator(1) + first, shared.done[1]);\n";
    let arrive =
        "  DGX_STAMP(epilogue);\n  ptx::tensor_fence_before();\n  ptx::cluster_arrive();\n";
    let said = mistaken(
        "two-cta",
        "sm_100a/two-cta.cu",
        &format!("{read}{arrive}"),
        &format!("{arrive}{read}"),
    );
    assert_told(
        &said,
        &["crashed", "tcgen05.ld", "which are not all allocated"],
    );
}

#[test]
fn columns_are_freed_while_mmas_still_write_them() {
    let said = mistaken_on(
        ("b200", "5"),
        "interleaved",
        "include/dgx/sm100/kernel.cuh",
        "  ptx::mma_wait(shared.done, turn % 2);\n",
        "",
    );
    assert_told(&said, &["crashed", "wait for its tcgen05.commit first"]);
}

#[test]
fn a_cta_ends_with_columns_of_its_own() {
    let said = mistaken(
        "interleaved",
        "include/dgx/sm100/kernel.cuh",
        "if (threadIdx.x < 32) ptx::tmem_free<Tensor::ALLOCATED>(tmem.base);",
        "",
    );
    assert_told(
        &said,
        &[
            "crashed",
            "the CTA ended with 512 columns",
            "tcgen05.dealloc is missing",
        ],
    );
}

#[test]
fn ctas_of_one_multiprocessor_wait_for_each_others_columns() {
    let alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], ";
    // Half of the columns, and then the other half: two CTAs have a half each.
    let said = mistaken_on(
        ("b200,sms=2", "1"),
        "interleaved",
        "include/dgx/ptx/tmem.cuh",
        &format!("{alloc}%1;"),
        &format!("{alloc}256;\\n{alloc}256;"),
    );
    let told = "256 columns wanted, 0 of 512 are free on multiprocessor";
    assert_told(&said, &["hung", told, "has 256, CTA ("]);
}

/// What is asked about a round is answered for the machine a sweep would use.
#[test]
fn a_b200_in_the_machine_is_what_is_planned_for() {
    let workspace = Workspace::new();
    let source = VARIANT.replacen("arch     = \"sm_90a\"\n", "", 1);
    workspace.write("variants/sm_100a/one.cu", &source);
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/driver.c");
    let library = workspace.path().join("libcuda.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &driver])
        .status();
    assert!(built.expect("a C compiler").success());
    let here = workspace.path().display().to_string();
    let asked = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        workspace.run_with(&words, &[("LD_LIBRARY_PATH", &here)])
    };
    // What is begun here is for this card.
    let begun = asked("new mine");
    assert!(begun.contains("dgx sweep configs/mine.toml  "), "{begun}");
    assert_told(&asked("check mine"), &["for NVIDIA B200\n", "[exit 0]"]);
    // The words scripts/b200 looks for.
    assert_told(&asked("doctor"), &["gpu", "NVIDIA B200 (sm_100), 148 SMs"]);
    assert_told(
        &asked("check --no-compile round.toml"),
        &["for NVIDIA B200\n"],
    );
    assert_told(&asked("sweep --dry-run round.toml"), &["for NVIDIA B200\n"]);
    let told = "for NVIDIA H200\n";
    assert_told(&asked("sweep --dry-run --backend emu round.toml"), &[told]);
    assert_told(
        &asked("check --no-compile --target h200 round.toml"),
        &[told],
    );
    // Whoever only chooses opens no card: somebody else may have it alone.
    let taken = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let driver = [("LD_LIBRARY_PATH", &*here), ("DRIVER_TAKEN", "1")];
        workspace.run_with(&words, &driver)
    };
    assert_told(&taken("doctor"), &["unusable: cuDevicePrimaryCtxRetain"]);
    assert_told(&taken("list"), &["for NVIDIA B200", "[exit 0]"]);
    assert_told(&taken("new another"), &["configs/another.toml", "[exit 0]"]);
    let words = "sweep --dry-run round.toml";
    assert_told(&taken(words), &["for NVIDIA B200\n", "[exit 0]"]);
}

/// The one command for a B200 names every round that has designs for it, and stops
/// before all of it where there is none.
#[test]
fn everything_that_a_b200_can_tell_is_asked_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = |args: &[&str]| {
        let run = std::process::Command::new(root.join("scripts/b200"))
            .args(args)
            .output()
            .expect("bash");
        (
            run.status.code(),
            String::from_utf8_lossy(&run.stdout).into_owned(),
        )
    };
    let (code, said) = script(&["--dry-run", "here"]);
    assert_eq!(code, Some(0));
    let configs = fs::read_dir(root.join("configs")).expect("rounds");
    for config in configs.map(|entry| entry.expect("a file").path()) {
        let dual = || {
            !fs::read_to_string(&config)
                .expect("a round")
                .contains("\noperator ")
        };
        if let Some(name) = config.file_name().filter(|_| config.is_file() && dual()) {
            let sweep = format!("sweep configs/{} --results here\n", name.display());
            assert!(said.contains(&sweep), "no {sweep} in {said}");
        }
    }
    for step in [
        "record --out here/goldens",
        "check --goldens here/goldens",
        "--measure",
    ] {
        assert!(said.contains(step), "no {step} in {said}");
    }
    assert!(!root.join("here").exists(), "a dry run writes nothing");
    assert_eq!(script(&["--wet"]).0, Some(2));
    let refused = Command::new(root.join("scripts/b200"))
        .env("DGX", env!("CARGO_BIN_EXE_dgx"))
        .env("CUDA_VISIBLE_DEVICES", "")
        .arg("here")
        .output()
        .expect("bash");
    assert_eq!(refused.status.code(), Some(4));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_told(
        &said,
        &[
            "this machine has no GPU of compute capability 10.0",
            "to emulate: scripts/dgx sweep configs/blackwell.toml --target b200",
        ],
    );
    assert!(!root.join("here").exists(), "it stops before it writes");
}

/// The guilty CTAs are those of the middle group, which a sample of two leaves out.
#[test]
fn a_tile_filled_again_too_early_is_found_wherever_it_is() {
    let wait = "  ptx::mbarrier_wait(shared.empty[slot], turn / Shared::SLOTS % 2 ^ 1);\n";
    let commit = "  ptx::mma_commit(shared.empty[slot]);\n";
    let arrive = "  ptx::mbarrier_arrive(shared.empty[slot]);\n";
    for (from, to) in [(wait, ""), (commit, arrive)] {
        let said = mistaken(
            "pipelined:STAGES=3",
            "include/dgx/sm100/mainloop.cuh",
            from,
            to,
        );
        assert_told(&said, &["race at shared", "tcgen05.cuh:"]);
        assert!(!said.contains("wgmma"), "{said}");
    }
}

#[test]
fn a_collector_that_holds_nothing() {
    let said = mistaken(
        "two-cta",
        "sm_100a/two-cta.cu",
        "Up ? ptx::ReuseA::KEEP",
        "Up ? ptx::ReuseA::LAST",
    );
    assert_told(&said, &["collector's buffer", "which holds nothing"]);
}

#[test]
fn a_swizzle_that_is_not_the_maps() {
    let said = mistaken(
        "interleaved",
        "include/dgx/ptx/tcgen05.cuh",
        "SWIZZLE_128B = u64(2) << 61",
        "SWIZZLE_128B = u64(4) << 61",
    );
    assert_told(
        &said,
        &[
            "with a swizzle of 64 bytes (its descriptor",
            "with a swizzle of 128 bytes (its tensor map)",
        ],
    );
}
