//! Side effects that happen once over all attempts of a job.
//!
//! Guarantees: what is to be done is begun in the journal before it is done, durably, and ended there afterwards. Whoever runs the
//! job next, because this process died in between, is told that the effect is in doubt and looks it up. A failure leaves the effect in
//! doubt unless it says that it did not happen ([`Failure::did_not_happen`]).
//!
//! Deliberately absent: knowing by itself. If the other side knows neither idempotency keys nor look-up, a person has to find out:
//! then give no look-up, and the job goes to review.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tagwerk_api::answer::EffectAnswer;
use tagwerk_api::problem::Code;
use tagwerk_api::request::{EffectAbortRequest, EffectBeginRequest, EffectFinishRequest};
use tagwerk_api::{EffectState, Json};

use super::context::Context;
use super::report::{AWAY, PATIENCE, is_away};
use super::{Failure, Kind};
use crate::{Client, Error};

type Looking<T> = Pin<Box<dyn Future<Output = Result<Option<T>, Failure>> + Send>>;
type LookUp<T> = Box<dyn FnOnce(String) -> Looking<T> + Send>;

/// A side effect of a job; see [`Context::effect`].
#[must_use = "nothing is done before run"]
pub struct Effect<T> {
    context: Context,
    name: String,
    key: Option<String>,
    look_up: Option<LookUp<T>>,
}

impl<T> fmt::Debug for Effect<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, key, look_up, .. } = self;
        let mut shown = f.debug_struct("Effect");
        shown
            .field("name", name)
            .field("key", key)
            .field("looks_up", &look_up.is_some())
            .finish_non_exhaustive()
    }
}

impl Context {
    /// A side effect that must not happen twice: a payment, a shipment, a mail. Names are `[a-z0-9._-]{1,64}`, at most 100 for a job.
    ///
    /// ```
    /// # use tagwerk_client::{Context, Failure};
    /// # struct Carrier;
    /// # impl Carrier {
    /// #     async fn find(&self, key: &str) -> Result<Option<u64>, Failure> { Ok(None) }
    /// #     async fn ship(&self, key: &str) -> Result<u64, Failure> { Ok(7) }
    /// # }
    /// # static CARRIER: Carrier = Carrier;
    /// async fn handle(job: Context) -> Result<u64, Failure> {
    ///     job.effect("create-shipment")
    ///         .look_up(|key| async move { CARRIER.find(&key).await })
    ///         .run(|key| async move { CARRIER.ship(&key).await })
    ///         .await
    /// }
    /// # let _ = handle;
    /// ```
    pub fn effect<T>(&self, name: impl Into<String>) -> Effect<T> {
        Effect { context: self.clone(), name: name.into(), key: None, look_up: None }
    }
}

impl<T: Serialize + DeserializeOwned> Effect<T> {
    /// A key of your own for the other side, up to 255 bytes, in the place of a random one. The first that was ever given counts.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How to find out, by the effect's key, whether it happened and what came of it; `None`: it did not. If the other side honours
    /// idempotency keys, asking it again is as good: return `None` here.
    pub fn look_up<F, Fut>(mut self, look_up: F) -> Self
    where
        F: FnOnce(String) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<T>, Failure>> + Send + 'static,
    {
        self.look_up = Some(Box::new(move |key| Box::pin(look_up(key))));
        self
    }

    /// Does it, unless it was done, and returns what came of it (at most 64 KiB of JSON). `act` gets the key for the other side.
    ///
    /// # Errors
    /// Those of `act` and of the look-up. *Unknown* if it is in doubt and there is no look-up. *Transient* if the journal cannot be
    /// reached, or the lease is lost: then nothing was begun.
    pub async fn run<F, Fut>(self, act: F) -> Result<T, Failure>
    where
        F: FnOnce(String) -> Fut,
        Fut: Future<Output = Result<T, Failure>>,
    {
        let Self { context, name, key, look_up } = self;
        let (state, key, result) = context.begin_effect(&name, key).await?;
        let known = match (state, look_up) {
            (EffectState::Done, look_up) => return done((&name, key), result, look_up).await,
            (EffectState::New | EffectState::Aborted, _) => None,
            (EffectState::InDoubt, Some(look_up)) => look_up(key.clone()).await?,
            (EffectState::InDoubt, None) => {
                return Err(Failure::unknown(format!(
                    "an earlier attempt began {name} and nobody knows whether it happened; look it up by its key {key}"
                )));
            }
        };
        let result = match known {
            Some(known) => known,
            None => match act(key).await {
                Ok(result) => result,
                Err(failure) => {
                    if failure.says_that_nothing_happened() {
                        context.abort_effect(&name).await?;
                    }
                    return Err(failure);
                }
            },
        };
        let text = serde_json::to_string(&result).and_then(Json::from_text).ok();
        context.finish_effect(&name, text).await?;
        Ok(result)
    }
}

/// What came of an effect that happened. Without a stored result (a person has said so, or there is none) it is looked up, unless
/// nothing is expected.
async fn done<T: DeserializeOwned>(
    (name, key): (&str, String),
    result: Option<Json>,
    look_up: Option<LookUp<T>>,
) -> Result<T, Failure> {
    let read = serde_json::from_str(result.as_ref().map_or("null", Json::as_str));
    let error = match (read, look_up) {
        (Ok(result), _) => return Ok(result),
        (Err(_), Some(look_up)) if result.is_none() => match look_up(key).await? {
            Some(result) => return Ok(result),
            None => format!("{name} happened, says the journal, and its look-up does not find it"),
        },
        (Err(_), None) if result.is_none() => {
            format!("{name} happened, and there is no look-up that says what came of it")
        }
        (Err(error), _) => {
            let (line, column) = (error.line(), error.column());
            format!("the stored result of {name} is not of this type (line {line}, column {column})")
        }
    };
    Err(Failure::permanent(error))
}

/// A call about an effect. With its lease each counts once, however often it is made.
enum Call {
    Begin(EffectBeginRequest),
    Finish(EffectFinishRequest),
    Abort(EffectAbortRequest),
}

impl Call {
    async fn make(&self, client: &Client, effect: (i64, &str)) -> Result<EffectAnswer, Error> {
        let answer = match self {
            Self::Begin(request) => client.effect_begin(effect, request).await,
            Self::Finish(request) => client.effect_finish(effect, request).await,
            Self::Abort(request) => client.effect_abort(effect, request).await,
        };
        answer.map(|answer| answer.value)
    }
}

impl Context {
    async fn begin_effect(
        &self,
        name: &str,
        key: Option<String>,
    ) -> Result<(EffectState, String, Option<Json>), Failure> {
        let Some((client, lease)) = self.server() else {
            return Ok(self.said().effects.begin(name, key, self.attempt()));
        };
        let call = Call::Begin(EffectBeginRequest { lease: lease.clone(), key });
        let answer = self.patiently((client, name), &call).await;
        let EffectAnswer { state, key, result } = answer.map_err(|error| not_told("begin", name, &error))?;
        Ok((state, key, result))
    }

    /// That it happened is a fact, so it is told also by who has lost the job.
    async fn finish_effect(&self, name: &str, result: Option<Json>) -> Result<(), Failure> {
        let Some((client, lease)) = self.server() else {
            self.said().effects.finish(name, result);
            return Ok(());
        };
        let finish = |result| Call::Finish(EffectFinishRequest { lease: lease.clone(), result });
        let mut told = self.patiently((client, name), &finish(result)).await;
        if told.as_ref().is_err_and(|error| error.code() == Some(Code::ResultTooLarge)) {
            // That it happened counts for more than what came of it: that can be looked up.
            told = self.patiently((client, name), &finish(None)).await;
        }
        told.map(drop).map_err(|error| {
            Failure::unknown(format!("{name} happened, and the journal does not have it: {error}"))
        })
    }

    async fn abort_effect(&self, name: &str) -> Result<(), Failure> {
        let Some((client, lease)) = self.server() else {
            self.said().effects.abort(name);
            return Ok(());
        };
        let call = Call::Abort(EffectAbortRequest { lease: lease.clone() });
        let told = self.patiently((client, name), &call).await;
        told.map(drop).map_err(|error| not_told("abort", name, &error))
    }

    /// Makes a call again while the server is away. Whoever is to stop begins nothing more.
    async fn patiently(&self, (client, name): (&Client, &str), call: &Call) -> Result<EffectAnswer, Error> {
        let (mut waited, mut tries) = (Duration::ZERO, 0);
        loop {
            let error = match call.make(client, (self.id(), name)).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let gives_up = matches!(call, Call::Begin(_)) && self.is_stopped();
            if !is_away(&error) || waited > PATIENCE || gives_up {
                return Err(error);
            }
            tries += 1;
            let pause = AWAY.wait(tries, error.retry_after()).unwrap_or(AWAY.cap);
            // tidy: sleep because the server that is away cannot say when it is back
            tokio::time::sleep(pause).await;
            waited += pause;
        }
    }
}

fn not_told(verb: &str, name: &str, error: &Error) -> Failure {
    let text = format!("cannot {verb} the effect {name}: {error}");
    // What is wrong with the call will be wrong the next time.
    let is_final = error.problem().is_some_and(|problem| !problem.retryable && problem.stop != Some(true));
    if is_final { Failure::permanent(text) } else { Failure::transient(text) }
}

impl Failure {
    fn says_that_nothing_happened(&self) -> bool {
        match &self.0 {
            Kind::Failed { undone, .. } => *undone,
            Kind::Released { .. } => true,
        }
    }
}

/// The journal of a job without a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Journal(Vec<(String, Entry)>);

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    key: String,
    state: Local,
}

#[derive(Clone, Debug, PartialEq)]
enum Local {
    /// Begun by this attempt.
    Open(u32),
    Done(Option<Json>),
    Aborted,
}

impl Journal {
    fn begin(
        &mut self,
        name: &str,
        key: Option<String>,
        attempt: u32,
    ) -> (EffectState, String, Option<Json>) {
        let number = self.0.len() + 1;
        if !self.0.iter().any(|(known, _)| known == name) {
            let key = key.unwrap_or_else(|| format!("effect-{number}"));
            self.0.push((name.to_owned(), Entry { key, state: Local::Aborted }));
        }
        let Some((_, entry)) = self.0.iter_mut().find(|(known, _)| known == name) else {
            return (EffectState::New, String::new(), None);
        };
        let (state, result) = match &entry.state {
            Local::Aborted => {
                entry.state = Local::Open(attempt);
                (EffectState::New, None)
            }
            Local::Open(by) if *by == attempt => (EffectState::New, None),
            Local::Open(_) => (EffectState::InDoubt, None),
            Local::Done(result) => (EffectState::Done, result.clone()),
        };
        (state, entry.key.clone(), result)
    }

    fn finish(&mut self, name: &str, result: Option<Json>) {
        self.end(name, Local::Done(result));
    }

    fn abort(&mut self, name: &str) {
        self.end(name, Local::Aborted);
    }

    fn end(&mut self, name: &str, state: Local) {
        if let Some((_, entry)) = self.0.iter_mut().find(|(known, _)| known == name) {
            entry.state = state;
        }
    }

    /// Effects that were begun and of which nobody has said what became of them.
    pub(crate) fn open(&self) -> Vec<&str> {
        let open = self.0.iter().filter(|(_, entry)| matches!(entry.state, Local::Open(_)));
        open.map(|(name, _)| name.as_str()).collect()
    }
}
