//! The way between clients and servers: requests are delayed, reordered, lost and doubled, answers are lost, connections
//! are closed while the server works.

use std::sync::Arc;

use super::{Event, World};
use crate::actors::Letter;
use crate::call::{Call, Cell, Reply};
use crate::words;

/// A call under way.
pub(super) struct Request {
    pub(super) player: usize,
    pub(super) call: Arc<Call>,
    pub(super) cell: Arc<Cell>,
    pub(super) node: usize,
    /// The answer on its way back.
    pub(super) reply: Option<Reply>,
    /// The client still waits.
    pub(super) waiting: bool,
    /// When a claim that waits is over at the server.
    pub(super) deadline: i64,
}

impl World {
    /// A client sends a call.
    pub(super) fn post(&mut self, player: usize, letter: Letter) {
        let rates = self.plan.rates;
        self.tally.count("calls", letter.call.kind());
        let call = Arc::new(letter.call);
        let request = self.request(player, &call);
        let name = &self.players[player].name;
        let text = format!("#{request} {name}: {}", words::call(&call));
        self.trace.line(self.mono(), call.jobs(), &text);
        self.later(letter.patience_ms, Event::GiveUp(request));
        if self.chance.per_mille(rates.request_lost) {
            self.tally.count("network", "request lost");
            return;
        }
        let way = self.way();
        self.later(way, Event::Arrive(request));
        if self.chance.per_mille(rates.duplicated) {
            self.tally.count("network", "request doubled");
            let double = self.request(player, &call);
            self.requests[double].waiting = false;
            let text = format!("#{double} is #{request} again, by the network");
            self.trace.line(self.mono(), call.jobs(), &text);
            let way = self.way();
            self.later(way, Event::Arrive(double));
        }
    }

    pub(super) fn request(&mut self, player: usize, call: &Arc<Call>) -> usize {
        let node = self.chance.below(self.servers.len());
        self.requests.push(Request {
            player,
            call: Arc::clone(call),
            cell: Arc::default(),
            node,
            reply: None,
            waiting: true,
            deadline: 0,
        });
        self.requests.len() - 1
    }

    /// How long something is under way. Who is slow is overtaken by others.
    fn way(&mut self) -> i64 {
        if self.chance.per_mille(self.plan.rates.slow_way) {
            self.tally.count("network", "slow way");
            return self.chance.between(100, 6_000);
        }
        self.chance.between(0, 5)
    }

    /// A request reaches its server, unless that is down.
    pub(super) fn arrive(&mut self, request: usize) {
        let node = self.requests[request].node;
        let mono = self.mono();
        let server = &mut self.servers[node];
        if server.node.is_none() {
            self.tally.count("network", "server down");
            return;
        }
        server.inbox.push_back(request);
        let at = server.busy_until.max(mono);
        if at < server.next_step {
            self.step_at(node, at);
        }
        if self.chance.per_mille(self.plan.rates.connection_closed) && self.open {
            self.tally.count("network", "connection closed");
            self.requests[request].cell.close();
        }
    }

    /// A server has answered. The answer may get lost.
    pub(super) fn send_back(&mut self, request: usize, reply: Reply) {
        let lost =
            self.requests[request].cell.is_gone() || self.chance.per_mille(self.plan.rates.answer_lost);
        if lost && self.open {
            self.tally.count("network", "answer lost");
            return;
        }
        self.requests[request].reply = Some(reply);
        let way = self.way();
        self.later(way, Event::Answer(request));
    }

    /// An answer reaches its client.
    pub(super) fn answered(&mut self, request: usize) {
        let Some(reply) = self.requests[request].reply.take() else { return };
        self.board.pin(&reply);
        self.hear(request, Some(&reply));
    }

    /// A client has waited long enough. It may close its connection, too.
    pub(super) fn give_up(&mut self, request: usize) {
        if self.requests[request].waiting && self.chance.percent(50) {
            self.requests[request].cell.close();
        }
        self.hear(request, None);
    }

    fn hear(&mut self, request: usize, reply: Option<&Reply>) {
        if !std::mem::replace(&mut self.requests[request].waiting, false) || !self.open {
            return;
        }
        if reply.is_none() {
            self.tally.count("network", "client gave up");
        }
        let (player, call) = (self.requests[request].player, Arc::clone(&self.requests[request].call));
        self.at_desk(player, |actor, desk| actor.heard(desk, &call, reply));
    }
}
