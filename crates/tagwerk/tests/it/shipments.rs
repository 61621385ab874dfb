//! The example `shipments`: a worker with the effect journal, over plain HTTP, and a carrier with a database of its own. The worker
//! is killed after each of its calls in turn, the server too. Each order must be shipped once.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::crash::proxy::read_message;
use crate::examples_workers::examples;
use crate::server::Server;
use crate::support::{enqueue_all, list, setting};

/// The highest number of a call after which the worker dies: two orders have ten, and each is met in either half.
const CALLS: usize = 12;
/// Of so many rounds one kills the server in the place of the worker.
const SERVER_EVERY: usize = 20;

/// When in a call the worker dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// Nobody has heard of the call.
    BeforeRequest,
    /// It was done, and its answer is lost.
    BeforeAnswer,
    /// It has its answer.
    AfterAnswer,
}

const MOMENTS: [Moment; 3] = [Moment::BeforeRequest, Moment::BeforeAnswer, Moment::AfterAnswer];

/// What is to happen in the present round.
#[derive(Debug)]
struct Plan {
    calls: usize,
    fatal: usize,
    moment: Moment,
    kills: Option<Pid>,
    told: mpsc::Sender<()>,
}

impl Plan {
    /// Kills, if this is the moment.
    fn reach(&mut self, call: usize, moment: Moment) -> bool {
        if call != self.fatal || moment != self.moment {
            return false;
        }
        let Some(pid) = self.kills.take() else { return false };
        kill_process(pid, Signal::KILL).expect("it lives");
        self.told.send(()).expect("the test waits");
        true
    }
}

/// Where one of the two servers is now, and what becomes of calls to it.
#[derive(Clone)]
struct Path {
    target: Arc<Mutex<SocketAddr>>,
    plan: Arc<Mutex<Option<Plan>>>,
}

impl Path {
    /// The address at which the worker finds it.
    fn open(target: SocketAddr, plan: &Arc<Mutex<Option<Plan>>>) -> (Self, SocketAddr) {
        let path = Self { target: Arc::new(Mutex::new(target)), plan: Arc::clone(plan) };
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let addr = listener.local_addr().expect("an address");
        let shared = path.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let path = shared.clone();
                // A connection that breaks is the worker's to deal with.
                std::thread::spawn(move || path.converse(client).ok());
            }
        });
        (path, addr)
    }

    fn converse(&self, mut client: TcpStream) -> std::io::Result<()> {
        // The library of the worker opens a connection for each call.
        let Some(request) = read_message(&mut client)? else { return Ok(()) };
        let call = {
            let mut plan = self.plan.lock().expect("no panic");
            let Some(plan) = plan.as_mut() else { return Ok(()) };
            plan.calls += 1;
            plan.calls
        };
        let reached = |moment| {
            self.plan.lock().expect("no panic").as_mut().is_some_and(|plan| plan.reach(call, moment))
        };
        if reached(Moment::BeforeRequest) {
            return Ok(());
        }
        let target = *self.target.lock().expect("no panic");
        let mut server = TcpStream::connect(target)?;
        server.write_all(&request.bytes)?;
        let Some(answer) = read_message(&mut server)? else { return Ok(()) };
        if reached(Moment::BeforeAnswer) {
            return Ok(());
        }
        client.write_all(&answer.bytes)?;
        reached(Moment::AfterAnswer);
        Ok(())
    }
}

/// A process that is killed when the test ends, by its own id.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn script(name: &str) -> PathBuf {
    examples().join("shipments").join(name)
}

/// The carrier, and where it listens.
fn carrier(server: &Server, option: Option<&str>) -> (Running, SocketAddr) {
    let mut command = Command::new("python3");
    command.arg(script("carrier.py")).args(["--port", "0"]).current_dir(server.dir());
    command.args(option).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("python3");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let addr = line.trim().strip_prefix("listening on http://").and_then(|addr| addr.parse().ok());
    (Running(child), addr.unwrap_or_else(|| panic!("no address: {line:?}")))
}

struct Stage {
    server: Server,
    _carrier: Running,
    carrier_addr: SocketAddr,
    plan: Arc<Mutex<Option<Plan>>>,
    tagwerk: (Path, SocketAddr),
    shop: SocketAddr,
    mode: &'static str,
}

impl Stage {
    fn new(mode: &'static str, orders: usize) -> Self {
        let server = Server::start();
        let (process, carrier_addr) = carrier(&server, (mode == "key").then_some("--keys"));
        let plan = Arc::new(Mutex::new(None));
        let tagwerk = Path::open(server.addr(), &plan);
        let (_, shop) = Path::open(carrier_addr, &plan);
        let settings = json!({"max_retries": 1000, "max_lease_losses": 100, "retry": {"base_seconds": 0}});
        server.put("/types/create-shipment", &settings).expect(200);
        let jobs: Vec<Value> = (0..orders)
            .map(|n| json!({"type": "create-shipment", "payload": {"order": format!("A-{n}")}}))
            .collect();
        enqueue_all(&mut server.client(), &jobs);
        Self { server, _carrier: process, carrier_addr, plan, tagwerk, shop, mode }
    }

    /// A worker, which is not yet let through.
    fn worker(&self) -> Running {
        let mut command = Command::new("python3");
        command.arg(script("worker.py")).arg(self.mode).env("LEASE", "1").current_dir(self.server.dir());
        command.env("TAGWERK_URL", format!("http://{}", self.tagwerk.1));
        command.env("CARRIER_URL", format!("http://{}", self.shop));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("python3"))
    }

    /// One death after this call. A server that was killed comes back, and the worker goes on until the next round.
    fn round(&mut self, n: usize) {
        let (told, death) = mpsc::channel();
        let mut plan = self.plan.lock().expect("no panic");
        let worker = self.worker();
        let kills_server = n % SERVER_EVERY == SERVER_EVERY - 1;
        let victim = if kills_server { self.server.pid() } else { worker.0.id() };
        *plan = Some(Plan {
            calls: 0,
            fatal: 1 + n % CALLS,
            moment: MOMENTS[n / CALLS % MOMENTS.len()],
            kills: Pid::from_raw(victim.try_into().expect("a process id")),
            told,
        });
        drop(plan);
        death.recv().expect("the plan is kept");
        if kills_server {
            self.server.restart();
            *self.tagwerk.0.target.lock().expect("no panic") = self.server.addr();
        }
        drop(worker);
        *self.plan.lock().expect("no panic") = None;
    }

    /// Lets a worker do what is left, with nobody dying.
    fn finish(&self) {
        let (told, _death) = mpsc::channel();
        let quiet = Plan { calls: 0, fatal: 0, moment: Moment::AfterAnswer, kills: None, told };
        let mut plan = self.plan.lock().expect("no panic");
        *plan = Some(quiet);
        drop(plan);
        let _worker = self.worker();
        let mut client = self.server.client();
        for job in list(&mut client, "") {
            let job = client.get(&format!("/jobs/{}?wait_seconds=60", job["id"])).expect(200);
            assert_eq!(job["status"], "completed", "{job}");
        }
    }

    /// How often each order was shipped, as the carrier says.
    fn shipped(&self) -> BTreeMap<String, usize> {
        let mut times = BTreeMap::new();
        let shipments = crate::client::Client::new(self.carrier_addr).get("/shipments").expect(200);
        for shipment in shipments.as_array().expect("a list") {
            *times.entry(shipment["order"].as_str().expect("an order").to_owned()).or_default() += 1;
        }
        times
    }
}

/// So many deaths, and what was shipped in the end. There must nearly always be an order that nobody holds.
fn shipped_after(mode: &'static str, (rounds, orders): (usize, usize)) -> (Stage, BTreeMap<String, usize>) {
    let mut stage = Stage::new(mode, orders);
    for n in 0..rounds {
        stage.round(n);
    }
    stage.finish();
    let shipped = stage.shipped();
    assert_eq!(shipped.len(), orders, "every order was shipped");
    (stage, shipped)
}

fn rounds() -> usize {
    setting("TAGWERK_SHIPMENT_ROUNDS", 500)
}

fn once_each(mode: &'static str) {
    // A round ships about one.
    let (stage, shipped) = shipped_after(mode, (rounds(), rounds()));
    let doubled: Vec<_> = shipped.iter().filter(|(_, times)| **times > 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    let mut client = stage.server.client();
    let jobs = list(&mut client, "");
    let losses: u64 = jobs.iter().filter_map(|job| job["lease_losses"].as_u64()).sum();
    assert!(losses > 0, "the worker died with jobs in its hands");
    // The shipment's number is known to the job, whoever of its workers got it.
    for job in jobs {
        let job = client.get(&format!("/jobs/{}", job["id"])).expect(200);
        let effects = job["effects"].as_array().expect("a list");
        assert_eq!(effects.len(), 1, "{job}");
        assert_eq!((&effects[0]["state"], &effects[0]["result"]), (&json!("done"), &job["result"]), "{job}");
        assert!(job["result"]["number"].as_u64() > Some(0), "{job}");
        assert_eq!(job["effects_in_doubt"], json!([]), "{job}");
    }
    assert!(crate::crash::check_command(&stage.server).is_none());
}

mod needs_python3 {
    use super::{once_each, shipped_after};

    #[test]
    fn a_carrier_with_idempotency_keys_ships_each_order_once() {
        once_each("key");
    }

    #[test]
    fn a_carrier_that_can_be_asked_ships_each_order_once() {
        once_each("look-up");
    }

    /// The contrast: the same worker without the journal.
    #[test]
    fn without_the_journal_orders_are_shipped_twice() {
        // Without the calls of the journal a round ships up to four.
        let (_stage, shipped) = shipped_after("careless", (36, 36 * 4));
        assert!(shipped.values().any(|times| *times > 1), "{shipped:?}");
    }
}
