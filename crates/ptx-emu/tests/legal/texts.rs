//! Constant expressions, and declarations that only some kernel's own instructions would need.

use crate::{kernel, module, run};

#[test]
fn constants_are_expressions_as_in_c() {
    let values = [
        ("(1<<5)|3", 35),
        ("5 > 3 ? 7 : 8", 7),
        ("0 ? 7 : 1 ? 8 : 9", 8),
        ("1 && 0", 0),
        ("2 || 0", 1),
        ("3 == 3", 1),
        ("3 != 3", 0),
        ("-1 < 0", 1),
        ("4 <= 3", 0),
        ("4 >= 4", 1),
        ("(.s64)3 + 1", 4),
        ("(.u64) -1 & 0xff", 255),
        ("1 | 2 ^ 3 & 2", 1),
        ("2 + 3 * 4 % 5", 4),
        ("~0 & 7", 7),
        ("!5 + 1", 1),
        ("017 + 0b11", 18),
    ];
    let lines: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(i, (text, _))| format!("mov.u32 %r2, {text}; st.global.u32 [%rd1+4*{i}], %r2;"))
        .collect();
    let found = run(&kernel(&lines.join("\n")), values.len());
    for ((text, expected), found) in values.iter().zip(found) {
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn texture_references_are_refused_where_they_are_used() {
    let text = format!(
        ".global .texref t;\n.global .samplerref s = {{filter_mode = linear, addr_mode_0 = wrap}};\n\
         .global .surfref u;\n.tex .u64 old;\n\
         .visible .entry reads(.param .texref p) {{ .reg .f32 %f<9>;\n\
         tex.1d.v4.f32.f32 {{%f1, %f2, %f3, %f4}}, [t, {{%f5}}]; ret; }}\n{}",
        kernel("st.global.u32 [%rd2], 3;")
    );
    let module = module(&text);
    let problem = module.refused()["reads"].problem.to_string();
    assert!(problem.contains("`t` is a reference"), "{problem}");
    assert_eq!(crate::launch(&module, 32).expect("runs"), [3; 32]);
}
