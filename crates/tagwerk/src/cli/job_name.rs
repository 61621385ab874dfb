//! How a job is named on the command line: by its id, or by its idempotency key, which is what people know of it.

use std::str::FromStr;

use tagwerk_client::api::query::JobsQuery;
use tagwerk_client::{Client, Error};

use super::exit::Exit;
use super::failure::{Failure, Told};
use super::show;

/// What stands before a key.
const KEY: &str = "key:";

/// `17` or `key:order-4711-paid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobName {
    Id(i64),
    Key(String),
}

impl FromStr for JobName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(key) = text.strip_prefix(KEY).filter(|key| !key.is_empty()) {
            return Ok(Self::Key(key.to_owned()));
        }
        text.parse()
            .map(Self::Id)
            .map_err(|_| "must be the id of a job, such as 17, or key:IDEMPOTENCY-KEY".to_owned())
    }
}

impl JobName {
    /// The id. Of several jobs that had a key one after the other, the last one is meant.
    pub(crate) async fn id(&self, client: &Client) -> Result<i64, Failure> {
        match self {
            Self::Id(id) => Ok(*id),
            Self::Key(key) => match newest(client, key).await? {
                Some(id) => Ok(id),
                None => Err(Failure::Told(Told {
                    exit: Exit::Refused,
                    message: format!("there is no job with the idempotency key {}", show::line(key)),
                    advice: "`tagwerk jobs list` shows those that there are".to_owned(),
                })),
            },
        }
    }
}

async fn newest(client: &Client, key: &str) -> Result<Option<i64>, Error> {
    let mut query = JobsQuery { idempotency_key: Some(key.to_owned()), ..JobsQuery::default() };
    let mut newest = None;
    loop {
        // A page may be empty and still not be the last one.
        let page = client.jobs(&query).await?.value;
        newest = page.jobs.last().map(|job| job.id).or(newest);
        match page.next.and_then(|next| next.parse().ok()) {
            Some(next) => query.after = Some(next),
            None => return Ok(newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ids_or_keys() {
        assert_eq!("17".parse(), Ok(JobName::Id(17)));
        assert_eq!("key:a:b 7".parse(), Ok(JobName::Key("a:b 7".to_owned())));
        for text in ["", "key:", "x", "1.5", "order-7"] {
            assert!(text.parse::<JobName>().is_err(), "{text}");
        }
    }
}
