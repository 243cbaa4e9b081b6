//! Operators as rounds, run files and workers name them.

use std::sync::{Arc, LazyLock, Mutex};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Operator, built_in, find, local_names, names};
use crate::diagnostic::{InputError, SourceFile};

/// The default operator.
pub fn default_operator() -> &'static Arc<Operator> {
    static OPERATOR: LazyLock<Arc<Operator>> = LazyLock::new(|| {
        let first = names().next().and_then(built_in);
        Arc::new(first.expect("an operator is built in").clone())
    });
    &OPERATOR
}

/// The operator of that name, or the default one without a name. A file in `operators/` takes
/// precedence over a built-in one.
pub fn named(name: Option<&str>) -> Result<Arc<Operator>, InputError> {
    let found = find(name.unwrap_or(&default_operator().name))?;
    Ok(match found == **default_operator() {
        true => Arc::clone(default_operator()),
        false => Arc::new(found),
    })
}

/// The names of all operators: those built in, and those in `operators/`.
pub fn known() -> impl Iterator<Item = String> {
    names().map(str::to_owned).chain(local_names())
}

/// An operator in run files and requests to workers: with its whole text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorRecord {
    pub name: String,
    /// Content hash of the text.
    pub digest: String,
    /// The file.
    pub text: String,
}

impl OperatorRecord {
    pub fn of(operator: &Operator) -> Self {
        Self {
            name: operator.name.clone(),
            digest: operator.digest.clone(),
            text: operator.file.text.to_string(),
        }
    }

    /// The record in a run file: `None` for the default operator.
    pub fn unless_default(operator: &Operator) -> Option<Self> {
        (*operator != **default_operator()).then(|| Self::of(operator))
    }

    /// The operator of this record. Each text is parsed once.
    pub fn read(&self) -> Result<Arc<Operator>, String> {
        static READ: Mutex<Vec<Arc<Operator>>> = Mutex::new(Vec::new());
        let mut read = READ.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let same = |o: &&Arc<Operator>| o.name == self.name && *o.file.text == *self.text;
        if let Some(known) = read.iter().chain([default_operator()]).find(same) {
            return Ok(Arc::clone(known));
        }
        let file = SourceFile {
            path: format!("operators/{}.toml", self.name).into(),
            text: self.text.as_str().into(),
        };
        let operator = Operator::from_source(file).map_err(|error| error.to_string())?;
        if operator.digest != self.digest {
            return Err(format!(
                "the text of operator `{}` is not its digest's",
                self.name
            ));
        }
        let operator = Arc::new(operator);
        read.push(Arc::clone(&operator));
        Ok(operator)
    }
}

/// For `#[serde(with = …)]`: an operator as its record.
pub mod wire {
    use super::*;

    pub fn serialize<S: Serializer>(operator: &Operator, wire: S) -> Result<S::Ok, S::Error> {
        OperatorRecord::of(operator).serialize(wire)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(wire: D) -> Result<Arc<Operator>, D::Error> {
        let record = OperatorRecord::deserialize(wire)?;
        record.read().map_err(serde::de::Error::custom)
    }
}
