use super::*;

fn write(drafts: &mut Drafts, region: &CachedRegion<'_>, offset: u64, value: u8) {
    drafts.pieces_written(region, offset, 1, |bytes, _| bytes[0] = value);
}

fn read(drafts: &mut Drafts, region: &CachedRegion<'_>, offset: u64) -> u8 {
    let mut byte = 0;
    drafts.pieces(region, offset, 1, |bytes, _| byte = bytes[0]);
    byte
}

#[test]
fn writes_are_private_until_published_and_the_last_one_wins() {
    let mut memory = Memory::new();
    let ptr = memory.alloc(1500).unwrap();
    let region = CachedRegion::of(&memory, ptr.0).unwrap();
    let (mut a, mut b) = (Drafts::new(true, 1), Drafts::new(true, 1));
    write(&mut a, &region, 1499, 1);
    write(&mut a, &region, 7, 1);
    write(&mut b, &region, 7, 2);
    write(&mut b, &region, 8, 2);
    assert_eq!(read(&mut a, &region, 7), 1);
    assert_eq!(read(&mut a, &region, 8), 0);
    assert_eq!(memory.read_vec(ptr, 1500).unwrap(), vec![0; 1500]);
    assert!(publish(&memory, vec![b, a]));
    let now = memory.read_vec(ptr, 1500).unwrap();
    assert_eq!((now[7], now[8], now[1499]), (1, 2, 1));
    assert!(!publish(&memory, vec![Drafts::new(true, 1)]));
}

#[test]
fn each_byte_is_the_last_writers_even_with_the_value_it_had() {
    let mut memory = Memory::new();
    let ptr = memory.alloc(2048).unwrap();
    memory.write(ptr.offset(8), &[1, 0, 5]).unwrap();
    let region = CachedRegion::of(&memory, ptr.0).unwrap();
    let mut drafts = [(0x0101u16, 7), (0x0002, 5)].map(|(word, byte)| {
        let mut drafts = Drafts::new(true, 1);
        for (i, value) in word.to_le_bytes().into_iter().enumerate() {
            write(&mut drafts, &region, 8 + i as u64, value);
        }
        write(&mut drafts, &region, 10, byte);
        drafts
    });
    let drafts = drafts.iter_mut().map(Drafts::take).collect();
    publish(&memory, drafts);
    assert_eq!(memory.read_vec(ptr.offset(8), 3).unwrap(), [2, 0, 5]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn what_is_around_bytes_written_over_is_filled_in_when_it_is_read() {
    let mut memory = Memory::new();
    let ptr = memory.alloc(1500).unwrap();
    memory.write(ptr, &[7; 1500]).unwrap();
    let region = CachedRegion::of(&memory, ptr.0).unwrap();
    let mut drafts = Drafts::new(true, 1);
    let lanes = std::array::from_fn(|lane| 1100 + 8 * lane as u32);
    let mut expected = vec![7; 1500];
    let mut fill = |page: HostBytes<'_>, start: u32, first: u32| {
        let within = (first - start) as usize;
        // SAFETY: nobody else has the page.
        unsafe { page.part(within..within + 4).write() }.fill(1);
        expected[first as usize..first as usize + 4].fill(1);
    };
    let (page, start) = drafts.over_range(&region, 1032, 4);
    fill(page, start, 1032);
    let (page, start) = drafts.at_lanes(&region, &lanes, 4, false);
    lanes.iter().for_each(|&first| fill(page, start, first));
    let seen: Vec<u8> = (0..1500).map(|at| read(&mut drafts, &region, at)).collect();
    assert_eq!(seen, expected);
    publish(&memory, vec![drafts]);
    assert_eq!(memory.read_vec(ptr, 1500).unwrap(), expected);
}

#[test]
fn a_range_is_published_where_it_was_marked() {
    let mut memory = Memory::new();
    let ptr = memory.alloc(4096).unwrap();
    let region = CachedRegion::of(&memory, ptr.0).unwrap();
    // Rows of 16 bytes, every other one of which is somebody else's.
    let drafts = [0u64, 1].map(|who| {
        let mut drafts = Drafts::new(true, 1);
        for row in 0..64 {
            drafts.mark(&region, 32 * row + 16 * who, 16);
        }
        let mut pieced = Pieced::new();
        // SAFETY: neither pages nor pieces are taken before the bytes were used.
        let at = unsafe { drafts.range(&memory, ptr.0, 2048, true, &mut pieced) };
        // SAFETY: nobody else has them.
        let bytes = unsafe { at.unwrap().write() };
        for row in bytes.chunks_mut(16).skip(who as usize).step_by(2) {
            row.fill(who as u8 + 1);
        }
        drafts.put_back(&memory, pieced);
        drafts
    });
    publish(&memory, drafts.into());
    let now = memory.read_vec(ptr, 2048).unwrap();
    let expected = |i: usize| 1 + (i / 16 % 2) as u8;
    assert_eq!(now, Vec::from_iter((0..2048).map(expected)));
}

#[test]
fn a_range_over_several_pages_is_pieced_together_and_put_back() {
    let mut memory = Memory::new();
    let ptr = memory.alloc(4096).unwrap();
    let region = CachedRegion::of(&memory, ptr.0).unwrap();
    let mut drafts = Drafts::new(true, 1);
    write(&mut drafts, &region, 1023, 9);
    let mut pieced = Pieced::new();
    // SAFETY: as above.
    let at = unsafe { drafts.range(&memory, ptr.0 + 1022, 1028, true, &mut pieced) };
    // SAFETY: as above.
    let bytes = unsafe { at.unwrap().write() };
    assert_eq!(bytes[..3], [0, 9, 0]);
    bytes.fill(5);
    drafts.mark(&region, 1022, 1028);
    drafts.put_back(&memory, pieced);
    publish(&memory, vec![drafts]);
    let now = memory.read_vec(ptr, 4096).unwrap();
    assert_eq!(now.iter().filter(|&&b| b == 5).count(), 1028);
    assert_eq!((now[1021], now[2050]), (0, 0));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn stores_are_kept_as_they_come_until_somebody_looks() {
    let expected = |word: usize| match word {
        0..32 if word.is_multiple_of(2) => 700 + word as u32,
        0..32 => word as u32,
        250..282 => 900 + (word as u32 - 250),
        _ => 0,
    };
    for looks in [false, true] {
        let mut memory = Memory::new();
        let ptr = memory.alloc(1500).unwrap();
        let region = CachedRegion::of(&memory, ptr.0).unwrap();
        let mut drafts = Drafts::new(true, 1);
        let lanes = |first: u32| V32(std::array::from_fn(|lane| first + lane as u32));
        assert!(drafts.keeps(0) && !drafts.holds(0));
        assert!(drafts.keep(0, u32::MAX, Lie::Run(0), lanes(0)));
        // Every other lane over what is there, and a row over the end of a page.
        let places = V32(std::array::from_fn(|lane| 4 * lane as u32));
        assert!(!drafts.keep(0, 0x5555_5555, Lie::Apart(places), lanes(700)));
        drafts.keep(0, u32::MAX, Lie::Run(1000), lanes(900));
        assert!(drafts.holds(0));
        if looks {
            assert_eq!(read(&mut drafts, &region, 4), 1);
            assert!(!drafts.keeps(0), "what comes later goes into pages");
            assert_eq!(memory.read_vec(ptr, 4).unwrap(), [0; 4]);
        }
        assert!(publish(&memory, vec![drafts]));
        let now = memory.read_vec(ptr, 1500).unwrap();
        let words = now
            .as_chunks::<4>()
            .0
            .iter()
            .map(|w| u32::from_le_bytes(*w));
        assert!(words.eq((0..375).map(expected)));
    }
}
