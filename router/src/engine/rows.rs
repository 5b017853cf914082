//! The live sequences by slot, the mirror of the shards' rows. A slot and its blocks are free again as soon as their
//! sequence is retired: plans run in order, and the next plan begins by releasing the row, so whatever a plan sent
//! earlier still writes there has happened before anyone else can use them.

use super::sequence::Sequence;

/// Names one sequence: the slot, and the serial that tells it from the slot's earlier holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowId {
    /// Its slot.
    pub slot: u32,
    /// Its serial.
    pub serial: u64,
}

/// The table of live sequences.
#[derive(Debug)]
pub struct Rows {
    table: Vec<Option<Box<Sequence>>>,
    free: Vec<u32>,
    /// Slots of live sequences in the order in which they began.
    order: Vec<u32>,
    /// Slots that the next plan has to release.
    released: Vec<u32>,
}

// === impl Rows ===

impl Rows {
    /// Room for so many sequences.
    pub fn new(slots: usize) -> Self {
        let free = (0..slots).rev().filter_map(|slot| u32::try_from(slot).ok()).collect();
        Self { table: (0..slots).map(|_| None).collect(), free, order: Vec::new(), released: Vec::new() }
    }

    /// Whether another sequence may begin.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Puts a sequence into a free slot.
    pub fn insert(&mut self, sequence: Box<Sequence>) -> Option<RowId> {
        let slot = self.free.pop()?;
        let row = RowId { slot, serial: sequence.serial };
        self.table[slot as usize] = Some(sequence);
        self.order.push(slot);
        Some(row)
    }

    /// The sequence in a slot.
    pub fn at(&self, slot: u32) -> Option<&Sequence> {
        self.table.get(slot as usize)?.as_deref()
    }

    /// The sequence in a slot.
    pub fn at_mut(&mut self, slot: u32) -> Option<&mut Sequence> {
        self.table.get_mut(slot as usize)?.as_deref_mut()
    }

    /// A sequence, unless it was retired in the meantime.
    pub fn get(&mut self, row: RowId) -> Option<&mut Sequence> {
        self.at_mut(row.slot).filter(|sequence| sequence.serial == row.serial)
    }

    /// Takes a sequence out. The next plan releases its row.
    pub fn retire(&mut self, slot: u32) -> Option<Box<Sequence>> {
        let sequence = self.table.get_mut(slot as usize)?.take()?;
        self.order.retain(|&other| other != slot);
        self.free.push(slot);
        self.released.push(slot);
        Some(sequence)
    }

    /// The slots that the next plan has to release; empty afterwards.
    pub fn take_released(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.released)
    }

    /// Whether the next plan has something to release.
    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Slots of live sequences in the order in which they began.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The live sequences in the order in which they began.
    pub fn live(&self) -> impl Iterator<Item = &Sequence> {
        self.order.iter().filter_map(|&slot| self.at(slot))
    }
}
