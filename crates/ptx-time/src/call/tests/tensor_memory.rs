//! Products and copies of tensor memory.

use super::*;
use ptx_emu::trace::TmemA;

/// As was published of B200s.
fn with_tensor_memory() -> Machine {
    let published = [
        ("tmem_product_column", 0.5),
        ("tmem_operand_line", 1.0),
        ("tmem_pair_operands", 3.0),
        ("tmem_product_latency", 136.0),
        ("tmem_a_latency", 104.0),
        ("tmem_pair_latency", 170.0),
        ("tmem_copy_line", 2.0),
        ("tmem_copy_latency", 160.0),
        ("tmem_move_column", 0.5),
        ("tmem_wide_column", 1.0),
        ("tmem_load_latency", 23.0),
        ("tmem_alloc_latency", 250.0),
    ];
    let mut machine = machine();
    for (name, number) in published {
        *machine.number_mut(name).expect("a name") = number;
    }
    machine
}

fn product(rows: u32, columns: u32, ctas: u32, a: TmemA) -> (Kind, Deed) {
    let deed = Deed::TmemMma {
        shape: [rows, columns, 64],
        ctas,
        columns,
        a,
    };
    (Kind::TmemMma, deed)
}

const SCALES: (Kind, Deed) = (
    Kind::TmemCopy,
    Deed::TmemCopy {
        bytes: 512,
        ctas: 1,
    },
);

/// Cycles from when work is handed to the tensor core to when a warp has waited for it.
fn in_tensor_memory_cycles(work: &[(Kind, Deed)], ctas: u32) -> f64 {
    let barrier = BarrierAt {
        rank: 0,
        address: 64,
    };
    let commit = Deed::TmemCommit { barrier, to: 1 };
    let around = |work: &[(Kind, Deed)]| {
        let mut deeds = vec![(Kind::Arrive, Deed::Init { barrier, count: 1 })];
        deeds.extend(work);
        deeds.push((Kind::TmemCommit, commit));
        deeds.push((Kind::Phase, Deed::Await { barrier, parity: 0 }));
        let places: Vec<usize> = (0..deeds.len()).collect();
        let ranks: &[&[&[usize]]] = &[&[&places], &[&[]]];
        let (code, trace) = kernel(&deeds, &ranks[..ctas as usize]);
        let launch = launched(&code, &trace, u64::from(ctas), ctas);
        let call = CallTimes::replay(&with_tensor_memory(), &[launch], false).expect("an end");
        call.launches[0].cycles
    };
    // Without any, the barrier hears of it at once.
    around(work) - around(&[])
}

#[test]
fn a_stream_of_products_takes_what_was_published() {
    // Cycles of one product more, in a long stream.
    let each = |product: (Kind, Deed), ctas| {
        let of = |count| in_tensor_memory_cycles(&vec![product; count], ctas);
        (of(40) - of(20)) / 20.0
    };
    for (rows, columns, ctas, a, cycles) in [
        (128, 64, 1, TmemA::Shared, 48.0),
        (128, 128, 1, TmemA::Shared, 64.0),
        (128, 256, 1, TmemA::Shared, 128.0),
        (128, 64, 1, TmemA::Tmem, 32.0),
        (128, 64, 1, TmemA::Kept, 32.0),
        (256, 64, 2, TmemA::Shared, 43.0),
        (256, 128, 2, TmemA::Shared, 64.0),
    ] {
        let took = each(product(rows, columns, ctas, a), ctas);
        assert!(
            (took - cycles).abs() < 0.5,
            "{rows} x {columns}: {took} instead of {cycles}"
        );
    }
    // One from shared memory, one from tensor memory, one of a pair: issue to the end of the wait.
    for (ctas, a, cycles) in [
        (1, TmemA::Shared, 136.0 + 64.0),
        (1, TmemA::Tmem, 104.0 + 64.0),
        (2, TmemA::Shared, 170.0 + 64.0),
    ] {
        let took = in_tensor_memory_cycles(&[product(128 * ctas, 128, ctas, a)], ctas);
        assert!((took - cycles).abs() < 25.0, "{took} instead of {cycles}");
    }
}

#[test]
fn copies_go_beside_the_product_before_them_and_before_the_one_behind() {
    let product = product(128, 128, 1, TmemA::Shared);
    let of = |work: &[(Kind, Deed)]| in_tensor_memory_cycles(&work.repeat(20), 1) / 20.0;
    let (alone, hidden) = (of(&[product]), of(&[SCALES, product]));
    assert!((hidden - alone).abs() < 2.0, "{hidden} {alone}");
    // Twenty of eight cycles are longer than a product.
    let bound = [[SCALES; 20].as_slice(), &[product]].concat();
    assert!((155.0..175.0).contains(&of(&bound)), "{}", of(&bound));
}

#[test]
fn the_even_cta_of_a_pair_tells_both() {
    let [near, far] = [0, 1].map(|rank| BarrierAt { rank, address: 64 });
    let deeds = [
        (
            Kind::Arrive,
            Deed::Init {
                barrier: near,
                count: 1,
            },
        ),
        (
            Kind::Arrive,
            Deed::Init {
                barrier: far,
                count: 1,
            },
        ),
        product(256, 128, 2, TmemA::Shared),
        (
            Kind::TmemCommit,
            Deed::TmemCommit {
                barrier: near,
                to: 0b11,
            },
        ),
        (
            Kind::Phase,
            Deed::Await {
                barrier: far,
                parity: 0,
            },
        ),
    ];
    let (code, trace) = kernel(&deeds, &[&[&[0, 2, 3]], &[&[1, 4]]]);
    let launch = launched(&code, &trace, 2, 2);
    let call = CallTimes::replay(&with_tensor_memory(), &[launch], false).expect("an end");
    let times = &call.launches[0];
    assert!(times.cycles > 170.0 + 64.0, "{}", times.cycles);
    for cta in &times.ctas {
        let (first, last) = (cta.first_mma.unwrap(), cta.last_mma.unwrap());
        assert_eq!(last - first, 64.0);
    }
    // Both tensor cores worked for it.
    assert_eq!(times.tensor_cycles, 64.0);
}

#[test]
fn columns_are_waited_for_until_another_cta_frees_them() {
    let time = |columns, resident| {
        let ctas = 1;
        let deeds = [
            (Kind::TmemColumns, Deed::TmemAlloc { columns, ctas }),
            (Kind::Slot, Deed::Sleep(4000)),
            (Kind::TmemColumns, Deed::TmemFree { columns, ctas }),
        ];
        let (code, trace) = kernel(&deeds, &[&[&[0, 1, 2]]]);
        let launch = Launched {
            resident,
            ..launched(&code, &trace, 16, 1)
        };
        let call = CallTimes::replay(&with_tensor_memory(), &[launch], false).expect("an end");
        call.launches[0].cycles
    };
    // Eight SMs, two CTAs each.
    let (half, all) = (time(256, 2), time(512, 2));
    assert!((4250.0..4350.0).contains(&half), "{half}");
    assert!((8500.0..8650.0).contains(&all), "{all}");
    assert!(time(256, 1) > 8500.0);
}

#[test]
fn loads_of_tensor_memory_share_a_partitions_way() {
    let load = |columns, bits| {
        let deed = Deed::TmemMove {
            columns,
            lanes: 32,
            bits,
            writes: false,
        };
        (Kind::TmemMove, deed)
    };
    let wait = (Kind::Slot, Deed::TmemWait { stores: false });
    let time = |deed, warps: usize| {
        let places: &[usize] = &[0, 1];
        let (code, trace) = kernel(&[deed, wait], &[&vec![places; warps]]);
        let launch = launched(&code, &trace, 1, 1);
        let call = CallTimes::replay(&with_tensor_memory(), &[launch], false).expect("an end");
        call.launches[0].cycles
    };
    let one = time(load(128, 32), 1);
    assert_eq!(time(load(128, 32), 4), one, "each has its own");
    let shared = time(load(128, 32), 8) - one;
    assert!((shared - 64.0).abs() < 4.0, "{shared}");
    let wide = time(load(128, 256), 1) - one;
    assert!((wide - 64.0).abs() < 1.0, "{wide}");
}

#[test]
fn an_epilogue_begins_when_tensor_memory_is_read() {
    let barrier = BarrierAt {
        rank: 0,
        address: 64,
    };
    let Event::Did { deed: store, .. } = two_tiles().1.ctas[0].warps[0][2] else {
        unreachable!("a store stands there")
    };
    let load = Deed::TmemMove {
        columns: 16,
        lanes: 32,
        bits: 32,
        writes: false,
    };
    let deeds = [
        (Kind::Arrive, Deed::Init { barrier, count: 1 }),
        product(128, 128, 1, TmemA::Shared),
        (Kind::TmemCommit, Deed::TmemCommit { barrier, to: 1 }),
        (Kind::Phase, Deed::Await { barrier, parity: 0 }),
        (Kind::TmemMove, load),
        (Kind::Global, store),
        (Kind::TmemMove, load),
        (Kind::Global, store),
    ];
    // One warp multiplies, another reads.
    let (code, trace) = kernel(&deeds, &[&[&[0, 1, 2], &[3, 4, 5, 6, 7]]]);
    let launch = launched(&code, &trace, 1, 1);
    let call = CallTimes::replay(&with_tensor_memory(), &[launch], false).expect("an end");
    let times = &call.launches[0];
    let [tile] = &times.epilogues[..] else {
        panic!("{:?}", times.epilogues)
    };
    assert_eq!(tile.warp, 1);
    assert!(tile.from > times.ctas[0].last_mma.unwrap(), "{tile:?}");
}

#[test]
fn tensor_memory_without_numbers_is_refused() {
    let (columns, ctas) = (512, 1);
    let alloc = (Kind::TmemColumns, Deed::TmemAlloc { columns, ctas });
    let (code, trace) = kernel(&[alloc, alloc], &[&[&[0, 1]]]);
    let launch = launched(&code, &trace, 1, 1);
    let refused = |machine| CallTimes::replay(&machine, &[launch], false).expect_err("refused");
    let mut machine = with_tensor_memory();
    machine.tmem = None;
    assert_eq!(machine.impossible(), None);
    assert_eq!(refused(machine), ReplayError::NoTensorMemory);
    let mut machine = with_tensor_memory();
    *machine.number_mut("tmem_product_column").expect("a name") = f64::NAN;
    assert_eq!(
        refused(machine),
        ReplayError::Machine("tmem_product_column")
    );
    let stuck = refused(with_tensor_memory()).to_string();
    assert!(
        stuck.contains("for 512 columns of tensor memory, of which 0 are free"),
        "{stuck}"
    );
    // All of them are given, or none.
    let without = |name: &str| (name != "tmem_alloc_latency").then_some(8.0);
    assert_eq!(Machine::from_numbers(without), Err("tmem_alloc_latency"));
    let hopper = |name: &str| (!name.starts_with("tmem_")).then_some(8.0);
    assert_eq!(Machine::from_numbers(hopper).map(|m| m.tmem), Ok(None));
}
