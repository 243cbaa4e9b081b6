//! How the program ends when nobody can hear it.

use std::fs::File;
use std::process::{Command, Output, Stdio};

#[test]
fn a_list_that_finds_no_room_is_no_success() {
    let full = File::options().write(true).open("/dev/full");
    let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_ptx-conformance"))
        .arg("list")
        .stdout(full.expect("/dev/full"))
        .stderr(Stdio::piped())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.starts_with("standard output: "), "{said}");
}
