//! Which of many names are meant.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use dgx_core::diagnostic::InputError;

/// Those with a text in them; with an empty one, all.
#[derive(Clone, Debug, Default)]
pub struct Only(String);

impl FromStr for Only {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Only {
    pub fn lets_in(&self, name: &str) -> bool {
        name.contains(&self.0)
    }

    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of the things that are meant; none is a mistake.
    pub fn of<T>(
        &self,
        things: impl IntoIterator<Item = T>,
        name: impl Fn(&T) -> &str,
    ) -> Result<Vec<T>, InputError> {
        let things = things.into_iter().filter(|thing| self.lets_in(name(thing)));
        let meant: Vec<T> = things.collect();
        match meant.is_empty() && !self.is_all() {
            true => Err(InputError::new(
                format!("no case has `{self}` in its name"),
                "dgx calibrate --list names them all",
            )),
            false => Ok(meant),
        }
    }
}
