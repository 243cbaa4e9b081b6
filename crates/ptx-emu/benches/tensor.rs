//! Speed of the tensor pieces on one core: MMA FLOP/s per vector level, box copies, warp-wide
//! conversions. Throughput "elements" of the MMA groups are floating-point operations.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptx_emu::bench::{Work, pieces};

fn tensor(c: &mut Criterion) {
    pieces(&mut |group, name, work, run| {
        let mut group = c.benchmark_group(group);
        group.throughput(match work {
            Work::Flops(flops) => Throughput::Elements(flops),
            Work::Bytes(bytes) => Throughput::Bytes(bytes),
            Work::Instruction => Throughput::Elements(1),
        });
        group.bench_function(name, |b| b.iter(&mut *run));
        group.finish();
    });
}

criterion_group!(benches, tensor);
criterion_main!(benches);
