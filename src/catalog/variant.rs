use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::diagnostic::SourceFile;
use crate::domain::{ContenderId, Status};
use crate::record::schema::Claim;

/// One `.cu` with its front matter read.
#[derive(Clone, Debug)]
pub struct Variant {
    pub name: String,
    /// Path and whole text, front matter included (it is a comment to the compiler).
    pub file: SourceFile,
    /// Include path for the compiler.
    pub include: Vec<PathBuf>,
    pub summary: String,
    pub parent: Option<String>,
    pub round: Option<u32>,
    pub claim: Option<Claim>,
    pub arch: String,
    /// What its author says becomes of it.
    pub expect: Status,
    pub params: BTreeMap<String, Vec<i64>>,
}

/// A variant with its parameters chosen: what competes.
#[derive(Clone, Debug)]
pub struct Contender {
    pub id: ContenderId,
    pub variant: Arc<Variant>,
    pub params: BTreeMap<String, i64>,
}
