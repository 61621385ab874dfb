//! The handshakes that are under way, so many at most: when one more begins, the oldest is given up.
//!
//! So those who open connections and say nothing never take the places of those who are in, nor keep out who comes: to do
//! that they would have to open as many again in the time that an honest handshake takes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// See the module.
pub(in crate::serve) struct Crowd {
    most: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// By order of arrival. What is dropped here is told by that.
    by_arrival: BTreeMap<u64, oneshot::Sender<()>>,
    arrivals: u64,
}

/// A place among them.
pub(in crate::serve) struct Place {
    crowd: Arc<Crowd>,
    arrival: u64,
    given_up: oneshot::Receiver<()>,
}

impl Crowd {
    /// None yet, and never more than these.
    pub(in crate::serve) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), waiting: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Each change is one step, so a poisoned lock holds nothing half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub(in crate::serve) fn enter(self: &Arc<Self>) -> Place {
        let (sender, given_up) = oneshot::channel();
        let mut waiting = self.lock();
        let arrival = waiting.arrivals;
        waiting.arrivals += 1;
        if waiting.by_arrival.len() >= self.most {
            drop(waiting.by_arrival.pop_first());
        }
        waiting.by_arrival.insert(arrival, sender);
        drop(waiting);
        Place { crowd: Arc::clone(self), arrival, given_up }
    }
}

impl Place {
    /// Ends when it is given up for a newer one.
    pub(super) async fn given_up(&mut self) {
        // Nothing is ever sent; the sender is dropped.
        drop((&mut self.given_up).await);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.crowd.lock().by_arrival.remove(&self.arrival);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_given_up(place: &mut Place) -> bool {
        pin!(place.given_up()).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_oldest_goes_for_the_newest_and_who_has_left_takes_no_place() {
        let crowd = Crowd::new(3);
        let mut places: Vec<Place> = (0..3).map(|_| crowd.enter()).collect();
        assert!(places.iter_mut().all(|place| !is_given_up(place)));
        // The second has ended its handshake.
        drop(places.remove(1));
        places.push(crowd.enter());
        assert!(places.iter_mut().all(|place| !is_given_up(place)), "there was room");
        places.push(crowd.enter());
        let given_up: Vec<bool> = places.iter_mut().map(is_given_up).collect();
        assert_eq!(given_up, [true, false, false, false]);
        drop(places);
        assert!(crowd.lock().by_arrival.is_empty());
    }
}
