//! `tagwerk chaos`: a worker that does the right thing passes, and each kind of wrong worker is found by its name.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::cli_ran::Ran;
use crate::server::{BINARY, tagwerk};

/// A folder for a run; temporary files of the kit go there too.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir(place.temporary()).expect("a folder in it");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn temporary(&self) -> PathBuf {
        self.path("temporary")
    }

    /// `tagwerk chaos ARGS -- WORKER`, in an environment that would lead it to another server, or astray.
    fn chaos(&self, args: &[&str], worker: &[&str]) -> Command {
        let mut command = tagwerk(self.0.path(), &[&["chaos"], args, &["--"], worker].concat());
        command.env("TMPDIR", self.temporary()).env("TAGWERK_URL", "http://127.0.0.1:9");
        command.env("TAGWERK_MAX_RETRIES", "none").env("TAGWERK_TOKEN", "tw_secret");
        command
    }

    /// Runs it to its end. Whatever comes of it, nothing is left.
    fn run(&self, args: &[&str], worker: &[&str]) -> Ran {
        let ran = Ran::of(self.chaos(args, worker).output().expect("the binary"));
        self.is_clean();
        ran
    }

    /// The temporary folder of the kit is gone.
    fn is_clean(&self) {
        let left: Vec<_> = std::fs::read_dir(self.temporary()).expect("the folder").collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// The process that wrote its id into this file.
    fn process(&self, file: &str) -> i32 {
        loop {
            let text = std::fs::read_to_string(self.path(file)).unwrap_or_default();
            if let Some(id) = text.strip_suffix('\n') {
                return id.parse().expect("a process id");
            }
            std::thread::yield_now();
        }
    }
}

/// Whether a process runs: one that has ended and was not waited for does not.
fn runs(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.starts_with(" Z")))
}

fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success(), "{kill}");
}

/// A worker that does not end when it is asked, and writes its process id.
const STUBBORN: &[&str] = &["sh", "-c", "trap '' TERM INT; echo $$ > pid; while :; do sleep 1; done"];

/// JSON of a run that ended with this code.
fn report(ran: &Ran, code: i32) -> Value {
    serde_json::from_str(ran.expect(code)).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn a_worker_that_is_not_there_is_told() {
    let place = Place::new();
    let ran = place.run(&[], &["/no/such/worker", "--now"]);
    assert!(ran.fails(4).contains("cannot start the worker /no/such/worker: No such file"), "{ran:?}");
}

#[test]
fn a_worker_that_ends_at_once_is_told_with_what_it_said() {
    let place = Place::new();
    let ran = place.run(&[], &["sh", "-c", "echo 'no database' >&2; exit 3"]);
    let said = ran.fails(4);
    assert!(said.contains("ends without calling the server (exit status: 3)"), "{said}");
    assert!(said.contains("no database"), "{said}");
}

#[test]
fn a_worker_that_hangs_is_told_and_killed() {
    let place = Place::new();
    let ran = place.run(&["--patience", "3s"], STUBBORN);
    let said = ran.fails(4);
    assert!(said.contains("did not call the server within 3 s") && said.contains("TAGWERK_URL"), "{said}");
    // It is killed, not waited for.
    let worker = place.process("pid");
    while runs(worker) {}
}

#[test]
fn an_interrupt_ends_everything_and_tells_what_was_done() {
    let place = Place::new();
    let mut command = place.chaos(&["--json"], STUBBORN);
    let kit = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary");
    let worker = place.process("pid");
    assert!(runs(worker));
    signal(&kit, "INT");
    let ran = Ran::of(kit.wait_with_output().expect("its end"));
    let told = report(&ran, 1);
    assert_eq!((&told["interrupted"], &told["passed"]), (&json!(true), &json!(false)));
    assert_eq!(told["not_run"].as_array().map(Vec::len), Some(6), "{told}");
    place.is_clean();
    while runs(worker) {}
}

#[test]
fn a_kit_that_is_killed_takes_its_worker_and_server_with_it() {
    let place = Place::new();
    let mut kit = place.chaos(&[], STUBBORN).stderr(Stdio::null()).spawn().expect("the binary");
    let worker = place.process("pid");
    let folder = std::fs::read_dir(place.temporary()).expect("the folder").next().expect("one").expect("one");
    let servers = processes_in(&folder.path());
    assert_eq!(servers.len(), 1);
    kit.kill().expect("to kill it");
    kit.wait().expect("its end");
    while runs(worker) || servers.iter().any(|process| runs(*process)) {}
}

/// Processes that work in this folder.
fn processes_in(folder: &Path) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").expect("the processes").flatten();
    let works = |process: &std::fs::DirEntry| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|place| place == folder)
    };
    processes.filter(works).filter_map(|process| process.file_name().to_str()?.parse().ok()).collect()
}

/// The command of `tagwerk work` is tested with the whole line; one that looks does nothing twice.
#[test]
fn a_command_for_each_job_is_tested_like_any_worker() {
    let place = Place::new();
    let ships = r"{ [ $TAGWERK_JOB_VERIFY = true ] && grep -qx $TAGWERK_JOB_ID shipped; } || echo $TAGWERK_JOB_ID >> shipped";
    let count = r#"cat > /dev/null; sort shipped | uniq -c | awk '{print "\"" $2 "\":" $1}' | paste -sd, | sed 's/.*/{&}/'"#;
    let args = ["--scenario", "answer-lost", "--rounds", "2", "--lease", "2s", "--patience", "120s"];
    let args = [&args[..], &["--jobs", "2", "--json", "--check", count]].concat();
    let report = report(&place.run(&args, &[BINARY, "work", "--", "sh", "-c", ships]), 0);
    let lost = &report["scenarios"][1];
    assert_eq!((&lost["name"], &lost["rounds"]), (&json!("answer-lost"), &json!(2)), "{report}");
    assert!(lost["faults"].as_u64() >= Some(2), "{report}");
}

/// The same in the words of `work`; its own server is never asked.
#[test]
fn work_can_test_its_command_itself() {
    let place = Place::new();
    let mut command = place.chaos(&[], &[]);
    let env: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(Into::into))).collect();
    command =
        tagwerk(place.0.path(), &["work", "--chaos", "--type", "mail", "--queue", "q", "--timeout", "20s"]);
    for (name, value) in env {
        let value: Option<std::ffi::OsString> = value;
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // Nothing has happened, says the check.
    let none =
        r#"grep -o '"key": *"[^"]*"' | sed 's/.*"\(chaos[^"]*\)"/"\1":0/' | paste -sd, | sed 's/.*/{&}/'"#;
    command.args(["--for", "1m", "--json", "--check", none, "--", "true"]);
    let ran = Ran::of(command.output().expect("the binary"));
    place.is_clean();
    let report = report(&ran, 1);
    let worker: Vec<_> = report["worker"].as_array().expect("words").iter().skip(1).collect();
    let words = ["work", "--concurrency", "1", "--grace", "10.000", "--timeout", "20.000"];
    let words = [&words[..], &["--queue", "q", "--type", "mail", "--", "true"]].concat();
    assert_eq!(worker, words.iter().map(|word| json!(word)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    assert!(report["lost"].as_u64() > Some(0), "{report}");
    let ran = Ran::of(
        tagwerk(place.0.path(), &["work", "--check", "x", "--", "true"]).output().expect("the binary"),
    );
    assert!(ran.fails(2).contains("--chaos"), "{ran:?}");
}

#[test]
fn arguments_that_cannot_be_are_told_before_anything_is_started() {
    let place = Place::new();
    for (args, why) in [
        (&["--payload", "{order: 1}"][..], "--payload is not JSON"),
        (&["--scenario", "earthquake"], "invalid value 'earthquake'"),
        (&["--lease", "0.5s"], "between 1s and 1h"),
        (&["--rounds", "0"], "--rounds"),
        (&["--log", "/no/such/folder/log"], "cannot write /no/such/folder/log"),
    ] {
        let ran = place.run(args, STUBBORN);
        assert!(ran.fails(2).contains(why), "{ran:?}");
    }
    let ran = Ran::of(tagwerk(place.0.path(), &["chaos"]).output().expect("the binary"));
    assert!(ran.fails(2).contains("WORKER"), "{ran:?}");
    assert!(!place.path("pid").exists());
}

mod needs_python3 {
    use super::{Place, Ran, Value, json, report, runs};
    use crate::examples_workers::examples;

    const SCENARIOS: [&str; 7] =
        ["calm", "answer-lost", "lease-lost", "twice", "delayed", "refused", "killed"];

    fn scenario<'a>(report: &'a Value, name: &str) -> &'a Value {
        let scenarios = report["scenarios"].as_array().expect("scenarios");
        let found = scenarios.iter().find(|outcome| outcome["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {report}"))
    }

    /// The worker of the examples, with this manner.
    fn test(place: &Place, args: &[&str], manner: &str) -> Ran {
        let kit = examples().join("crash-kit");
        let (worker, count) = (kit.join("worker.py"), kit.join("count.py"));
        let check = format!("python3 {} shipped", count.display());
        let common =
            ["--payload", r#"{"order": "{key}"}"#, "--lease", "1s", "--jobs", "2", "--check", &check];
        let worker = worker.to_str().expect("UTF-8");
        place.run(&[&common[..], args].concat(), &["python3", worker, "shipped", manner])
    }

    /// The plain worker of the examples.
    fn plain(place: &Place, args: &[&str]) -> Ran {
        let worker = examples().join("workers/worker.py");
        place.run(args, &["python3", worker.to_str().expect("UTF-8")])
    }

    /// So that a slow machine does not make a worker look slow.
    const PATIENT: [&str; 2] = ["--patience", "120s"];

    #[test]
    fn a_worker_that_does_the_right_thing_passes_everything() {
        let place = Place::new();
        let args = [&PATIENT[..], &["--rounds", "2", "--seed", "11", "--json"]].concat();
        let report = report(&test(&place, &args, "careful"), 0);
        let outcomes = report["scenarios"].as_array().expect("scenarios");
        let names: Vec<&Value> = outcomes.iter().map(|outcome| &outcome["name"]).collect();
        assert_eq!(names, SCENARIOS);
        for name in SCENARIOS {
            let outcome = scenario(&report, name);
            let found = [&outcome["lost"], &outcome["doubled"], &outcome["unfinished"], &outcome["restarts"]];
            assert_eq!(found, [&json!(0), &json!(0), &json!(0), &json!(0)], "{outcome}");
            assert_eq!(outcome["passed"], true, "{outcome}");
            // What nothing was done to has not been tested.
            let faults = outcome["faults"].as_u64().expect("a number");
            assert_eq!(faults > 0, name != "calm", "{outcome}");
        }
        // A claim and a report for each job: killed at each of both, before it, when it is done, and when it is answered.
        let killed = scenario(&report, "killed");
        assert_eq!((&killed["rounds"], &killed["faults"]), (&json!(6), &json!(6)), "{killed}");
        let twice = scenario(&report, "twice");
        assert!(twice["runs"].as_u64() > twice["jobs"].as_u64(), "{twice}");
        assert_eq!((&report["seed"], &report["judged"]), (&json!(11), &json!("effects")));
        assert_eq!((&report["passed"], &report["not_run"]), (&json!(true), &json!([])));
    }

    #[test]
    fn a_worker_that_repeats_its_effect_is_found() {
        let place = Place::new();
        let args = [&PATIENT[..], &["--scenario", "twice,killed", "--rounds", "1", "--json"]].concat();
        let report = report(&test(&place, &args, "careless"), 1);
        for name in ["twice", "killed"] {
            let outcome = scenario(&report, name);
            assert!(outcome["doubled"].as_u64() > Some(0), "{outcome}");
            assert_eq!((&outcome["lost"], &outcome["unfinished"]), (&json!(0), &json!(0)), "{outcome}");
            let finding = &outcome["findings"][0];
            // More than two where a slow machine lets another lease end.
            assert!(finding["effects"].as_u64() >= Some(2), "{finding}");
            assert_eq!(
                (&finding["what"], &finding["effects"]),
                (&json!("doubled"), &finding["runs"]),
                "{finding}"
            );
        }
        assert_eq!(scenario(&report, "calm")["passed"], true);
        // Killed as it reports, its effect is done and nobody knows of it.
        let findings = scenario(&report, "killed")["findings"].as_array().expect("findings");
        let faults: Vec<&Value> = findings.iter().map(|finding| &finding["faults"][0]).collect();
        let expected = json!("complete: killed as it made this call, which did not reach the server");
        assert!(faults.contains(&&expected), "{faults:?}");
    }

    #[test]
    fn a_worker_that_reports_before_it_works_is_found() {
        let place = Place::new();
        let args = [&PATIENT[..], &["--scenario", "killed", "--seed", "3"]].concat();
        let ran = test(&place, &args, "early");
        let text = ran.expect(1);
        assert!(text.contains("lost: completed, and its effect did not happen"), "{text}");
        assert!(text.contains("complete: killed when the server had done this call"), "{text}");
        assert!(text.contains("FAILED: lost ") && text.contains("doubled 0, unfinished 0; seed 3"), "{text}");
    }

    #[test]
    fn a_worker_that_never_reports_is_found_in_the_calm() {
        let place = Place::new();
        let report = report(&test(&place, &["--patience", "8s", "--json"], "forgetful"), 1);
        let calm = scenario(&report, "calm");
        let finding = &calm["findings"][0]["what"];
        assert_eq!((&calm["unfinished"], finding), (&json!(2), &json!("unfinished")), "{calm}");
        assert_eq!((&calm["lost"], &calm["doubled"]), (&json!(0), &json!(0)), "{calm}");
        assert!(report["stopped"].is_string(), "{report}");
        assert_eq!(report["not_run"].as_array().map(Vec::len), Some(6), "{report}");
    }

    #[test]
    fn a_check_that_does_not_work_is_told() {
        let place = Place::new();
        let checked =
            |check| plain(&place, &["--scenario", "calm", "--jobs", "1", "--lease", "30s", "--check", check]);
        for (check, why) in [
            ("echo nonsense", "`echo nonsense` did not print an object of counts"),
            ("echo '{}'", "did not count job 1 (chaos-"),
            ("echo '{\"1\": -1}'", "did not print an object of counts"),
            ("exit 7", "has failed: exit status: 7"),
            ("no-such-command", "has failed: exit status: 127"),
        ] {
            let ran = checked(check);
            assert!(ran.code == Some(4) && ran.stderr.contains(why), "{ran:?}");
        }
        let ran = checked("cat > asked; echo '{\"1\": 1}'");
        assert!(ran.expect(0).contains("passed: lost 0"), "{ran:?}");
        let asked = std::fs::read(place.path("asked")).expect("the question");
        let asked: Value = serde_json::from_slice(&asked).expect("JSON");
        assert_eq!((&asked[0]["id"], &asked[0]["status"]), (&json!(1), &json!("completed")), "{asked}");
        assert_eq!(asked[0]["subject"]["id"], asked[0]["key"]);
    }

    #[test]
    fn without_a_check_it_is_said_what_was_not_judged() {
        let place = Place::new();
        let ran = plain(&place, &["--scenario", "calm"]);
        assert!(ran.expect(0).contains("Not judged: whether effects were lost or doubled"), "{ran:?}");
        let report = report(&plain(&place, &["--scenario", "calm", "--json"]), 0);
        assert_eq!((&report["lost"], &report["judged"]), (&Value::Null, &json!("status_only")));
    }

    #[test]
    fn a_job_in_review_counts_as_is_asked() {
        let place = Place::new();
        let args =
            ["--scenario", "calm", "--max-retries", "0", "--lease", "60s", "--payload", r#"{"fail": true}"#];
        let ran = plain(&place, &args);
        assert!(ran.expect(1).contains("unfinished: it is in review; error: ValueError"), "{ran:?}");
        plain(&place, &[&args[..], &["--review-ok"]].concat()).expect(0);
    }

    #[test]
    fn when_its_time_is_over_it_says_what_was_not_run() {
        let place = Place::new();
        let report = report(&test(&place, &["--for", "6s", "--json"], "careful"), 5);
        assert_eq!((&report["time_over"], &report["passed"]), (&json!(true), &json!(false)));
        assert!(report["not_run"].as_array().expect("names").contains(&json!("killed")), "{report}");
    }

    #[test]
    fn a_worker_with_children_is_ended_whole() {
        let place = Place::new();
        let worker = examples().join("workers/worker.py");
        let child = "sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1; done'";
        let script = format!("{child} & exec python3 {}", worker.display());
        place.run(&["--scenario", "calm"], &["sh", "-c", &script]).expect(0);
        let left = place.process("pid");
        while runs(left) {}
    }
}
