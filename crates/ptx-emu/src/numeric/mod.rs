//! Conversions and float helpers with the bits a GPU gives.
