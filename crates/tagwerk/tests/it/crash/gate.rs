//! Holds clients back while no server is there, and knows when none of them is in a call or has still to write down what came
//! of one.

use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Whether clients may call, and whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open(SocketAddr),
    Closed,
    Over,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    inside: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    /// Closed, until a server is there.
    pub(crate) const fn new() -> Self {
        Self { state: Mutex::new(State { phase: Phase::Closed, inside: 0 }), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no client panicked")
    }

    fn set(&self, phase: Phase) {
        self.state().phase = phase;
        self.changed.notify_all();
    }

    /// A server listens here.
    pub(crate) fn open(&self, addr: SocketAddr) {
        self.set(Phase::Open(addr));
    }

    /// Lets nobody in and waits until everybody is out.
    pub(crate) fn close(&self) {
        self.set(Phase::Closed);
        let mut state = self.state();
        while state.inside > 0 {
            state = self.changed.wait(state).expect("no client panicked");
        }
    }

    /// Sends everybody home.
    pub(crate) fn end(&self) {
        self.set(Phase::Over);
    }

    /// Waits until a call may be made; `None` at the end.
    pub(crate) fn enter(&self) -> Option<Pass<'_>> {
        let mut state = self.state();
        loop {
            match state.phase {
                Phase::Open(addr) => {
                    state.inside += 1;
                    return Some(Pass { gate: self, addr });
                }
                Phase::Closed => state = self.changed.wait(state).expect("no client panicked"),
                Phase::Over => return None,
            }
        }
    }
}

/// Somebody is inside.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    gate: &'a Gate,
    /// The server to call.
    pub(crate) addr: SocketAddr,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.gate.state.lock() {
            state.inside -= 1;
        }
        self.gate.changed.notify_all();
    }
}
