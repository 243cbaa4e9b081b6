mod bad;
mod mutated;
mod paper;
mod work;

use super::*;

/// An operator from its text.
fn operator(text: &str) -> Result<Operator, InputError> {
    Operator::from_source(SourceFile {
        path: "operators/x.toml".into(),
        text: text.into(),
    })
}

fn sound(text: &str) -> Operator {
    operator(text).unwrap_or_else(|error| panic!("{error}\n  {}\n{text}", error.remedy()))
}

/// Checks that every step has the extents that its inputs give it.
fn check_extents(operator: &Operator) {
    let mistakes = operator.mistakes.iter().map(|mistake| &mistake.value);
    let values = operator
        .outputs
        .iter()
        .map(|output| &output.value)
        .chain(mistakes);
    for (value, sizes) in values.flat_map(|v| operator.small.iter().map(move |s| (v, s))) {
        let along = |id: NodeId, axis: usize| -> u64 {
            let extents = value.nodes[id].extents(sizes).unwrap();
            extents
                .len()
                .checked_sub(axis + 1)
                .map_or(1, |at| extents[at])
        };
        for (id, node) in value.nodes.iter().enumerate() {
            let rank = node.extents.len();
            assert!(node.inputs.iter().all(|input| *input < id) && rank <= MAX_RANK);
            for (axis, input) in (0..rank).flat_map(|a| node.inputs.iter().map(move |i| (a, *i))) {
                let (own, from) = (along(id, axis), along(input, axis));
                let text = || format!("{node:?}\n{}", operator.file.text);
                match &node.op {
                    Op::Unary(_)
                    | Op::Cast(_)
                    | Op::Softmax(_)
                    | Op::Cumsum(_)
                    | Op::Argsort(_) => {
                        assert_eq!(own, from, "{}", text());
                    }
                    Op::Binary(_) | Op::Where => {
                        assert!(from == own || from == 1, "{}", text());
                    }
                    Op::Take(at) if *at == axis => {
                        assert_eq!(own, along(node.inputs[1], axis), "{}", text());
                    }
                    Op::Take(_) => assert!(from == own || from == 1, "{}", text()),
                    Op::Transpose if axis < 2 => {
                        assert_eq!(own, along(input, 1 - axis), "{}", text());
                    }
                    Op::Permute(of) => assert_eq!(own, along(input, of[axis]), "{}", text()),
                    Op::MatMul => {
                        let [a, b] = [node.inputs[0], node.inputs[1]];
                        assert_eq!(along(a, 0), along(b, 1), "{}", text());
                        assert_eq!((along(id, 1), along(id, 0)), (along(a, 1), along(b, 0)));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The steps of a value, one letter-free line each: `3 MatMul [0, 2] [m, n]`.
fn steps(operator: &Operator, value: &Value) -> Vec<String> {
    let line = |(id, node): (usize, &Node)| {
        let extents: Vec<String> = node
            .extents
            .iter()
            .map(|e| e.shown(&operator.sizes))
            .collect();
        format!(
            "{id} {:?} {:?} [{}]",
            node.op,
            node.inputs,
            extents.join(", ")
        )
    };
    value.nodes.iter().enumerate().map(line).collect()
}

#[test]
fn every_operator_built_in_is_sound() {
    for name in names() {
        let operator = built_in(name).unwrap();
        assert_eq!(operator.name, name);
        assert!(!operator.mistakes.is_empty(), "{name}");
        check_extents(operator);
        for sizes in &operator.small {
            assert_eq!(operator.layout_error(sizes), None);
        }
    }
    assert!(find("no-such").is_err());
    assert_eq!(
        find("rms-norms").unwrap_err().remedy(),
        "did you mean `rms-norm`?"
    );
}

#[test]
fn a_part_that_occurs_twice_stands_once() {
    let dual = built_in("nvfp4-dual-gemm").unwrap();
    assert_eq!(
        steps(dual, &dual.outputs[0].value),
        [
            "0 Input(0) [] [m, k]",
            "1 Input(1) [] [n, k]",
            "2 Transpose [1] [k, n]",
            "3 MatMul [0, 2] [m, n]",
            "4 Unary(Silu) [3] [m, n]",
            "5 Input(2) [] [n, k]",
            "6 Transpose [5] [k, n]",
            "7 MatMul [0, 6] [m, n]",
            "8 Binary(Multiply) [4, 7] [m, n]",
        ]
    );
    let norm = built_in("rms-norm").unwrap();
    let value = &norm.outputs[0].value;
    let reads = |node: &&Node| node.op == Op::Input(0);
    assert_eq!(value.nodes.iter().filter(reads).count(), 1);
    let product = &value.nodes[1];
    assert_eq!(&norm.file.text[product.span.clone()], "x * x");
}

#[test]
fn an_index_has_the_extent_of_what_it_meets() {
    let attention = built_in("attention").unwrap();
    let value = &attention.outputs[0].value;
    let index = |axis: usize| value.nodes.iter().find(|node| node.op == Op::Index(axis));
    assert_eq!(index(0).unwrap().extents, [Extent::Size(2)]);
    let rows = index(1).unwrap();
    assert_eq!(rows.extents, [Extent::Size(2), Extent::Number(1)]);
    assert!(value.nodes.iter().all(|node| node.inputs.len() < 4));
    assert_eq!(
        value.node(value.root).extents,
        attention.outputs[0].tensor.extents
    );
}

#[test]
fn python_reads_a_value_as_it_is_read_here() {
    let root = |value: &str| {
        let text = format!(
            "summary = \"s\"\nsizes = [\"m\"]\n[in.x]\ntype = \"f32\"\nsize = [\"m\", \"m\"]\n\
             [out.y]\ntype = \"f32\"\nsize = [\"m\", \"m\"]\nvalue = \"{value}\"\n"
        );
        let operator = sound(&text);
        steps(&operator, &operator.outputs[0].value).join("; ")
    };
    for (one, other) in [
        ("x - x - x * 2", "(x - x) - (x * 2)"),
        ("-x @ x.T / 2", "(((-x) @ (x.T)) / 2)"),
        ("x // 2 % 3 * x", "((x // 2) % 3) * x"),
        (
            "where(x < 1 or x > 2 and x != 3, x, 0)",
            "where((x < 1) or ((x > 2) and (x != 3)), x, 0)",
        ),
        (
            "x[1:][:, :1].T @ x[:1, 1:].T * x",
            "((((x[1:])[:, :1]).T) @ ((x[:1, 1:]).T)) * x",
        ),
        ("x + .5 + 1_0e-1", "x + 0.5 + 1.0"),
    ] {
        assert_eq!(root(one), root(other), "{one}");
    }
}

#[test]
fn names_mean_what_is_written_above_them() {
    let operator = sound(
        "summary = \"two outputs\"\nsizes = [\"m\", \"n\", \"t\"]\nrequires = [\"t <= n\"]\n\
         small = [{ m = 4, n = 64, t = 8 }]\n[in.x]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n\
         [out.idx]\ntype = \"i32\"\nsize = [\"m\", \"t\"]\nvalue = \"argsort(-x, -1)[..., :t]\"\n\
         [out.p]\ntype = \"f32\"\nsize = [\"m\", \"t\"]\nlet = { s = \"softmax(x, -1)\" }\n\
         value = \"take(s, idx, -1)\"\n[out.p.mistake]\n\"the first\" = \"s[:, :t]\"\n",
    );
    assert_eq!(operator.layout_error(&[4, 64, 64]), None);
    let (message, _) = operator.layout_error(&[4, 64, 65]).unwrap();
    assert_eq!(
        message,
        "`argsort(-x, -1)[..., :t]` reaches beyond its axis"
    );
    let p = &operator.outputs[1];
    assert_eq!(p.value.node(p.value.root).op, Op::Take(0));
    assert!(p.value.nodes.iter().any(|node| node.op == Op::Output(0)));
    assert_eq!(
        (operator.mistakes.len(), operator.mistakes[0].output),
        (1, 1)
    );
}

#[test]
fn an_output_may_start_from_an_input() {
    let text = |start: &str| {
        format!(
            "summary = \"in place\"\nsizes = [\"m\"]\n[in.q0]\ntype = \"f16\"\nsize = [\"m\"]\n\
             [in.w]\ntype = \"f32\"\nsize = [\"m\"]\n\
             [out.q]\ntype = \"f16\"\nsize = [\"m\"]\nstart = \"{start}\"\nvalue = \"q0 * w\"\n"
        )
    };
    assert_eq!(sound(&text("q0")).outputs[0].start, Some(0));
    assert!(
        operator(&text("w"))
            .unwrap_err()
            .message()
            .contains("differ")
    );
    assert!(
        operator(&text("z"))
            .unwrap_err()
            .message()
            .contains("not an input")
    );
}

#[test]
fn a_range_may_follow_from_sizes() {
    let text = "summary = \"rows\"\nsizes = [\"t\", \"v\", \"d\"]\n\
        [in.w]\ntype = \"f16\"\nsize = [\"v\", \"d\"]\n\
        [in.id]\ntype = \"i32\"\nsize = [\"t\", 1]\nrange = [0, \"v - 1\"]\n\
        [out.y]\ntype = \"f16\"\nsize = [\"t\", \"d\"]\nvalue = \"take(w, id, -2)\"\n";
    assert_eq!(sound(text).inputs[1].range(&[4, 100, 8]), Some((0.0, 99.0)));
    let without = text.replace("range = [0, \"v - 1\"]\n", "");
    assert!(
        operator(&without)
            .unwrap_err()
            .message()
            .contains("no `range`")
    );
}

#[test]
fn the_schema_names_every_key() {
    let schema = schema(schemars::SchemaGenerator::default());
    let text = serde_json::to_string(&schema).unwrap();
    for key in [
        "requires", "mistake", "nvfp4", "\"let\"", "\"in\"", "\"out\"", "start",
    ] {
        assert!(text.contains(key), "{key}: {text}");
    }
    assert!(!text.contains("e8m0\""), "{text}");
}

/// One part is used along two axes of different extents.
#[test]
fn an_index_that_meets_two_extents_counts_both() {
    let text = "summary = \"s\"\nsizes = [\"m\", \"n\"]\n\
        [in.x]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n\
        [out.y]\ntype = \"f32\"\nsize = [\"m\", \"n\"]\n\
        let = { c = \"i(-1) + 2 * i(-2)\" }\nvalue = \"c + c.T + x\"\n";
    let operator = sound(text);
    check_extents(&operator);
    let lines = steps(&operator, &operator.outputs[0].value);
    let indices = lines.iter().filter(|line| line.contains("Index")).count();
    assert_eq!(indices, 4, "{lines:#?}");
}

/// The users' guide is true.
#[test]
fn the_guide_shows_what_is_read() {
    let guide = include_str!("../../../../../docs/operators.md");
    let block = guide.split("```toml\n").nth(1).unwrap();
    sound(block.split("```").next().unwrap());
    for name in language::functions().chain(names()) {
        let word = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
        assert!(guide.split(word).any(|found| found == name), "{name}");
    }
    let dual = built_in("nvfp4-dual-gemm").unwrap().file.text.to_string();
    let error = operator(&dual.replacen("silu(a @ b1.T)", "silu(a @ b1)", 1)).unwrap_err();
    assert!(
        guide.contains(error.message()) && guide.contains(error.remedy()),
        "{error}"
    );
    assert_eq!(error.location().unwrap(), "operators/x.toml:20:15");
}
