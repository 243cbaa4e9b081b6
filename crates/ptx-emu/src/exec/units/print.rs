//! `vprintf`: what a kernel says, line by line, in the order of its CTAs.

use crate::exec::checked::Checked;
use crate::exec::cluster::Cluster;
use crate::exec::lanes::lanes;
use crate::exec::listen::agent::Agent;
use crate::exec::warp::{Warp, frames};
use crate::op::{LOCAL_WINDOW, R32, R64, Space};
use crate::report::Print;

/// Longest padding; wider ones are cut.
const MAX_WIDTH: usize = 1 << 10;

impl Cluster<'_> {
    /// Prints once for each lane; `d` is the number of arguments read.
    pub(crate) fn print(
        &mut self,
        w: &mut Warp,
        mask: u32,
        d: R32,
        format: R64,
        args: R64,
    ) -> Checked<()> {
        for lane in lanes(mask) {
            let (format, args) = (w.get64(format)[lane], w.get64(args)[lane]);
            let format = self.text(w, lane, format);
            let mut read = 0;
            let mut at = args;
            let mut argument = |cluster: &mut Self, w: &mut Warp, bytes: u64| {
                read += 1;
                // A kernel may pass any address; past the end of them all is nothing.
                let place = at.checked_next_multiple_of(bytes).unwrap_or(0);
                at = place.wrapping_add(bytes);
                cluster.argument(w, lane, place, bytes)
            };
            let mut line = String::new();
            let mut rest = format.as_str();
            while let Some((before, after)) = rest.split_once('%') {
                line.push_str(before);
                let (conversion, after) = Conversion::parse(after);
                rest = after;
                if conversion.kind == '%' {
                    line.push('%');
                    continue;
                }
                let width = match conversion.star {
                    true => argument(self, w, 4)? as u32 as usize,
                    false => conversion.width,
                };
                let value = argument(self, w, conversion.bytes())?;
                let text = match conversion.kind {
                    's' => self.text(w, lane, value),
                    _ => conversion.number(value),
                };
                line.push_str(&conversion.pad(text, width.min(MAX_WIDTH)));
            }
            line.push_str(rest);
            let [across, deep, _] = self.env.block;
            let thread = w.index * 32 + lane as u32;
            self.printed.add(Print {
                cta: self.ctas[w.cta as usize].id,
                thread: [
                    thread % across,
                    thread / across % deep,
                    thread / (across * deep),
                ],
                text: line,
            });
            w.set_lane(crate::op::Slot::W32(d), lane, read);
        }
        Ok(())
    }

    /// A zero-terminated string of the device, at most 256 bytes.
    pub(crate) fn text(&mut self, w: &mut Warp, lane: usize, address: u64) -> String {
        let mut bytes = Vec::new();
        for i in 0..256 {
            match self.read_block::<1>(
                Agent::Host,
                w,
                lane,
                Space::Generic,
                address.wrapping_add(i),
            ) {
                Ok([0]) | Err(_) => break,
                Ok([byte]) => bytes.push(byte),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// An argument of 4 or 8 bytes; compilers pass them in local memory.
    fn argument(&mut self, w: &mut Warp, lane: usize, at: u64, bytes: u64) -> Checked<u64> {
        let mut value = [0; 8];
        let local = at
            .checked_sub(LOCAL_WINDOW)
            .filter(|&offset| offset + bytes <= u64::from(self.env.program.local_bytes));
        match local {
            Some(offset) => {
                let memory = frames::local(w, lane, self.env.program.local_bytes);
                let source = &memory[offset as usize..][..bytes as usize];
                value[..bytes as usize].copy_from_slice(source);
            }
            None => {
                for (at, byte) in (at..).zip(&mut value[..bytes as usize]) {
                    [*byte] = self.read_block::<1>(Agent::Host, w, lane, Space::Generic, at)?;
                }
            }
        }
        Ok(u64::from_le_bytes(value))
    }
}

/// One `%…` of a format.
#[derive(Debug, Default, PartialEq)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    /// `*`: the width is an argument.
    star: bool,
    precision: Option<usize>,
    long: bool,
    kind: char,
}

impl Conversion {
    /// Reads what follows the percent sign, and gives the rest of the format.
    fn parse(text: &str) -> (Self, &str) {
        let mut found = Self {
            kind: '%',
            ..Self::default()
        };
        let mut in_precision = false;
        for (at, c) in text.char_indices() {
            let digit = c.to_digit(10).map(|digit| digit as usize);
            match (c, digit) {
                ('-', _) => found.left = true,
                ('+', _) => found.plus = true,
                (' ', _) => found.space = true,
                ('#', _) => found.alternate = true,
                ('0', _) if found.width == 0 && !in_precision => found.zero = true,
                ('*', _) => found.star = true,
                ('.', _) => {
                    in_precision = true;
                    found.precision = Some(0);
                }
                (_, Some(digit)) => {
                    let number = match in_precision {
                        true => found.precision.get_or_insert(0),
                        false => &mut found.width,
                    };
                    *number = (*number * 10 + digit).min(MAX_WIDTH);
                }
                ('h', _) => {}
                ('l' | 'j' | 'z' | 't', _) => found.long = true,
                (kind, _) => {
                    found.kind = kind;
                    return (found, &text[at + c.len_utf8()..]);
                }
            }
        }
        (found, "")
    }

    fn is_float(&self) -> bool {
        matches!(self.kind, 'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A')
    }

    /// Size of its argument: `char`, `short` and `float` are passed as `int` and `double`.
    fn bytes(&self) -> u64 {
        match self.long || self.is_float() || matches!(self.kind, 's' | 'p') {
            true => 8,
            false => 4,
        }
    }

    fn number(&self, bits: u64) -> String {
        let sign = |negative: bool| match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let signed = if self.long {
            bits as i64
        } else {
            i64::from(bits as i32)
        };
        let digits = |digits: String| {
            let least = self.precision.unwrap_or(1);
            format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())))
        };
        let prefix = |prefix: &'static str| if self.alternate { prefix } else { "" };
        match self.kind {
            'd' | 'i' => format!(
                "{}{}",
                sign(signed < 0),
                digits(signed.unsigned_abs().to_string())
            ),
            'u' => digits(bits.to_string()),
            'o' => format!("{}{}", prefix("0"), digits(format!("{bits:o}"))),
            'x' => format!("{}{}", prefix("0x"), digits(format!("{bits:x}"))),
            'X' => format!("{}{}", prefix("0X"), digits(format!("{bits:X}"))),
            'c' => char::from(bits as u8).to_string(),
            'p' => format!("{bits:#x}"),
            _ if self.is_float() => {
                let value = f64::from_bits(bits);
                let text = format!(
                    "{}{}",
                    sign(value.is_sign_negative()),
                    self.float(value.abs())
                );
                match self.kind.is_ascii_uppercase() {
                    true => text.to_uppercase(),
                    false => text,
                }
            }
            other => format!("%{other}"),
        }
    }

    /// A value without its sign.
    fn float(&self, value: f64) -> String {
        if !value.is_finite() {
            return if value.is_nan() {
                "nan".into()
            } else {
                "inf".into()
            };
        }
        let precision = self.precision.unwrap_or(6);
        match self.kind.to_ascii_lowercase() {
            'f' => format!("{value:.precision$}"),
            'g' => {
                let precision = precision.max(1);
                let scientific = exponential(value, precision - 1);
                let exponent: i32 = scientific
                    .split_once('e')
                    .and_then(|(_, exponent)| exponent.parse().ok())
                    .unwrap_or(0);
                match (-4..precision as i32).contains(&exponent) {
                    true => self.shorten(format!(
                        "{value:.*}",
                        (precision as i32 - 1 - exponent) as usize
                    )),
                    false => match scientific.split_once('e') {
                        Some((digits, exponent)) => {
                            format!("{}e{exponent}", self.shorten(digits.to_owned()))
                        }
                        None => scientific,
                    },
                }
            }
            _ => exponential(value, precision),
        }
    }

    /// `%g` drops trailing zeros.
    fn shorten(&self, text: String) -> String {
        match text.contains('.') && !self.alternate {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    }

    fn pad(&self, text: String, width: usize) -> String {
        let text = match (self.kind, self.precision) {
            ('s', Some(most)) => text.chars().take(most).collect(),
            _ => text,
        };
        let missing = width.saturating_sub(text.chars().count());
        if self.left {
            return format!("{text}{}", " ".repeat(missing));
        }
        let integer_precision = self.precision.is_some() && !self.is_float();
        if self.zero && !integer_precision && !matches!(self.kind, 's' | 'c') {
            let at = text.len() - text.trim_start_matches(['-', '+', ' ']).len();
            return format!("{}{}{}", &text[..at], "0".repeat(missing), &text[at..]);
        }
        format!("{}{text}", " ".repeat(missing))
    }
}

/// `d.ddde±dd`
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(format: &str, bits: u64) -> String {
        let (conversion, rest) = Conversion::parse(&format[1..]);
        assert_eq!(rest, "", "{format}");
        let width = conversion.width;
        conversion.pad(conversion.number(bits), width)
    }

    #[test]
    fn numbers_look_as_in_c() {
        let minus_five = -5i32 as u32 as u64;
        let cases = [
            ("%d", minus_five, "-5"),
            ("%-4d", 7, "7   "),
            ("%05d", minus_five, "-0005"),
            ("%.3d", 7, "007"),
            ("%u", minus_five, "4294967291"),
            ("%lld", -5i64 as u64, "-5"),
            ("%#x", 255, "0xff"),
            ("%8X", 255, "      FF"),
            ("%c", 113, "q"),
            ("%p", 16, "0x10"),
            ("%f", 1.5f64.to_bits(), "1.500000"),
            ("%6.2f", 1.5f64.to_bits(), "  1.50"),
            ("%+.1e", 12345f64.to_bits(), "+1.2e+04"),
            ("%g", 100000f64.to_bits(), "100000"),
            ("%g", 1e6f64.to_bits(), "1e+06"),
            ("%g", 0.0001f64.to_bits(), "0.0001"),
            ("%G", 1e-10f64.to_bits(), "1E-10"),
            ("%f", f64::NEG_INFINITY.to_bits(), "-inf"),
        ];
        for (format, bits, expected) in cases {
            assert_eq!(one(format, bits), expected, "{format}");
        }
    }
}
