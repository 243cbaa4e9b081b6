//! PTX emulator
