//! NumPy's file format, as far as arrays of numbers need it: a magic word, the version, a line of
//! Python with type and shape, and the bytes. (numpy.org, "NEP 1", version 1.0.)

/// Bytes before the data are a multiple of this.
const ALIGN: usize = 64;

/// A little-endian array in C order; `descr` is NumPy's word for the element,
/// e.g. `<f2`.
pub(super) fn npy(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
    let mut header = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}",
        sizes.join(" ")
    );
    let before = 10;
    let end = (before + header.len() + 1).next_multiple_of(ALIGN);
    header.push_str(&" ".repeat(end - before - header.len() - 1));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    // Shapes have a few dimensions, so 16 bits are plenty.
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.into_bytes());
    file.extend(data);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_what_numpy_reads() {
        let file = npy("<f2", &[2, 3], &[7; 12]);
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        let length = u16::from_le_bytes([file[8], file[9]]) as usize;
        assert_eq!((10 + length) % ALIGN, 0);
        let header = std::str::from_utf8(&file[10..10 + length]).unwrap();
        let expected = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3,), }";
        assert_eq!(header.trim_end(), expected);
        assert!(header.ends_with('\n'));
        assert_eq!(file[10 + length..], [7; 12]);
        let one = npy("|u1", &[5], &[0; 5]);
        assert!(String::from_utf8_lossy(&one).contains("(5,)"));
    }
}
