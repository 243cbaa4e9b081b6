//! Numbers in device memory.

use super::{DevicePtr, Memory, MemoryError};

/// A number that lies in device memory as in a register: little endian.
pub trait Value: Copy + private::Value {}

mod private {
    pub trait Value: Sized {
        const BYTES: usize;
        fn put(self, bytes: &mut [u8]);
        fn get(bytes: &[u8]) -> Self;
    }
}

macro_rules! values {
    ($($name:ty),+) => {$(
        impl Value for $name {}

        impl private::Value for $name {
            const BYTES: usize = size_of::<$name>();

            fn put(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            fn get(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("a chunk of its size"))
            }
        }
    )+};
}

values!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl Memory {
    /// Writes numbers to the device, one after the other.
    pub fn write_values<T: Value>(
        &mut self,
        ptr: DevicePtr,
        values: &[T],
    ) -> Result<(), MemoryError> {
        let mut bytes = vec![0; size_of_val(values)];
        for (value, place) in values.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
            value.put(place);
        }
        self.write(ptr, &bytes)
    }

    /// Reads `count` numbers from the device.
    pub fn read_values<T: Value>(
        &self,
        ptr: DevicePtr,
        count: usize,
    ) -> Result<Vec<T>, MemoryError> {
        let bytes = self.view(ptr, (count * T::BYTES) as u64)?;
        Ok(bytes.chunks_exact(T::BYTES).map(T::get).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were_written() {
        let mut memory = Memory::new();
        let at = memory.alloc(32).unwrap();
        memory.write_values(at, &[1.5f64, -2.0]).unwrap();
        memory.write_values(at.offset(16), &[-3i16, 7]).unwrap();
        assert_eq!(memory.read_values::<f64>(at, 2).unwrap(), [1.5, -2.0]);
        assert_eq!(
            memory.read_values::<i16>(at.offset(16), 2).unwrap(),
            [-3, 7]
        );
        assert_eq!(memory.read_vec(at.offset(16), 2).unwrap(), [0xfd, 0xff]);
        assert!(memory.read_values::<u64>(at, 5).is_err());
    }
}
