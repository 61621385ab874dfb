//! `tagwerk token`: API tokens. Opens the store itself, with no server or beside a running one.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use tagwerk_client::api::request::Priority as Asked;
use tagwerk_client::api::{Seconds, Time};
use tagwerk_core::access::{Patterns, Reach, Scope};
use tagwerk_core::rate::Rate;
use tagwerk_core::{Priority, limits};
use tagwerk_engine::message::By;
use tagwerk_engine::ports::{Clock as _, Entropy as _};
use tagwerk_engine::row::{AuditRow, TokenHash, TokenRow};
use tagwerk_sqlite::{Beside, OpenError, Options, SqliteStore};

use super::exit::Exit;
use super::failure::{Failure, note};
use super::show::{self, maybe_time, time as shown_time};
use super::table::table;
use super::values::{named, priority, seconds, time};
use crate::config::{Config, ConfigArgs, StoreUrl, rate, show_rate};
use crate::system::{SystemClock, SystemEntropy};

/// Names of scopes.
const SCOPES: &[&str] = &["enqueue", "work", "read", "payload", "operate", "admin"];

/// Make, list and revoke API tokens.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:
  tagwerk token create shop --scope enqueue --type 'send-*' --store sqlite:tagwerk.db
  tagwerk token create worker-1 --scope work --queue mail --expires-in 90d --rate 600/m
  tagwerk token list
  tagwerk token revoke shop

As soon as a store has a token, every caller of its server needs one. A running server knows within a second.")]
pub(crate) enum Token {
    /// Make a token and print it, this one time
    Create(Box<Create>),
    /// List tokens, without the tokens themselves
    List(List),
    /// Remove a token: who has it is refused from then on
    Revoke(Revoke),
}

/// What it is to be good for.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Its name, shown wherever its holder did something
    name: String,
    /// What its holder may do; give it several times, or with commas. None contains another
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',', value_parser = named(SCOPES, Scope::from_name))]
    scopes: Vec<Scope>,
    /// Only jobs of this queue; a * stands for any letters; give it several times for several
    #[arg(long = "queue", value_name = "PATTERN")]
    queues: Vec<String>,
    /// Only jobs of this type; a * stands for any letters; give it several times for several
    #[arg(long = "type", value_name = "PATTERN")]
    types: Vec<String>,
    /// New jobs at most of this priority: a level or a number
    #[arg(long, value_name = "PRIORITY", value_parser = priority)]
    max_priority: Option<Asked>,
    /// Only in this space: its jobs and idempotency keys are a world of their own. Default: all spaces are seen, and new jobs
    /// are in none
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// At most so many requests, such as 10/s or 600/m; default: what the server's `server.token_rate` says. Reports of workers
    /// about jobs that they hold do not count and are never refused
    #[arg(long, value_name = "COUNT/TIME", value_parser = rate)]
    rate: Option<Rate>,
    /// Good for so long, such as 90d
    #[arg(long, value_name = "TIME", value_parser = seconds, conflicts_with = "expires_at")]
    expires_in: Option<Seconds>,
    /// Good until this instant
    #[arg(long, value_name = "INSTANT", value_parser = time)]
    expires_at: Option<Time>,
    #[command(flatten)]
    out: Out,
}

/// Nothing but where to look.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    out: Out,
}

/// Which one.
#[derive(Debug, clap::Args)]
pub(crate) struct Revoke {
    /// Its name
    name: String,
    #[command(flatten)]
    out: Out,
}

#[derive(Debug, clap::Args)]
struct Out {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Token {
    /// The command.
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Create(create) => create.run(),
            Self::List(list) => list.run(),
            Self::Revoke(revoke) => revoke.run(),
        }
    }
}

impl Out {
    fn open(&self, absent: Absent) -> Result<Beside, Failure> {
        let config = Config::load(&self.config, &[])?;
        let StoreUrl::Sqlite(path) = &config.store else {
            return Err(Failure::usage(
                "this version opens SQLite stores only",
                "name one with --store sqlite:FILE",
            ));
        };
        let told = |error: &OpenError| {
            Failure::machine(format!("cannot open {}: {error}", path.display()), String::new())
        };
        match (Beside::open(path), absent) {
            (Ok(store), _) => Ok(store),
            (
                Err(OpenError::Missing { .. } | OpenError::Empty { .. } | OpenError::OlderSchema { .. }),
                Absent::Make,
            ) => {
                make(path)?;
                Beside::open(path).map_err(|error| told(&error))
            }
            (Err(error), _) => Err(told(&error)),
        }
    }
}

/// What becomes of a store that is not there, or is of an older version.
#[derive(Clone, Copy)]
enum Absent {
    Make,
    Refuse,
}

/// Makes a store, or brings one up to date, as the server would.
fn make(path: &Path) -> Result<(), Failure> {
    let mut secret = [0; 32];
    let entropy = entropy()?;
    for chunk in secret.as_chunks_mut().0 {
        *chunk = entropy.u64().to_le_bytes();
    }
    let opened = SqliteStore::open(path, &Options::new(SystemClock::new().now(), secret));
    let told = |error: OpenError| {
        Failure::machine(format!("cannot open {}: {error}", path.display()), String::new())
    };
    opened.map(drop).map_err(told)
}

fn entropy() -> Result<SystemEntropy, Failure> {
    SystemEntropy::new()
        .map_err(|error| Failure::machine(format!("the system gives no randomness: {error}"), String::new()))
}

fn entry(action: &str, name: &str, note: Option<String>) -> AuditRow {
    AuditRow {
        n: 0,
        at: SystemClock::new().now(),
        who: By::LOCAL.to_owned(),
        action: action.to_owned(),
        target: name.to_owned(),
        note,
    }
}

fn failed(error: &tagwerk_engine::store::StoreError) -> Failure {
    Failure::machine(error.to_string(), String::new())
}

impl Create {
    fn run(self) -> Result<Exit, Failure> {
        check_name(&self.name)?;
        let queue = "letters, digits, '.', '_' and '-', beginning with a letter or digit";
        check_patterns("--queue", &self.queues, (is_like_a_queue, queue))?;
        check_patterns("--type", &self.types, (is_like_a_type, "1 to 255 bytes of printable text"))?;
        if let Some(space) = &self.space {
            check_space(space)?;
        }
        let now = SystemClock::new().now();
        let in_ms = self.expires_in.map(|time| now.plus_ms(time.ms()));
        let expires_at = in_ms.or(self.expires_at.map(|at| tagwerk_core::Timestamp::from_millis(at.ms())));
        if expires_at.is_some_and(|at| at <= now) {
            return Err(Failure::usage("the token would have expired already", "name a later instant"));
        }
        let token = fresh()?;
        let all = |patterns: Vec<String>| match patterns.as_slice() {
            [] => Patterns::ALL,
            _ => Patterns::any_of(patterns),
        };
        let row = TokenRow {
            name: self.name,
            hash: TokenHash::of(&token),
            scopes: self.scopes.into_iter().collect::<BTreeSet<_>>(),
            reach: Reach {
                queues: all(self.queues),
                types: all(self.types),
                ceiling: self.max_priority.and_then(ceiling),
                space: self.space,
            },
            rate: self.rate,
            expires_at,
            created_at: now,
            last_used_at: None,
        };
        let entry = entry("token.create", &row.name, Some(scopes(&row)));
        let mut store = self.out.open(Absent::Make)?;
        let known = store.tokens().map_err(|error| failed(&error))?.len();
        if known >= limits::TOKENS_MAX {
            return Err(Failure::usage(
                format!("there are {known} tokens, and no more are kept"),
                "revoke some: `tagwerk token list` shows them",
            ));
        }
        if !store.create_token(&row, &entry).map_err(|error| failed(&error))? {
            return Err(Failure::usage(
                format!("there is a token {} already", row.name),
                "choose another name, or revoke that one first",
            ));
        }
        if self.out.json {
            show::print(&json!({"name": row.name, "token": token}).to_string())?;
        } else {
            show::print(&token)?;
            note(
                "keep it: it is shown this one time. Send it as Authorization: Bearer …, or give it as TAGWERK_TOKEN",
            );
        }
        Ok(Exit::Done)
    }
}

fn ceiling(asked: Asked) -> Option<Priority> {
    Priority::from_value(match asked {
        Asked::Label(label) => label.value(),
        Asked::Number(value) => value,
    })
}

/// A new token: 256 random bits.
fn fresh() -> Result<String, Failure> {
    let entropy = entropy()?;
    let words: Vec<String> = (0..4).map(|_| format!("{:016x}", entropy.u64())).collect();
    Ok(format!("tw_{}", words.concat()))
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.len() <= limits::NAME_MAX_BYTES
        && name.bytes().all(is_plain)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
}

fn check_space(name: &str) -> Result<(), Failure> {
    if is_name(name) {
        return Ok(());
    }
    Err(Failure::usage(
        format!("{name:?} cannot be the name of a space"),
        format!("take letters, digits, '.', '_' and '-', at most {}", limits::NAME_MAX_BYTES),
    ))
}

fn check_name(name: &str) -> Result<(), Failure> {
    if is_name(name) && name != By::LOCAL {
        return Ok(());
    }
    Err(Failure::usage(
        format!("{name:?} cannot be the name of a token"),
        format!(
            "take letters, digits, '.', '_' and '-', at most {}, and not {:?}, which stands for callers without one",
            limits::NAME_MAX_BYTES,
            By::LOCAL
        ),
    ))
}

/// What patterns of one kind are made of, and that in words.
type Like = (fn(&str) -> bool, &'static str);

fn check_patterns(flag: &str, patterns: &[String], (is_like, words): Like) -> Result<(), Failure> {
    match patterns.iter().find(|pattern| !is_like(pattern)) {
        None if patterns.len() <= limits::TOKEN_PATTERNS_MAX => Ok(()),
        None => Err(Failure::usage(
            format!("{flag} stands there {} times", patterns.len()),
            format!("give at most {} patterns; a * stands for any letters", limits::TOKEN_PATTERNS_MAX),
        )),
        Some(pattern) => Err(Failure::usage(
            format!("{flag} {pattern:?} can fit no name"),
            format!("give {words}, and * for any"),
        )),
    }
}

fn is_like_a_type(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.len() <= limits::TYPE_MAX_BYTES && !pattern.contains(char::is_control)
}

fn is_like_a_queue(pattern: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-*".contains(&byte);
    let letters = pattern.bytes().filter(|byte| *byte != b'*').count();
    letters <= limits::NAME_MAX_BYTES
        && pattern.bytes().all(is_plain)
        && pattern.starts_with(|first: char| first == '*' || first.is_ascii_alphanumeric())
}

fn scopes(row: &TokenRow) -> String {
    row.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(",")
}

impl List {
    fn run(self) -> Result<Exit, Failure> {
        let tokens = self.out.open(Absent::Refuse)?.tokens().map_err(|error| failed(&error))?;
        if self.out.json {
            let tokens: Vec<_> = tokens.iter().map(as_json).collect();
            show::print(&json!({"tokens": tokens}).to_string())?;
            return Ok(Exit::Done);
        }
        let header = [
            "NAME",
            "SCOPES",
            "SPACE",
            "QUEUES",
            "TYPES",
            "MAX PRIORITY",
            "RATE",
            "EXPIRES",
            "CREATED",
            "LAST USED",
        ];
        show::print(&table(header, tokens.iter().map(row).collect(), "there are no tokens"))?;
        Ok(Exit::Done)
    }
}

const fn wire(at: tagwerk_core::Timestamp) -> Time {
    Time::from_ms(at.as_millis())
}

fn row(token: &TokenRow) -> [String; 10] {
    let patterns =
        |patterns: &Patterns| patterns.list().map_or("all".to_owned(), |list| show::line(&list.join(",")));
    [
        token.name.clone(),
        scopes(token),
        token.reach.space.clone().unwrap_or_else(|| "-".to_owned()),
        patterns(&token.reach.queues),
        patterns(&token.reach.types),
        token.reach.ceiling.map_or("-".to_owned(), |ceiling| ceiling.value().to_string()),
        token.rate.map_or("-".to_owned(), show_rate),
        maybe_time(token.expires_at.map(wire)),
        shown_time(wire(token.created_at)),
        maybe_time(token.last_used_at.map(wire)),
    ]
}

fn as_json(token: &TokenRow) -> serde_json::Value {
    json!({
        "name": token.name,
        "scopes": token.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>(),
        "space": token.reach.space,
        "queues": token.reach.queues.list(),
        "types": token.reach.types.list(),
        "max_priority": token.reach.ceiling.map(Priority::value),
        "rate": token.rate.map(|rate| json!({"count": rate.count, "per_seconds": Seconds::from_ms(rate.per_ms)})),
        "expires_at": token.expires_at.map(wire),
        "created_at": wire(token.created_at),
        "last_used_at": token.last_used_at.map(wire),
    })
}

impl Revoke {
    fn run(self) -> Result<Exit, Failure> {
        let mut store = self.out.open(Absent::Refuse)?;
        let entry = entry("token.revoke", &self.name, None);
        if !store.revoke_token(&self.name, &entry).map_err(|error| failed(&error))? {
            return Err(Failure::usage(
                format!("there is no token {:?}", self.name),
                "`tagwerk token list` shows those that there are",
            ));
        }
        let left = store.tokens().map_err(|error| failed(&error))?.len();
        if self.out.json {
            show::print(&json!({"name": self.name, "revoked": true, "left": left}).to_string())?;
        } else {
            show::print(&format!("{} is revoked", self.name))?;
        }
        if left == 0 {
            note("warning: no token is left, so local callers need none from now on");
        }
        Ok(Exit::Done)
    }
}
