//! Parses the output of NVRTC and ptxas.

use super::KernelReport;
use crate::catalog::Headers;
use dgx_core::domain::printable;

/// Registers, spills and shared memory of each kernel, and the remarks that
/// mean lost speed, from the log of `--ptxas-options=-v`.
pub(super) fn resources(log: &str) -> (Vec<KernelReport>, Vec<String>) {
    let mut kernels: Vec<KernelReport> = Vec::new();
    let mut remarks: Vec<String> = Vec::new();
    for line in log.lines() {
        if let Some(name) = quoted_after(line, "Compiling entry function '") {
            kernels.push(KernelReport {
                name: name.to_owned(),
                entry: name.to_owned(),
                ..KernelReport::default()
            });
        } else if let Some(kernel) = kernels.last_mut() {
            if line.contains("bytes spill stores") {
                kernel.spill_bytes += number_before(line, " bytes spill stores")
                    + number_before(line, " bytes spill loads");
            } else if line.contains("Used ") && line.contains(" registers") {
                kernel.registers = number_before(line, " registers");
                kernel.static_smem = number_before(line, " bytes smem");
            }
        }
        if let Some(remark) = remark(line)
            && !remarks.contains(&remark)
        {
            remarks.push(remark);
        }
    }
    remarks.extend(
        kernels
            .iter()
            .filter(|k| k.spill_bytes > 0)
            .map(|k| format!("{}: {} bytes of registers spilled", k.name, k.spill_bytes)),
    );
    let remarks = remarks.iter().map(|r| printable(r)).collect();
    (kernels, remarks)
}

/// ptxas codes of the C75xx family (serialised wgmma, ignored setmaxnreg) and its warnings, without
/// the prefix of every line; warnings about the source with their place.
fn remark(line: &str) -> Option<String> {
    if line.contains("): warning ") {
        return Some(line.trim().to_owned());
    }
    let important = line.starts_with("ptxas") && (line.contains("(C7") || line.contains("warning"));
    let text = line.split_once(": ").map_or(line, |(_, text)| text);
    important.then(|| text.trim().to_owned())
}

fn quoted_after<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let at = line.find(prefix)? + prefix.len();
    line[at..].split('\'').next()
}

fn number_before(line: &str, unit: &str) -> u32 {
    let Some(at) = line.find(unit) else { return 0 };
    let digits = line[..at]
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or("");
    digits.parse().unwrap_or(0)
}

/// The compiler's message in readable form: paths as in the repository, ptxas errors mapped from
/// the PTX line, which the user does not have, to the `.cu` line, and a remedy if a file cannot be
/// included.
pub(super) fn error_message(log: &str, ptx: &str, name: &str, headers: &Headers) -> String {
    let text = log_message(log, ptx, name, headers);
    match text.lines().any(says_error) {
        true => text,
        false => format!("{}\n{text}", printable(&unexplained(log, name))),
    }
}

/// The same for the whole log.
pub(super) fn log_message(log: &str, ptx: &str, name: &str, headers: &Headers) -> String {
    let here = std::env::current_dir()
        .map(|folder| format!("{}/", folder.display()))
        .unwrap_or_default();
    let mut lines = Vec::new();
    for line in instances(log, name)
        .lines()
        .filter(|l| !l.trim().is_empty())
    {
        let text = match ptx_line(line) {
            Some((number, rest)) => {
                let place = source_place(ptx, number, name).unwrap_or_else(|| name.to_owned());
                format!("{place}: {rest}")
            }
            None => line.to_owned(),
        };
        let text = match unopened(&text) {
            Some((text, file)) => format!("{text} ({})", headers.remedy(file)),
            None => text,
        };
        lines.push(match here.is_empty() {
            true => text,
            false => text.replace(&here, ""),
        });
    }
    printable(&lines.join("\n"))
}

/// The log with NVRTC's messages about an instance rewritten in terms of `kernel`, which names it;
/// the `#pragma` that NVRTC made is hidden.
fn instances(log: &str, name: &str) -> String {
    let mut plain = String::new();
    let mut lines = log.lines();
    while let Some(line) = lines.next() {
        let message = line.strip_prefix("__nv_name_map(");
        let Some((_, message)) = message.and_then(|rest| rest.split_once("): ")) else {
            plain.extend([line, "\n"]);
            continue;
        };
        let pragma = lines.next().unwrap_or_default().trim();
        let instance = pragma.trim_start_matches("#pragma nv_mangled_name ");
        // The line that marks the place in it.
        lines.next();
        let message = message.trim_start_matches("error: ");
        if !message.starts_with("Error in parsing name expression") {
            let hint = match message.starts_with("cannot determine which instance") {
                true => " (give all template arguments)",
                false => "",
            };
            plain.push_str(&format!(
                "{name}: error: `kernel` names {instance}: {message}{hint}\n"
            ));
        }
    }
    plain
}

/// Whether a line of a compiler's log is an error, not only a warning.
pub(crate) fn says_error(line: &str) -> bool {
    let mild = |word| line.contains(word);
    line.contains("error") && !["warning", "remark", "Remark"].iter().any(mild)
}

/// Maximum shared memory of a CTA on Hopper and Blackwell: 227 KiB.
const MOST_SHARED: u32 = 227 * 1024;

/// ptxas can refuse a kernel, for example one with too much shared memory, and log only its
/// resources.
fn unexplained(log: &str, name: &str) -> String {
    let shared = log.lines().map(|line| number_before(line, " bytes smem"));
    if let Some(shared) = shared.max().filter(|shared| *shared > MOST_SHARED) {
        return format!(
            "{name}: error: a kernel has {shared} bytes of static shared memory, and a CTA may \
             have {MOST_SHARED}"
        );
    }
    let used = log.lines().find_map(|line| line.split_once("Used "));
    let uses = used.map_or(String::new(), |(_, uses)| {
        format!("; a kernel uses {}", uses.trim())
    });
    format!("{name}: error: no code came of it, and the compiler gives no reason{uses}")
}

/// An error about a file that cannot be included, without the system's reason: the compiling
/// process can open no file at all.
fn unopened(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("open source file \"")?;
    let (file, reason) = rest.split_once('"')?;
    Some((&line[..line.len() - reason.len()], file))
}

/// `ptxas application ptx input, line 29; error : text` → (29, `error: text`).
fn ptx_line(line: &str) -> Option<(usize, String)> {
    let rest = line.strip_prefix("ptxas application ptx input, line ")?;
    let (number, rest) = rest.split_once(';')?;
    let (kind, text) = rest.split_once(':')?;
    Some((
        number.trim().parse().ok()?,
        format!("{}: {}", kind.trim(), text.trim()),
    ))
}

/// The `.loc` in force at a line of the PTX, as `file(line)`.
fn source_place(ptx: &str, number: usize, name: &str) -> Option<String> {
    let before = ptx.lines().take(number).collect::<Vec<_>>();
    let location = before
        .iter()
        .rev()
        .find_map(|l| l.trim_start().strip_prefix(".loc"))?;
    let mut words = location.split_whitespace();
    let (file, line) = (words.next()?, words.next()?);
    let path = ptx.lines().find_map(|l| {
        let rest = l.trim_start().strip_prefix(".file")?.trim_start();
        let (index, rest) = rest.split_once(char::is_whitespace)?;
        (index == file).then(|| rest.split('"').nth(1))?
    });
    let shown = match path {
        Some(path) if !path.ends_with(name) => path,
        _ => name,
    };
    Some(format!("{shown}({line})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "ptxas info    : 0 bytes gmem
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'dual'
ptxas info    : Compiling entry function 'dual' for 'sm_90a'
ptxas info    : Function properties for dual
ptxas         .     16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compile time = 1.5 ms
ptxas info    : Compiling entry function 'gate' for 'sm_90a'
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 20 registers, used 0 barriers
x.cu(18): warning #177-D: variable \"unused\" was declared but never referenced
      int unused;
          ^
";

    #[test]
    fn a_file_that_cannot_be_included_comes_with_the_rule() {
        let log = "x.cu(3): catastrophic error: cannot open source file \"/etc/x\": Too many \
            open files\n  #include \"/etc/x\"\n";
        let message = error_message(log, "", "x.cu", &Headers::default());
        assert!(message.starts_with("x.cu(3): "), "{message}");
        assert!(!message.contains("Too many"), "{message}");
        assert!(
            message.contains("nothing can be included here"),
            "{message}"
        );
    }

    #[test]
    fn a_refusal_without_a_reason_is_not_told_by_a_warning() {
        let log = "x.cu(18): warning #550-D: variable \"error\" was set but never used\n\
            ptxas info    : Used 40 registers, used 0 barriers, 300000 bytes smem\n";
        let message = error_message(log, "", "x.cu", &Headers::default());
        let first = message.lines().next().unwrap();
        assert!(says_error(first), "{first}");
        assert!(
            first.ends_with(
                "a kernel has 300000 bytes of static shared memory, and a CTA may have 232448"
            ),
            "{first}"
        );
        assert_eq!(message.lines().filter(|l| says_error(l)).count(), 1);
    }

    #[test]
    fn an_instance_that_is_none_is_told_in_the_words_of_the_front_matter() {
        let log = "__nv_name_map(2): error: cannot determine which instance of overloaded \
            function \"norm\" is intended\n  #pragma nv_mangled_name norm<float>\n      ^\n\
            __nv_name_map(2): error: Error in parsing name expression for lowered name lookup. \
            Input name expression was: \" norm < float >\"\n  #pragma nv_mangled_name \
            norm<float>\n      ^\n2 errors detected.\n";
        assert_eq!(
            error_message(log, "", "x.cu", &Headers::default()),
            "x.cu: error: `kernel` names norm<float>: cannot determine which instance of \
             overloaded function \"norm\" is intended (give all template arguments)\n\
             2 errors detected."
        );
    }

    #[test]
    fn reads_resources_and_remarks() {
        let (kernels, remarks) = resources(LOG);
        let dual = KernelReport {
            name: "dual".to_owned(),
            entry: "dual".to_owned(),
            registers: 168,
            spill_bytes: 20,
            static_smem: 1024,
            ..KernelReport::default()
        };
        assert_eq!(kernels[0], dual);
        assert_eq!(kernels[1].registers, 20);
        assert_eq!(remarks.len(), 3, "{remarks:?}");
        assert!(remarks[0].starts_with("(C7510)"));
        assert!(remarks[1].starts_with("x.cu(18): warning #177-D: "));
        assert!(remarks[2].contains("dual: 20 bytes"));
    }
}
