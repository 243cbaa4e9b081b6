//! One word for each variant of an enum.

/// Gives the variants of an enum their words in tables, messages and run files.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal,)+ }) => {
        impl $name {
            /// All of them, in the order of their words.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Its word in tables, messages and run files.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
