//! Rules between jobs: what is planted is found with exactly its calls, what cannot be proved is let pass.

use super::story::{Story, by, done, held, idle};
use crate::partition::unseen;
use crate::{Asked, Status, Told, View};

fn keyed(id: i64) -> View {
    View { ordering_key: Some("k".to_owned()), ..unseen(id) }
}

fn limited(id: i64, limit: &str) -> View {
    View { limits: vec![limit.to_owned()], ..unseen(id) }
}

/// Accepted at its id, claimed at this moment for so long.
fn claimed(story: Story, view: View, (at, ms): (u64, i64)) -> Story {
    let (id, accepted) = (view.id, u64::try_from(view.id).unwrap());
    let since = i64::try_from(at).unwrap() + 5;
    story.enqueued(accepted, view.clone()).claimed(at, held(view, (2, 1), &format!("w{id}"), (since, ms)))
}

fn completes(story: Story, view: View, at: u64) -> Story {
    let id = view.id;
    let told = Told::Job(View { attempt: 1, ..idle(view, 3, Status::Completed) });
    story.at(at, Asked::Report { job: id, by: by(&format!("w{id}")), said: done() }, told)
}

#[test]
fn two_jobs_of_a_key_that_run_together_are_found() {
    let story = claimed(claimed(Story::default(), keyed(1), (100, 1_000)), keyed(2), (200, 1_000));
    let found = story.contradicts(&[100, 200]);
    assert_eq!(found.jobs, [1, 2]);
    assert!(found.to_string().starts_with("ordering key k: more than one job ran at a time"), "{found}");
    // Other keys, and none, have nothing to do with each other.
    let other = View { ordering_key: Some("other".to_owned()), ..keyed(2) };
    claimed(claimed(Story::default(), keyed(1), (100, 1_000)), other, (200, 1_000)).holds();
    claimed(claimed(Story::default(), unseen(1), (100, 1_000)), unseen(2), (200, 1_000)).holds();
}

#[test]
fn what_may_have_been_over_is_no_contradiction() {
    let first = || claimed(Story::default(), keyed(1), (100, 1_000));
    // Reported before, or at the same time.
    for at in [150, 199] {
        claimed(completes(first(), keyed(1), at), keyed(2), (200, 1_000)).holds();
    }
    // The report got no answer.
    let silent = Asked::Report { job: 1, by: by("w1"), said: done() };
    claimed(first().at(150, silent, Told::Nothing), keyed(2), (200, 1_000)).holds();
    // The lease may have run out; nobody knows what became of it.
    claimed(first(), keyed(2), (1_200, 1_000)).holds();
    // A person may have freed the key.
    let cancel = Asked::Operate { job: 1, action: crate::Action::Cancel { wait: false }, seen_version: None };
    claimed(first().at(150, cancel, Told::Nothing), keyed(2), (200, 1_000)).holds();
}

#[test]
fn a_heartbeat_that_counted_shows_that_the_job_was_held() {
    let beat = Asked::Heartbeat { job: 1, by: by("w1") };
    let first = claimed(Story::default(), keyed(1), (100, 1_000));
    let story = first.at(1_000, beat, Told::Done { until_ms: Some(2_005) });
    claimed(story, keyed(2), (1_500, 1_000)).contradicts(&[100, 1_500]);
}

#[test]
fn a_job_that_goes_before_an_earlier_one_is_found() {
    // Nothing runs at that moment: the first is waiting.
    let story = Story::default().enqueued(1, keyed(1));
    let story = completes(claimed(story, keyed(2), (100, 1_000)), keyed(2), 150);
    let story = story.claimed(300, held(keyed(1), (2, 1), "w1", (305, 1_000)));
    let found = completes(story.clone(), keyed(1), 350).contradicts(&[1, 100, 350]);
    assert!(found.to_string().starts_with("ordering key k: a later job went first"), "{found}");
    // Whether the first was still to be done is not known without its end, or when it skips.
    story.holds();
    let skips = |id| View { on_head_failure: Some("skip".to_owned()), ..keyed(id) };
    let story = Story::default().enqueued(1, skips(1));
    let story = completes(claimed(story, keyed(2), (100, 1_000)), keyed(2), 150);
    completes(story.claimed(300, held(skips(1), (2, 1), "w1", (305, 1_000))), skips(1), 350).holds();
}

#[test]
fn more_jobs_under_a_limit_than_it_allows_are_found() {
    let of = |limits: [&str; 4]| {
        let mut story = Story::default();
        story.history.rules.limits.insert("crm".to_owned(), 2);
        for (id, limit) in (1..).zip(limits) {
            let at = u64::try_from(id * 100).unwrap();
            story = claimed(story, limited(id, limit), (at, 1_000));
        }
        story
    };
    let found = of(["crm:a", "crm:b", "crm:a", "crm:a"]).contradicts(&[100, 300, 400]);
    assert_eq!(found.jobs, [1, 3, 4]);
    assert!(found.to_string().starts_with("limit crm:a: more than 2 jobs ran at a time"), "{found}");
    of(["crm:a", "crm:b", "crm:a", "crm:b"]).holds();
    of(["api", "api", "api", "api"]).holds();
    // One of them was done in time.
    let mut story = Story::default();
    story.history.rules.limits.insert("crm".to_owned(), 2);
    for id in 1..=2 {
        story = claimed(story, limited(id, "crm"), (u64::try_from(id * 100).unwrap(), 1_000));
    }
    story = completes(story, limited(1, "crm"), 250);
    claimed(story, limited(3, "crm"), (300, 1_000)).holds();
}
