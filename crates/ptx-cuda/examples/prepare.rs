//! Fills a folder with the libraries: `cargo run --example prepare -- LIBRARY FOLDER`.

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(library), Some(folder)) = (args.next(), args.next()) else {
        return Err(std::io::Error::other("usage: prepare LIBRARY FOLDER"));
    };
    std::fs::create_dir_all(&folder)?;
    ptx_cuda::library::prepare(folder.as_ref(), &std::fs::read(library)?)
}
