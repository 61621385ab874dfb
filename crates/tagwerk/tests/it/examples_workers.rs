//! The small workers of `examples/workers`, each run as its README says, against the real server.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::server::Server;

/// The examples.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A worker that runs until the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn start(server: &Server, program: &str, args: &[&str]) -> Running {
    let mut command = Command::new(program);
    let worker = examples().join("workers").join(args[0]);
    command.arg(worker).args(&args[1..]).env("TAGWERK_URL", server.url());
    command.current_dir(server.dir()).stdin(Stdio::null()).stdout(Stdio::null());
    Running(command.spawn().unwrap_or_else(|error| panic!("{program}: {error}")))
}

/// Two jobs that succeed and one that fails, worked by this worker; the jobs as they are in the end.
fn worked_by(program: &str, args: &[&str]) -> Vec<Value> {
    let server = Server::start();
    for payload in [json!({"n": 1}), json!({"fail": true}), json!({"text": "ü \"quoted\" \\ $HOME"})] {
        let job = json!({"type": "App\\Jobs\\Mail", "payload": payload, "max_retries": 0});
        server.post("/jobs", &job).expect(201);
    }
    let _worker = start(&server, program, args);
    let jobs: Vec<_> =
        (1..=3).map(|id| server.get(&format!("/jobs/{id}?wait_seconds=60")).expect(200)).collect();
    let statuses: Vec<_> = jobs.iter().map(|job| job["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "failed", "completed"], "{jobs:#?}");
    jobs
}

/// A worker of about 20 lines is one that people read.
fn is_short(file: &str) {
    let text = std::fs::read_to_string(examples().join("workers").join(file)).expect("the example");
    assert!(text.lines().count() <= 25, "{file}");
}

mod needs_php {
    use super::{is_short, json, worked_by};

    #[test]
    fn the_worker_in_php_claims_works_and_reports() {
        is_short("worker.php");
        let jobs = worked_by("php", &["worker.php"]);
        assert_eq!(
            (&jobs[0]["result"], &jobs[1]["error"]),
            (&json!({"handled_by": "php"}), &json!("asked to fail"))
        );
    }
}

mod needs_python3 {
    use super::{is_short, json, worked_by};

    #[test]
    fn the_worker_in_python_claims_works_and_reports() {
        is_short("worker.py");
        let jobs = worked_by("python3", &["worker.py"]);
        assert_eq!(jobs[0]["result"], json!({"handled_by": "python"}));
        assert_eq!(jobs[1]["error"], "ValueError('asked to fail')");
    }
}

mod needs_curl {
    use std::process::Command;

    use super::{Server, Value, is_short, json, worked_by};

    #[test]
    fn the_worker_in_shell_claims_works_and_reports() {
        is_short("worker.sh");
        let handler = "grep -q '\"fail\":true' && exit 3; exit 0";
        let jobs = worked_by("sh", &["worker.sh", "sh", "-c", handler]);
        assert_eq!(jobs[1]["error"], "exit code 3");
    }

    fn curl(args: &[&str]) -> Value {
        let output = Command::new("curl").args(["-s", "--max-time", "60"]).args(args).output().expect("curl");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    #[test]
    fn the_plain_loop_needs_no_token_and_no_body() {
        let server = Server::start();
        server.post("/jobs", &json!({"type": "t"})).expect(201);
        let url = server.url();
        let kind = "Content-Type: application/json";
        let job = curl(&["-H", kind, "-d", r#"{"worker_id":"w"}"#, &format!("{url}/jobs/claim")]);
        assert_eq!((&job["id"], &job["status"]), (&json!(1), &json!("running")));
        let job = curl(&["-X", "POST", &format!("{url}/jobs/1/complete")]);
        assert_eq!(job["status"], "completed");
    }
}
