//! The tokens that there are, kept in memory and read anew all the time, since they are made beside the server.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};
use tagwerk_api::problem::Code;
use tagwerk_core::Timestamp;
use tagwerk_core::rate::Rate;
use tagwerk_engine::row::{TokenHash, TokenRow};

use super::super::App;
use super::super::problem::Refused;
use super::{Grant, Leaseless, Rights};

/// How often they are read: what is revoked is refused within a second.
const READ_EVERY: Duration = Duration::from_millis(400);
/// The last use is written when it is this much later than what is written: it is for people, who look at days.
const USE_COUNTS_AFTER_MS: i64 = 60_000;
/// How tokens begin.
const PREFIX: &str = "tw_";
/// Letters behind it.
const LETTERS: usize = 64;

/// A token with what it grants.
struct Token {
    row: TokenRow,
    grant: Arc<Grant>,
    /// Last use, and what the store was told of it.
    used: AtomicI64,
    told: AtomicI64,
}

/// All tokens.
pub(in crate::http) struct Known {
    tokens: RwLock<Arc<[Token]>>,
    leaseless: Leaseless,
    /// Of tokens that have none of their own.
    rate: Option<Rate>,
}

impl Known {
    /// None yet.
    pub(in crate::http) fn new(leaseless: Leaseless, rate: Option<Rate>) -> Self {
        Self { tokens: RwLock::new(Arc::new([])), leaseless, rate }
    }

    fn tokens(&self) -> Arc<[Token]> {
        // It is replaced whole, so a poisoned lock holds nothing half done.
        Arc::clone(&self.tokens.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there are none, so that nobody needs one.
    pub(in crate::http) fn is_empty(&self) -> bool {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn replace(&self, rows: Vec<TokenRow>) {
        let before = self.tokens();
        let same = |token: &&Token, row: &TokenRow| token.row.name == row.name && token.row.hash == row.hash;
        let tokens = rows.into_iter().map(|row| {
            let old = before.iter().find(|token| same(token, &row));
            let at = |known: fn(&Token) -> &AtomicI64| {
                let stored = row.last_used_at.map_or(i64::MIN, Timestamp::as_millis);
                AtomicI64::new(old.map_or(stored, |token| known(token).load(Ordering::Relaxed)))
            };
            let meter = old.map(|token| token.grant.meter.clone()).unwrap_or_default();
            let grant = Arc::new(Grant {
                meter: meter.with(row.rate.or(self.rate)),
                name: row.name.as_str().into(),
                scopes: row.scopes.clone(),
                reach: Arc::new(row.reach.clone()),
                leaseless: self.leaseless,
            });
            Token { used: at(|token| &token.used), told: at(|token| &token.told), grant, row }
        });
        let tokens = tokens.collect();
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Uses that the store has not been told of.
    fn untold(&self) -> Vec<(String, Timestamp)> {
        let tokens = self.tokens();
        let untold = tokens.iter().filter_map(|token| {
            let (used, told) = (token.used.load(Ordering::Relaxed), token.told.load(Ordering::Relaxed));
            (used > told.saturating_add(USE_COUNTS_AFTER_MS)).then(|| {
                token.told.store(used, Ordering::Relaxed);
                (token.row.name.clone(), Timestamp::from_millis(used))
            })
        });
        untold.collect()
    }
}

/// Who calls. Every token is looked at, whichever fits, so that time tells nothing.
pub(in crate::http) fn authenticate(
    known: &Known,
    headers: &HeaderMap,
    now: Timestamp,
) -> Result<Rights, Refused> {
    let refused = |detail: &str| Err(Refused::new(Code::Unauthorized, detail));
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let Some(header) = given.next() else {
        return refused("this server needs an API token; send it as Authorization: Bearer tw_…");
    };
    if given.next().is_some() {
        return refused("the header Authorization stands there more than once");
    }
    let token = header.to_str().ok().and_then(|text| text.split_once(' '));
    let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let Some((_, token)) = token else {
        return refused("the header Authorization is not of the form Bearer tw_…");
    };
    let hash = TokenHash::of(token.trim());
    let tokens = known.tokens();
    let mut found = None;
    for token in tokens.iter() {
        if token.row.hash == hash {
            found = Some(token);
        }
    }
    let Some(token) = found else { return refused("this token is unknown here, or was revoked") };
    if token.row.expires_at.is_some_and(|at| at <= now) {
        return refused("this token has expired; tagwerk token create makes another");
    }
    token.used.fetch_max(now.as_millis(), Ordering::Relaxed);
    Ok(Rights::granted(&token.grant))
}

/// The two probes as they are: what they look at is for holders of a token.
pub(in crate::http) fn is_probe(uri: &Uri) -> bool {
    matches!(uri.path(), "/livez" | "/readyz") && uri.query().is_none_or(str::is_empty)
}

/// A token in a URL is in somebody's log already.
pub(in crate::http) fn refuse_token_in_url(uri: &Uri) -> Result<(), Refused> {
    let text = uri.path_and_query().map_or("", |text| text.as_str());
    let is_token =
        |rest: &str| rest.len() >= LETTERS && rest.bytes().take(LETTERS).all(|byte| byte.is_ascii_hexdigit());
    if text.split(PREFIX).skip(1).any(is_token) {
        return Err(Refused::of(Code::TokenInUrl));
    }
    Ok(())
}

impl App {
    /// Reads all tokens anew.
    pub(in crate::http) async fn reload_tokens(&self) -> Result<(), Refused> {
        let tokens = self.read_quietly(|read| read.tokens()).await.map_err(|refused| match refused.code() {
            // Rows are jobs' everywhere else.
            Some(Code::JobDamaged) => Refused::new(
                Code::StoreDamaged,
                "an API token cannot be read; tagwerk token list says which, tagwerk token revoke removes it",
            ),
            _ => refused,
        })?;
        self.known.replace(tokens);
        Ok(())
    }

    /// Keeps on reading them, and tells the store of their use, until the server stops.
    pub(in crate::http) async fn watch_tokens(self: Arc<Self>) {
        let mut stopping = self.stopping.clone();
        let mut is_failing = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(READ_EVERY) => {} // tidy: sleep because tokens are made by other processes, which tell nobody
                _ = stopping.wait_for(|stopping| *stopping) => return,
            }
            // Those that were known go on to count. Without them everybody would be shut out, or everybody let in.
            match self.reload_tokens().await {
                Ok(()) => is_failing = false,
                Err(refused) if !is_failing => {
                    is_failing = true;
                    let why = refused.into_problem().detail;
                    tracing::error!(
                        why,
                        "the API tokens cannot be read; what is made or revoked counts when they can be"
                    );
                }
                Err(_) => {}
            }
            let used = self.known.untold();
            if !used.is_empty() {
                self.engine.touch_tokens(used);
            }
        }
    }
}
