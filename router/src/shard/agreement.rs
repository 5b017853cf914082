//! Whether the ranks belong together: what each says of itself must agree.

use text_generation_protocol::{PROTOCOL_VERSION, v1};

/// Rank 0's answer, when every rank's agrees with it.
///
/// # Errors
/// A sentence that names the rank and both values.
pub(super) fn agree(infos: &[v1::InfoResponse]) -> Result<v1::InfoResponse, String> {
    let first = infos.first().ok_or("there is no shard")?;
    for (rank, info) in infos.iter().enumerate() {
        let same = |name: &str, found: u32, expected: usize| match found as usize == expected {
            true => Ok(()),
            false => Err(format!("rank {rank} says {name} {found}, expected {expected}")),
        };
        same("protocol version", info.protocol_version, PROTOCOL_VERSION as usize)?;
        same("rank", info.rank, rank)?;
        same("world size", info.world_size, infos.len())?;
        same("vocabulary size", info.vocab_size, first.vocab_size as usize)?;
        same("block size", info.block_size, first.block_size as usize)?;
    }
    if first.block_size == 0 || first.vocab_size == 0 {
        return Err(format!("block size {} and vocabulary {} must not be 0", first.block_size, first.vocab_size));
    }
    Ok(first.clone())
}
