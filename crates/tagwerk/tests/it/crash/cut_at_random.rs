//! The same clients as everywhere here, with the server left alone and their connections cut at random. A call without an
//! answer was done wholly or not at all, and what is repeated as documented is done once.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `TAGWERK_CRASH_CUTS` | how many requests are cut in each round | 150 |

use std::time::Duration;

use super::client::{Hand, Shared};
use super::gate::Gate;
use super::log::{Knowledge, Log};
use super::model::Silence;
use super::proxy::{Cut, End, Proxy};
use super::roles::{Gossip, Role};
use super::{Depth, EndOfRun, correct, drain, report, seed, verify};
use crate::server::Server;
use crate::support::dice::Dice;
use crate::support::{linger, setting};

/// When a client has had enough of a silent connection: longer than any of them waits for an answer, and than the machine
/// needs for one.
const PATIENCE: Duration = Duration::from_secs(3);
/// Of a hundred requests so many are cut, until there were enough.
const CHANCE: u64 = 20;
/// Of those that are cut, so many are left to a silent connection: they hold their client up.
const SILENT: u64 = 2;

/// Rounds on one server. With many more, calls of one key without an answer pile up until nobody can try all their orders.
const ROUNDS: u32 = 2;

#[test]
fn f003_cut_at_random_moments_everything_is_kept_and_nothing_is_done_twice() {
    let servers: u32 = setting::<u32>("TAGWERK_CRASH_ROUNDS", 8).div_ceil(4 * ROUNDS);
    for seed in (seed()..).take(servers as usize) {
        cut_at_random(seed);
    }
}

fn cut_at_random(seed: u64) {
    let (cuts, clients): (usize, usize) =
        (setting("TAGWERK_CRASH_CUTS", 150), setting("TAGWERK_CRASH_CLIENTS", 32));
    eprintln!("{ROUNDS} rounds of {cuts} cuts, TAGWERK_CRASH_SEED={seed}");
    let server = Server::start();
    super::roles::prepare(&server);
    let proxy = Proxy::new(server.addr(), || (Cut::None, End::Fin));
    let shared = Shared { gate: Gate::new(), log: Log::default(), patience: PATIENCE, expected: &[] };
    let (gossip, mut known) = (Gossip::default(), Knowledge::new(Silence::MeansEither));
    std::thread::scope(|scope| {
        for number in 0..clients {
            let dice = Dice::new(seed, 1 + u64::try_from(number).expect("a number"));
            let (hand, gossip) = (Hand::new(number, dice, &shared), &gossip);
            scope.spawn(move || Role::of(number).play(hand, gossip));
        }
        let end = EndOfRun(&shared.gate);
        for round in 1..=ROUNDS {
            let enough = proxy.cut_some(cuts, Dice::new(seed, 1_000_000 + u64::from(round)));
            shared.gate.open(proxy.addr());
            // Dropped without a word when a client that holds it panics; said when the last cut is made.
            enough.recv_timeout(Duration::from_mins(1)).expect("so many cuts within a minute");
            shared.gate.close();
            // What was cut off and is still on its way to the committer comes before this.
            linger(&mut server.client(), 0.1);
            shared.log.past.still();
            let depth = if round == ROUNDS { Depth::Whole } else { Depth::Touched };
            let found = verify(&server, &shared, &mut known, depth);
            report(&found, &server, &known, (seed, round));
            correct(&server, &gossip);
        }
        drop(end);
    });
    let silent: i64 = known.tallies().map(|(_, tally)| tally.silent).sum();
    eprintln!(
        "{} requests were cut, {silent} calls had no answer; {} jobs ended",
        proxy.cuts(),
        known.settled().len()
    );
    assert!(silent > 0, "nothing was cut off");
    shared.log.past.must_be_explained(Silence::MeansEither, ("cut", seed));
    drain(&server);
    assert!(!server.log().contains("panicked"), "the server panicked");
}

impl Proxy {
    /// Cuts so many of the requests that come from now on, and says so when it has.
    fn cut_some(&self, wanted: usize, mut dice: Dice) -> std::sync::mpsc::Receiver<()> {
        let (say, said) = std::sync::mpsc::channel();
        let mut left = wanted;
        self.choose(move || {
            if left == 0 || !dice.percent(CHANCE) {
                return (Cut::None, End::Fin);
            }
            left -= 1;
            if left == 0 {
                say.send(()).ok();
            }
            let loud: Vec<Cut> = Cut::ALL.into_iter().filter(|cut| *cut != Cut::Silent).collect();
            let cut = if dice.percent(SILENT) { Cut::Silent } else { *dice.pick(&loud) };
            // A reset right behind a request would let the next call of this client overtake it.
            let end = if cut == Cut::AfterRequest { End::Fin } else { *dice.pick(&End::ALL) };
            (cut, end)
        });
        said
    }
}
