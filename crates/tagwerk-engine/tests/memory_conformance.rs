//! The memory store keeps the contract of stores.

use tagwerk_core::JobId;
use tagwerk_engine::conformance_tests;
use tagwerk_engine::store::Store;
use tagwerk_engine::testing::conformance::Bench;
use tagwerk_engine::testing::memory::MemoryStore;

#[derive(Default)]
struct MemoryBench(MemoryStore);

impl Bench for MemoryBench {
    fn store(&mut self) -> &mut dyn Store {
        &mut self.0
    }

    fn reopen(&mut self) {
        self.0 = self.0.reopen();
    }

    fn set_next_id(&mut self, next: JobId) {
        self.0.set_next_id(next);
    }

    fn damage(&mut self, id: JobId) {
        self.0.damage(id);
    }
}

conformance_tests!(MemoryBench::default);
