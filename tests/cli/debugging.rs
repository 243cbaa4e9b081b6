//! `dgx debug`: from a failure to its fix in one screen.

use std::fs;

use crate::workspace::{Workspace, in_repository};

/// Looks into a fixture, which fails as it declares.
fn debug(fixture: &str, more: &[&str]) -> String {
    let text = tried(fixture, more);
    assert!(text.ends_with("[exit 0]"), "{text}");
    text
}

fn tried(fixture: &str, more: &[&str]) -> String {
    let mut words = vec!["debug", fixture, "tests/fixtures/round.toml"];
    words.extend(["--variants", "tests/fixtures/variants", "--backend", "emu"]);
    words.extend(more);
    in_repository(&words)
}

/// What `mine` that was begun, and perhaps spoilt, is told.
fn mine(workspace: &Workspace, more: &[&str], variables: &[(&str, &str)]) -> String {
    let words = [&["debug", "mine", "mine", "--backend", "emu"], more].concat();
    workspace.run_with(&words, variables)
}

/// Reasons are folded.
fn flat(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn a_wrong_result_is_told_from_the_first_element_to_the_hypothesis() {
    let text = debug("dropped-k-block", &["--shape", "ragged"]);
    for section in [
        "dropped-k-block on ragged  (tests/fixtures/variants/dropped-k-block.cu)",
        "wrong emulated as NVIDIA H200",
        "wrong elements, of",
        "got over expected, * is wrong",
        "Where\n",
        "group 1 (76x128x512):",
        "# all wrong, + some, . none",
        "Likely cause\n  lacks the last 64 of K in A·B2ᵀ (100 % of",
        "The first wrong element was written by\n  a thread writes at variants/include/dgx/plain.cuh:",
        "Each kind of data alone\n  benchmark: wrong",
        "\n  full: wrong",
        "next: dgx debug dropped-k-block tests/fixtures/round.toml --shape ragged --variants \
         tests/fixtures/variants --dump",
    ] {
        assert!(text.contains(section), "{section}\n{text}");
    }
    let at = |section: &str| text.find(section).expect("a section");
    assert!(at("Likely cause") < at("wrong elements, of"), "{text}");
    assert!(!text.contains("ptxas info"), "{text}");
    let inlined = "inlined at tests/fixtures/variants/dropped-k-block.cu:22";
    assert!(flat(&text).contains(inlined), "{text}");
    let wide = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide.filter(|line| !line.contains("next: ")), None);
}

#[test]
fn a_write_past_a_tensor_has_its_line_though_it_is_no_fault() {
    let text = flat(&debug("row-past-m", &[]));
    assert!(
        text.contains("wrote out of bounds of c of group 0, at byte"),
        "{text}"
    );
    assert!(
        text.contains("written at variants/include/dgx/plain.cuh:"),
        "{text}"
    );
    assert!(
        text.contains("inlined at tests/fixtures/variants/row-past-m.cu:23"),
        "{text}"
    );
    let text = flat(&debug("input-scribbled", &[]));
    assert!(text.contains("changed its input"), "{text}");
    assert!(
        text.contains("; written at tests/fixtures/variants/input-scribbled.cu:"),
        "{text}"
    );
}

#[test]
fn a_fault_has_its_line_whether_it_reads_or_writes() {
    let text = flat(&debug("out-of-bounds", &[]));
    assert!(
        text.contains("tests/fixtures/variants/out-of-bounds.cu:20: kernel dual_gemm, CTA (0,0,0)"),
        "{text}"
    );
    assert!(text.contains("global write of 2 bytes"), "{text}");
    let workspace = Workspace::begun("mine");
    workspace.edit(
        "variants/mine.cu",
        "group.sfa[(ka + k) / 16]",
        "group.sfa[(1ull << 40) + k]",
    );
    let text = flat(&mine(&workspace, &[], &[]));
    assert!(text.contains("global read of 1 bytes"), "{text}");
    assert!(text.contains("variants/mine.cu:"), "{text}");
    assert!(text.ends_with("[exit 3]"), "{text}");
}

#[test]
fn a_read_past_a_tensor_is_told_though_it_hurts_nobody() {
    let workspace = Workspace::begun("mine");
    workspace.edit(
        "variants/mine.cu",
        "  float gate = 0.0f, up = 0.0f;",
        "  float gate = 0.0f, up = 0.0f;\n  if (group.sfa[group.m * (group.k / 16) + 3] == 1) up = 1.0f;",
    );
    let text = flat(&mine(&workspace, &["--shape", "ragged"], &[]));
    for told in [
        "racy emulated as",
        "K 304 of its last row, which ends at 256",
        "outside-tensor: 1 line, met ",
        "first at sfa of group ",
        "variants/mine.cu:",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn what_kernels_print_says_who_and_outlives_a_crash() {
    let text = debug("talkative", &["--shape", "ragged"]);
    let told = "What its kernels printed\n  CTA 0 thread 0: group 0 has 40 rows\n  \
                CTA 0,1 thread 0: group 1 has 76 rows\n";
    assert!(text.contains(told), "{text}");
    let workspace = Workspace::begun("mine");
    workspace.edit(
        "variants/mine.cu",
        "  float gate = 0.0f, up = 0.0f;",
        "  float gate = 0.0f, up = 0.0f;\n  if (row == 3 && column == 5) { printf(\"n is %u\\n\", group.n); __trap(); }",
    );
    let text = mine(&workspace, &[], &[]);
    assert!(text.contains("crashed emulated as"), "{text}");
    assert!(text.contains("CTA 3 thread 5: n is 128"), "{text}");
    let swept = workspace.run(&["sweep", "configs/mine.toml", "--backend", "emu"]);
    assert!(
        flat(&swept).contains("its kernels printed \"CTA 3 thread 5: n is 128\""),
        "{swept}"
    );
    assert!(
        swept.contains("next: dgx debug mine results/mine-"),
        "{swept}"
    );
}

/// Nothing that a kernel prints acts on a terminal, with colours or without.
#[test]
fn control_characters_of_a_kernel_are_written_out() {
    let workspace = Workspace::begun("mine");
    workspace.edit(
        "variants/mine.cu",
        "  float gate = 0.0f, up = 0.0f;",
        "  float gate = 0.0f, up = 0.0f;\n  if (row == 0 && column == 0) printf(\"\\033[32mok\\033[0m \\033[2J\\033]0;x\\007\\r\\n\");",
    );
    let told = "CTA 0 thread 0: \\u{1b}[32mok\\u{1b}[0m \\u{1b}[2J\\u{1b}]0;x\\u{7}\\u{d}";
    for colour in ["always", "never"] {
        let text = mine(&workspace, &["--color", colour], &[]);
        assert!(text.contains(told), "{text}");
        for act in [
            "\u{1b}[32mok\u{1b}[0m \u{1b}",
            "\u{1b}[2J",
            "\u{1b}]",
            "\u{7}",
            "\r",
        ] {
            assert!(!text.contains(act), "{act:?}: {text}");
        }
        assert!(colour == "always" || !text.contains('\u{1b}'), "{text}");
    }
    let swept = workspace.run(&["sweep", "configs/mine.toml", "--backend", "emu"]);
    assert!(!swept.contains('\u{1b}'), "{swept}");
}

#[test]
fn the_compiler_is_quoted_whole() {
    let text = debug("compile-error", &[]);
    assert!(text.contains("What the compiler says"), "{text}");
    assert!(
        text.contains("tests/fixtures/variants/compile-error.cu("),
        "{text}"
    );
    assert!(text.lines().any(|line| line.trim() == "^"), "{text}");
    let text = debug("plain", &[]);
    assert!(
        text.contains("ok emulated as NVIDIA H200: the worst error is"),
        "{text}"
    );
}

#[test]
fn a_hang_lists_who_waits_and_leads_to_the_code() {
    let text = debug("deadlock", &[]);
    assert!(text.contains("hung emulated as"), "{text}");
    let told = "deadlock: 4 warps wait at tests/fixtures/variants/deadlock.cu:25 for mbarrier \
                0x400 (full+0), parity 0: phase 0 has 1 of 1 arrivals missing (initialised at";
    assert_eq!(flat(&text).matches(told).count(), 1, "{text}");
    assert!(
        text.contains("Each kind of data alone\n  benchmark, full, corner: hung, the same"),
        "{text}"
    );
    assert!(text.contains(" --emit ptx out\n"), "{text}");
    // A crash says it once, too.
    let text = debug("null-write", &[]);
    assert_eq!(
        flat(&text)
            .matches("global write of 4 bytes at 0x0")
            .count(),
        1,
        "{text}"
    );
    assert!(!text.contains("ptxas info"), "{text}");
    assert!(debug("null-write", &["-v"]).contains("ptxas info"));
}

#[test]
fn memory_and_code_are_written_where_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (dump, code) = (
        path("dump").display().to_string(),
        path("code").display().to_string(),
    );
    let more = [
        "--shape",
        "ragged",
        "--dump",
        "c,expected,sfa,groups:u64",
        &dump,
        "--emit",
        "ptx,cubin",
        &code,
    ];
    let text = debug("missing-silu", &more);
    assert!(text.contains(&format!("wrote {dump}/c-g2.npy")), "{text}");
    let c = fs::read(path("dump/c-g1.npy")).expect("a dump");
    let header = String::from_utf8_lossy(&c[10..128]).into_owned();
    assert!(
        header.contains("'descr': '<f2'") && header.contains("(76, 128,)"),
        "{header}"
    );
    assert_eq!(c.len(), 128 + 76 * 128 * 2);
    assert!(path("dump/groups.npy").exists() && path("dump/sfa-g0.npy").exists());
    assert!(
        fs::read_to_string(path("code/missing-silu.ptx"))
            .expect("PTX")
            .contains(".entry dual_gemm")
    );
    assert!(
        fs::read(path("code/missing-silu.cubin"))
            .expect("a cubin")
            .starts_with(b"\x7fELF")
    );

    let more = ["--dump", "c", &dump, "--as", "text"];
    debug("plain", &more);
    let rows = fs::read_to_string(path("dump/c-g0.txt")).expect("a dump");
    assert_eq!(rows.lines().count(), 40);
    let unknown = tried("plain", &["--dump", "sfb", &dump]);
    assert!(unknown.contains("there is no buffer `sfb`"), "{unknown}");
    assert!(unknown.ends_with("[exit 2]"), "{unknown}");
}

#[test]
fn no_disassembler_is_said_when_all_the_rest_is_done() {
    let workspace = Workspace::begun("mine");
    let nowhere = [("PATH", "/nonexistent"), ("CUDA_HOME", "/nonexistent")];
    let text = mine(&workspace, &["--emit", "sass,ptx", "out"], &nowhere);
    match text.ends_with("[exit 0]") {
        // A toolkit in its usual place.
        true => assert!(workspace.path().join("out/mine.sass").exists(), "{text}"),
        false => assert!(
            text.contains("there is no nvdisasm and no cuobjdump"),
            "{text}"
        ),
    }
    assert!(workspace.path().join("out/mine.ptx").exists(), "{text}");
}

#[test]
fn what_belongs_to_the_call_before_is_stale() {
    let text = debug("lazy-after-first", &[]);
    assert!(text.contains("(call 2, "), "{text}");
    let text = debug("cached-output", &[]);
    assert!(text.contains("(call 2, "), "{text}");
}
