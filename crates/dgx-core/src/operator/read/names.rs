//! One namespace for sizes, tensors, constants, parts and functions.

use super::Reader;
use crate::diagnostic::InputError;
use crate::document::Spanned;
use crate::operator::language::{Meaning, functions};

/// Longest name of a size, a tensor or a constant.
const MAX_NAME: usize = 32;

/// Words of the language, of front matter, of the kernel's struct and of C++.
const RESERVED: &str = "and or not in if else inf nan groups sms tiles scratch index tile_begin \
    alignas alignof asm auto bool break case catch char class const constexpr continue decltype \
    default delete do double enum explicit export extern false float for friend goto inline int \
    long mutable namespace new noexcept nullptr operator private protected public register \
    requires return short signed sizeof static struct switch template this throw true try \
    typedef typename union unsigned using virtual void volatile while dgx";

const SHARED: &str = "choose another: tensors, sizes, constants, `let` and functions share names";

impl Reader<'_> {
    /// Gives `name` its meaning, unless it has one already.
    pub(super) fn declare(
        &mut self,
        name: &Spanned<String>,
        meaning: Meaning,
    ) -> Result<(), InputError> {
        let (word, span) = (name.get_ref().as_str(), name.span());
        let plain = word.len() <= MAX_NAME
            && word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !plain {
            let remedy = format!("use a letter, then letters, digits and _; {MAX_NAME} at most");
            let message = format!("`{}` cannot be a name", word.escape_debug());
            return self.refuse(span, message, remedy);
        }
        if functions().any(|known| known == word) {
            return self.refuse(span, format!("`{word}` is a function"), SHARED);
        }
        if RESERVED.split_whitespace().any(|known| known == word) {
            let remedy = "choose another: it means something in values, kernels or C++";
            return self.refuse(span, format!("`{word}` is reserved"), remedy);
        }
        if self.names.insert(word.to_owned(), meaning).is_some() {
            return self.refuse(span, format!("`{word}` has a meaning already"), SHARED);
        }
        Ok(())
    }
}
