//! A proxy that cuts: it stands between clients and the server, takes one request after the other, and does with each what
//! the test says. Whole messages are read before anything is done, so that a cut falls exactly where it is meant to.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

/// Where a request and its answer end up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Both pass.
    None,
    /// Both pass, byte by byte.
    Drip,
    /// The request is read and never sent on.
    BeforeRequest,
    /// The server gets half of the head.
    InHead,
    /// The server gets the head and half of the body.
    InBody,
    /// The server gets all of it, and nobody waits for the answer.
    AfterRequest,
    /// The answer comes to the proxy and no further.
    BeforeAnswer,
    /// The client gets half of the answer.
    InAnswer,
    /// The answer comes to the proxy, and both connections stay open and silent for as long as the client likes.
    Silent,
}

impl Cut {
    /// Everything that is lost or late.
    pub(crate) const ALL: [Self; 8] = [
        Self::Drip,
        Self::BeforeRequest,
        Self::InHead,
        Self::InBody,
        Self::AfterRequest,
        Self::BeforeAnswer,
        Self::InAnswer,
        Self::Silent,
    ];

    /// Whether the server may have done what was asked for.
    pub(crate) const fn may_be_done(self) -> bool {
        !matches!(self, Self::BeforeRequest | Self::InHead | Self::InBody)
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In order: FIN. What the server had begun is over when the client hears of it.
    Fin,
    /// As if the cable were pulled and somebody noticed: RST.
    Reset,
}

impl End {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Fin, Self::Reset];
}

/// Says what becomes of the next request.
type Choose = Box<dyn FnMut() -> (Cut, End) + Send>;

struct State {
    target: SocketAddr,
    choose: Mutex<Choose>,
    /// Connections that are open.
    open: Mutex<usize>,
    closed: Condvar,
    /// Requests that did not simply pass.
    cuts: AtomicUsize,
}

/// See the module. It ends with the test's process; its connections end with theirs.
pub(crate) struct Proxy {
    addr: SocketAddr,
    state: Arc<State>,
}

impl Proxy {
    /// A proxy before this server.
    pub(crate) fn new(target: SocketAddr, choose: impl FnMut() -> (Cut, End) + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let addr = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            target,
            choose: Mutex::new(Box::new(choose)),
            open: Mutex::new(0),
            closed: Condvar::new(),
            cuts: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                *shared.open.lock().expect("no panic") += 1;
                let open = Open(Arc::clone(&shared));
                // Whatever ends a connection is what the test is about.
                std::thread::spawn(move || open.0.converse(client).ok());
            }
        });
        Self { addr, state }
    }

    /// Where clients call.
    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What becomes of requests from now on.
    pub(crate) fn choose(&self, choose: impl FnMut() -> (Cut, End) + Send + 'static) {
        *self.state.choose.lock().expect("no panic") = Box::new(choose);
    }

    /// What becomes of the next request; those behind it pass.
    pub(crate) fn next(&self, cut: Cut, end: End) {
        let mut next = Some((cut, end));
        self.choose(move || next.take().unwrap_or((Cut::None, End::Fin)));
    }

    /// How many requests did not simply pass.
    pub(crate) fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::Relaxed)
    }

    /// Waits until no connection is open. Its clients must have closed theirs.
    pub(crate) fn settle(&self) {
        let mut open = self.state.open.lock().expect("no panic");
        while *open > 0 {
            open = self.state.closed.wait(open).expect("no panic");
        }
    }
}

/// A connection that is counted while it is open.
struct Open(Arc<State>);

impl Drop for Open {
    fn drop(&mut self) {
        *self.0.open.lock().expect("no panic") -= 1;
        self.0.closed.notify_all();
    }
}

impl State {
    /// One connection of a client: request by request, until it ends.
    fn converse(&self, mut client: TcpStream) -> io::Result<()> {
        let mut server = TcpStream::connect(self.target)?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        while let Some(request) = read_message(&mut client)? {
            let (cut, end) = (self.choose.lock().expect("no panic"))();
            if cut != Cut::None {
                self.cuts.fetch_add(1, Ordering::Relaxed);
            }
            let half_head = request.head / 2;
            let half_body = request.head + (request.bytes.len() - request.head) / 2;
            let sent = match cut {
                Cut::BeforeRequest => 0,
                Cut::InHead => half_head,
                Cut::InBody => half_body,
                _ => request.bytes.len(),
            };
            pass(&mut server, &request.bytes[..sent], cut)?;
            match cut {
                Cut::BeforeRequest | Cut::InHead | Cut::InBody | Cut::AfterRequest => {
                    return hang_up((&server, &client), end);
                }
                _ => {}
            }
            let answer = read_message(&mut server)?.ok_or(io::ErrorKind::UnexpectedEof)?.bytes;
            match cut {
                Cut::BeforeAnswer => return hang_up((&server, &client), end),
                Cut::InAnswer => {
                    client.write_all(&answer[..answer.len() / 2])?;
                    return hang_up((&server, &client), end);
                }
                Cut::Silent => {
                    // Until the client has had enough.
                    read_message(&mut client).ok();
                    return hang_up((&server, &client), end);
                }
                _ => pass(&mut client, &answer, cut)?,
            }
        }
        Ok(())
    }
}

fn pass(to: &mut TcpStream, bytes: &[u8], cut: Cut) -> io::Result<()> {
    if cut == Cut::Drip {
        bytes.iter().try_for_each(|byte| to.write_all(&[*byte]))
    } else {
        to.write_all(bytes)
    }
}

/// Ends the connection to the server first, and waits until the server has let go of it where that can be seen: whatever
/// the client does next comes behind what it did before.
fn hang_up((server, client): (&TcpStream, &TcpStream), end: End) -> io::Result<()> {
    match end {
        End::Fin => {
            server.shutdown(Shutdown::Write)?;
            let mut rest: &TcpStream = server;
            while rest.read(&mut [0; 4096])? > 0 {}
            client.shutdown(Shutdown::Both)
        }
        End::Reset => {
            // With nothing to linger for, closing sends a reset.
            for stream in [server, client] {
                set_socket_linger(stream, Some(Duration::ZERO))?;
            }
            Ok(())
        }
    }
}

/// A request or an answer.
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    /// Length of its head.
    pub(crate) head: usize,
}

/// Reads a message whole; `None` when the other side has closed between two.
pub(crate) fn read_message(from: &mut TcpStream) -> io::Result<Option<Message>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8 * 1024];
    loop {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
        if let Some(head) = head
            && bytes.len() >= head + body_length(&bytes[..head])?
        {
            return Ok(Some(Message { bytes, head }));
        }
        match from.read(&mut buffer)? {
            0 if bytes.is_empty() => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

fn body_length(head: &[u8]) -> io::Result<usize> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    assert!(!head.contains("transfer-encoding"), "only bodies of a known length are expected here: {head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.map_or(Ok(0), |length| length.trim().parse().map_err(io::Error::other))
}
