//! A worker's connection: opened when it is needed, and again after it broke.

use std::io;
use std::sync::Arc;

use serde::Deserialize;

use super::wire::Wire;
use super::world::World;

/// One request at a time.
pub(super) struct Caller {
    pub(super) world: Arc<World>,
    wire: Option<Wire>,
}

/// Why a call failed: the problem's code, or what became of the connection.
pub(super) type Trouble = String;

/// What of a problem is counted.
#[derive(Deserialize)]
struct Problem {
    code: String,
}

impl Caller {
    pub(super) fn new(world: &Arc<World>) -> Self {
        Self { world: Arc::clone(world), wire: None }
    }

    /// The connection.
    pub(super) async fn wire(&mut self) -> Result<&mut Wire, Trouble> {
        if self.wire.is_none() {
            self.wire = Some(self.world.target.connect().await.map_err(|error| broken(&error))?);
        }
        self.wire.as_mut().ok_or_else(|| "connection".to_owned())
    }

    /// Sends a request. Returns the body of the answer if it is a success.
    pub(super) async fn call(&mut self, request: &str) -> Result<&[u8], Trouble> {
        self.wire().await?;
        let answered = match self.wire.as_mut() {
            Some(wire) => wire.call(request).await,
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        self.judge(answered)
    }

    /// Reads the answer to what was sent in parts.
    pub(super) async fn finish(&mut self) -> Result<&[u8], Trouble> {
        let answered = match self.wire.as_mut() {
            Some(wire) => wire.finish().await,
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        self.judge(answered)
    }

    fn judge(&mut self, answered: io::Result<u16>) -> Result<&[u8], Trouble> {
        if let Err(error) = &answered {
            self.wire = None;
            return Err(broken(error));
        }
        let status = answered.unwrap_or_default();
        let body = self.wire.as_ref().map(Wire::body).unwrap_or_default();
        success(status, body)
    }
}

fn success(status: u16, body: &[u8]) -> Result<&[u8], Trouble> {
    if matches!(status, 200 | 201) {
        return Ok(body);
    }
    let problem = serde_json::from_slice::<Problem>(body);
    Err(problem.map_or_else(|_| format!("status-{status}"), |problem| problem.code))
}

fn broken(error: &io::Error) -> Trouble {
    format!("connection-{}", error.kind()).replace(' ', "-")
}
