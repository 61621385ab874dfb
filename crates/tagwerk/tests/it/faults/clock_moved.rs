//! K19: somebody moves the server's clock by hours, forward and back, while it runs and while it is down. Due times follow it
//! at once; leases are moved along, since in their time nothing has changed; and nothing is lost or done twice.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Options, Server, tagwerk};
use crate::support::{Held, attempts, claim, enqueue, job, list, ms, nothing_in, pass, settled, take, text};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// `faketime`: a clock that can be moved under a process.
mod needs_faketime {
    use super::*;

    /// A server whose wall clock goes by a file. Its monotonic clock does not, as on a machine whose clock is set.
    struct Shifted {
        server: Server,
        client: Client,
        file: PathBuf,
    }

    impl Shifted {
        fn start(options: Options) -> Self {
            let preload =
                Command::new("faketime").args(["-m", "-f", "+0", "sh", "-c", "echo $LD_PRELOAD"]).output();
            let preload = String::from_utf8(preload.expect("faketime").stdout).expect("a path");
            let dir = tempfile::tempdir().expect("a folder");
            let file = dir.path().join("clock");
            std::fs::write(&file, "+0\n").expect("to write");
            let options = options
                .env("LD_PRELOAD", preload.trim())
                .env("FAKETIME_TIMESTAMP_FILE", file.to_str().expect("UTF-8"))
                .env("FAKETIME_NO_CACHE", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            let server = Server::in_dir(dir, options);
            let client = server.client();
            Self { server, client, file }
        }

        /// Sets the clock to the true time and so much.
        fn set(&self, ms: i64) {
            let new = self.file.with_extension("new");
            std::fs::write(&new, format!("{:+}\n", ms / 1000)).expect("to write");
            std::fs::rename(new, &self.file).expect("to set the clock");
        }

        /// The clock, as the server has it.
        fn now(&mut self) -> i64 {
            let id = enqueue(&mut self.client, &json!({"type": "clock", "queue": "clock"}));
            ms(&job(&mut self.client, id)["created_at"]).expect("a time")
        }

        /// Killed and started again, with the clock set meanwhile.
        fn restart_at(&mut self, ms: i64) {
            self.server.kill();
            self.set(ms);
            self.server.start_again();
            self.client = self.server.client();
        }

        fn check(&self) {
            let output =
                tagwerk(self.server.dir(), &["check", "--integrity", "--store", "sqlite:tagwerk.db"])
                    .output();
            let output = output.expect("the binary");
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }

    /// A job in a worker's hands, under a lease of so many seconds.
    fn hold(client: &mut Client, queue: &str, (seconds, more): (u32, &Value)) -> Held {
        let mut job = json!({"type": "t", "queue": queue, "retry": {"base_seconds": 0}});
        job.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let id = enqueue(client, &job);
        let wish = json!({"worker_id": "w", "queues": [queue], "lease_seconds": seconds});
        claim(client, &wish).filter(|held| held.id == id).expect("the job")
    }

    /// Still its worker's, for no longer than the length of its lease.
    fn assert_held(shifted: &mut Shifted, held: &Held, seconds: i64) {
        let now = shifted.now();
        let shown = job(&mut shifted.client, held.id);
        assert_eq!((text(&shown["status"]), &shown["lease_losses"]), ("running", &json!(0)), "{shown}");
        let left = ms(&shown["lease_expires_at"]).expect("an end") - now;
        // What passed between the last mark and the end of the server belongs to the gap.
        assert!((0..=seconds * 1_000 + 2_000).contains(&left), "{left} ms are left of its lease: {shown}");
        assert_eq!(held.heartbeat(&mut shifted.client).expect(200)["continue"], true);
    }

    #[test]
    fn a_clock_that_is_moved_takes_no_lease_and_is_followed_by_due_times() {
        let mut shifted = Shifted::start(Options::default());
        let later = |hours: u32| json!({"type": "t", "queue": "later", "delay_seconds": hours * 3600});
        let held = hold(&mut shifted.client, "held", (20, &json!({"timeout_seconds": 40})));
        let [soon, late] = [1, 10].map(|hours| enqueue(&mut shifted.client, &later(hours)));
        assert!(nothing_in(&mut shifted.client, "later"));
        let (start, mut newest) = (shifted.now(), late);
        let mut shown = Vec::new();
        for (hours, what) in [(2, "forward"), (-4, "back"), (0, "to the truth")] {
            shifted.set(hours * HOUR);
            let moved = shifted.now() - start - hours * HOUR;
            assert!((0..30_000).contains(&moved), "{what}: the clock is {moved} ms off");
            assert_held(&mut shifted, &held, 20);
            assert!(nothing_in(&mut shifted.client, "held"), "{what}: handed out again");
            // Who comes after the step is served at once, and its number is higher.
            let id = enqueue(&mut shifted.client, &json!({"type": "t", "queue": "now"}));
            assert!(id > newest, "{what}: {id} after {newest}");
            newest = id;
            assert_eq!(
                take(&mut shifted.client, "w", "now").complete(&mut shifted.client)["id"],
                id,
                "{what}"
            );
            shown.push(
                claim(&mut shifted.client, &json!({"worker_id": "w", "queues": ["later"]}))
                    .map(|held| held.id),
            );
        }
        // Whoever waits for a clock that was put back can say so.
        let waits = enqueue(&mut shifted.client, &json!({"type": "t", "queue": "wait"}));
        let due = job(&mut shifted.client, waits)["available_at"].clone();
        shifted.set(-HOUR);
        let why = shifted.client.get(&format!("/jobs/{waits}/explain")).expect(200);
        assert_eq!(
            (text(&why["reasons"][0]["kind"]), &why["reasons"][0]["until"]),
            ("scheduled", &due),
            "{why}"
        );
        shifted.set(0);
        take(&mut shifted.client, "w", "wait").complete(&mut shifted.client);
        // What was for one hour later was due when the clock stood two hours later, and nothing else ever was.
        assert_eq!(shown, [Some(soon), None, None]);
        assert_eq!(text(&job(&mut shifted.client, late)["status"]), "pending");
        held.complete(&mut shifted.client);
        assert_eq!(shifted.server.get("/stats").expect(200)["totals"]["lease_losses"], 0);
        shifted.check();
    }

    /// Moved along means in both directions: a lease is not kept alive by a clock that was put back.
    #[test]
    fn a_lease_ends_in_its_time_whatever_the_clock_does() {
        let mut shifted = Shifted::start(Options::default());
        for hours in [-5, 5, 0] {
            let limits = json!({"max_lease_losses": 1});
            let held = hold(&mut shifted.client, "held", (2, &limits));
            let timed =
                hold(&mut shifted.client, "timed", (3600, &json!({"timeout_seconds": 2, "max_retries": 0})));
            let begun = std::time::Instant::now();
            shifted.set(hours * HOUR);
            for (held, reason, cause) in
                [(held, "worker_lost", "lease_expired"), (timed, "outcome_unknown", "timed_out")]
            {
                let job = settled(&mut shifted.client, held.id);
                let failure = (text(&job["failure"]["reason"]), text(&job["failure"]["cause"]));
                assert_eq!(failure, (reason, cause), "{hours}: {job}");
            }
            let took = begun.elapsed().as_secs_f64();
            assert!((1.5..15.0).contains(&took), "{hours} hours: they ended after {took} s");
        }
        shifted.check();
    }

    #[test]
    fn a_clock_that_is_moved_while_no_server_runs_takes_no_lease() {
        let mut shifted = Shifted::start(Options::default());
        let held = hold(&mut shifted.client, "held", (30, &json!({})));
        let mut newest = held.id;
        // Up to an hour forward it might as well have been down; back it is plain that the clock was moved.
        for minutes in [50, -120, -70] {
            shifted.restart_at(minutes * MINUTE);
            assert_held(&mut shifted, &held, 30);
            assert!(nothing_in(&mut shifted.client, "held"), "{minutes}");
            let id = enqueue(&mut shifted.client, &json!({"type": "t", "queue": "now"}));
            assert!(id > newest, "{id} after {newest}");
            newest = id;
            take(&mut shifted.client, "w", "now").complete(&mut shifted.client);
        }
        assert_eq!(held.complete(&mut shifted.client)["attempt"], 1);
        shifted.check();
    }

    /// After more than an hour a lease is lost as if the server had been down for so long. Its worker may still report.
    #[test]
    fn a_clock_that_is_more_than_an_hour_ahead_at_the_start_ends_leases_and_late_reports_count() {
        let mut shifted = Shifted::start(Options::default());
        let held = hold(&mut shifted.client, "held", (30, &json!({"max_lease_losses": 1})));
        shifted.restart_at(5 * HOUR);
        assert_eq!(settled(&mut shifted.client, held.id)["failure"]["reason"], "worker_lost");
        let beat = held.heartbeat(&mut shifted.client).problem(409, "lease-lost");
        assert_eq!((&beat["stop"], &beat["may_report"]), (&json!(true), &json!(true)), "{beat}");
        let done = held.complete(&mut shifted.client);
        assert_eq!((text(&done["status"]), &done["lease_losses"]), ("completed", &json!(0)), "{done}");
        let history = attempts(&mut shifted.client, held.id);
        assert_eq!((history.len(), &history[0]["late"]), (1, &json!(true)), "{history:?}");
        shifted.check();
    }

    /// Retention goes by the clock, and never takes what has not ended.
    #[test]
    fn retention_takes_what_is_old_by_the_moved_clock_and_nothing_else() {
        let options = Options::default().set("retention.completed=1d").set("retention.cancelled=1d");
        let mut shifted = Shifted::start(options);
        let running = hold(&mut shifted.client, "q", (3600, &json!({})));
        let failed = hold(&mut shifted.client, "q", (60, &json!({})));
        failed.fail(&mut shifted.client, "permanent");
        let done = hold(&mut shifted.client, "q", (60, &json!({})));
        done.complete(&mut shifted.client);
        let pending =
            enqueue(&mut shifted.client, &json!({"type": "t", "queue": "q", "delay_seconds": 3_000_000}));
        let there = |client: &mut Client| {
            list(client, "?queue=q").iter().map(|job| job["id"].clone()).collect::<Vec<_>>()
        };
        for (hours, kept) in [
            (20, vec![running.id, failed.id, done.id, pending]),
            (-20, vec![running.id, failed.id, done.id, pending]),
            (30, vec![running.id, failed.id, pending]),
        ] {
            let before = sweeps(&mut shifted);
            shifted.set(hours * HOUR);
            while sweeps(&mut shifted) == before {
                pass(&mut shifted.client, 0.2);
            }
            // The sweep that was under way when the clock was set, and one more.
            pass(&mut shifted.client, 1.2);
            assert_eq!(json!(there(&mut shifted.client)), json!(kept), "{hours} hours");
        }
        running.complete(&mut shifted.client);
        shifted.check();
    }

    /// When retention last ran.
    fn sweeps(shifted: &mut Shifted) -> Value {
        shifted.client.get("/stats").expect(200)["services"][0]["last_run_at"].clone()
    }
}
