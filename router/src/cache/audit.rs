//! The check that no block is lost: each is either free or in exactly one table. The engine runs it whenever it gets
//! idle, so that a leak shows itself long before the cache is full. It only looks; it mends nothing.

use super::BlockAllocator;

/// The books do not balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "KV blocks do not balance: {total} in all, {free} free, {used} in use, {repeated} counted twice; \
     please report this as a defect of the router, and restart it if the number of free blocks keeps falling"
)]
pub struct Imbalance {
    /// Every block there is.
    pub total: usize,
    /// Entries of the free list.
    pub free: usize,
    /// Entries of all tables.
    pub used: usize,
    /// Entries that name a block which another entry names too, or one that does not exist.
    pub repeated: usize,
}

/// Checks that the free blocks and `tables` name every block exactly once. Takes time in proportion to all blocks.
///
/// # Errors
/// `Imbalance` with the counts.
pub fn audit<'a>(blocks: &BlockAllocator, tables: impl Iterator<Item = &'a [u32]>) -> Result<(), Imbalance> {
    let mut seen = vec![false; blocks.total()];
    let mut repeated = 0;
    let mut mark = |ids: &[u32]| {
        for &id in ids {
            match seen.get_mut(id as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => repeated += 1,
            }
        }
        ids.len()
    };
    let free = mark(blocks.free());
    let used: usize = tables.map(mark).sum();
    if repeated == 0 && free + used == blocks.total() {
        return Ok(());
    }
    Err(Imbalance { total: blocks.total(), free, used, repeated })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_books_pass() {
        let mut blocks = BlockAllocator::new(3, 4);
        let table = blocks.allocate(5, 5).expect("fits").blocks;
        assert_eq!(audit(&blocks, [table.as_slice()].into_iter()), Ok(()));
    }

    #[test]
    fn a_lost_block_is_found() {
        let mut blocks = BlockAllocator::new(3, 4);
        let lost = blocks.allocate(5, 5).expect("fits").blocks;
        assert_eq!(lost.len(), 2);
        let found = audit(&blocks, std::iter::empty());
        assert_eq!(found, Err(Imbalance { total: 3, free: 1, used: 0, repeated: 0 }));
    }

    #[test]
    fn a_block_in_two_places_is_found() {
        let mut blocks = BlockAllocator::new(3, 4);
        let table = blocks.allocate(9, 9).expect("fits").blocks;
        blocks.release(&table[..1], 0);
        let found = audit(&blocks, [table.as_slice()].into_iter());
        assert_eq!(found, Err(Imbalance { total: 3, free: 1, used: 3, repeated: 1 }));
    }
}
