//! Compiles `shard.proto` with a pure Rust compiler, so that neither protoc nor a C compiler is needed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=shard.proto");
    let descriptors = protox::compile(["shard.proto"], ["."])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
