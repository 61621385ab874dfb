//! The tour of the README, as it is written, and the same with everything killed meanwhile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli_ran::run_alone;
use crate::examples_workers::examples;
use crate::work_outage::{SocketServer, client, worker};
use crate::work_process::Worker;

/// The shell commands under the heading `Tour` of a document.
fn tour(document: &Path) -> String {
    let text = std::fs::read_to_string(document).expect("the document");
    let section = text.split("\n## Tour\n").nth(1).expect("a section `## Tour`");
    let block = section.split("```sh\n").nth(1).expect("a block of shell");
    block.split("```").next().unwrap_or_default().to_owned()
}

fn example() -> PathBuf {
    examples().join("product-import")
}

/// The products that were written, by their article numbers.
fn imported(dir: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(dir.join("imported")).expect("the folder of products");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let skus: BTreeSet<_> = names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect();
    for sku in &skus {
        let text = std::fs::read_to_string(dir.join(format!("imported/{sku}.json"))).expect("a product");
        let product: Value = serde_json::from_str(&text).expect("a whole product");
        assert_eq!(product["sku"], sku.as_str());
    }
    skus
}

fn sku(number: usize) -> String {
    format!("P-{number:05}")
}

#[test]
fn the_readme_shows_the_tour_that_is_tested() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    assert_eq!(tour(&readme), tour(&example().join("README.md")));
}

mod needs_python3 {
    use super::*;
    use std::net::TcpListener;
    use std::process::Command;

    /// Runs the tour in a folder that has `examples` in it, with `tagwerk` on the path.
    fn walk(dir: &Path, script: &str) -> std::process::Output {
        std::os::unix::fs::symlink(examples(), dir.join("examples")).expect("a link");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        drop(listener);
        let binary = Path::new(crate::server::BINARY).parent().expect("its folder").display();
        let path = std::env::var("PATH").expect("a path");
        // Python itself rather than a wrapper that chooses one: it is started 3,000 times.
        let which = ["-c", "import os, sys; print(os.path.dirname(sys.executable))"];
        let python = Command::new("python3").args(which).output().expect("python3").stdout;
        let python = String::from_utf8(python).expect("UTF-8");
        // With job control, as at a prompt; what fails half way leaves nothing running.
        let script = format!("trap 'kill $(jobs -p) 2> /dev/null' EXIT\n{script}");
        let mut command = Command::new("bash");
        command.args(["-m", "-e", "-c", &script]).current_dir(dir).stdin(std::process::Stdio::null());
        command.env("PATH", format!("{binary}:{}:{path}", python.trim()));
        // The tour's own port may be in use on this machine.
        command.env("TAGWERK_LISTEN", &address).env("TAGWERK_URL", format!("http://{address}"));
        command.output().expect("a shell")
    }

    #[test]
    fn the_tour_works_as_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let output = walk(dir.path(), &tour(&example().join("README.md")));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        for text in [
            "created 3000, existing 0, refused 0\n",
            "job 3000 is completed\n",
            "P-00150 has no price",
            "job 150 is pending, due ",
            "job 150 is completed\n",
            "job 333 is cancelled\n",
        ] {
            assert!(said.contains(text), "{text:?} is not in {said}");
        }
        let review = said.lines().filter(|line| line.contains("  permanent  ")).count();
        assert_eq!(review, 16, "{said}");
        let bad = |number: &usize| number % 300 == 150 && *number != 150 || number % 500 == 333;
        let good: BTreeSet<_> = (1..=3000).filter(|number| !bad(number)).map(sku).collect();
        // A retry may still have been due when the tour ended; nothing else may be missing, and nothing too much.
        let written = imported(dir.path());
        assert!(written.is_subset(&good) && good.len() - written.len() <= 4, "{}", written.len());
        let check = run_alone(dir.path(), &["check", "--integrity"]);
        assert!(check.expect(0).contains("clean (3000 jobs"), "{check:?}");
    }

    /// Rows of the shorter list: enough that the killing falls into the middle of the work.
    const ROWS: usize = 400;

    struct World {
        dir: tempfile::TempDir,
        server: SocketServer,
        workers: Vec<Worker>,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a folder");
            let server = SocketServer::start(dir.path());
            let script = format!(
                "'{0}'/products.py {ROWS} > products.csv && '{0}'/jobs.py products.csv > jobs.ndjson",
                example().display()
            );
            let status = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).status();
            assert!(status.expect("a shell").success());
            assert_eq!(
                client(dir.path(), &["enqueue", "--bulk", "jobs.ndjson"]),
                format!("created {ROWS}, existing 0, refused 0\n")
            );
            let workers = (0..2).map(|_| start_worker(dir.path())).collect();
            Self { dir, server, workers }
        }

        /// Waits until this worker has completed some more jobs.
        fn progress(&mut self, worker: usize) {
            for _ in 0..15 {
                self.workers[worker].line("outcome=completed");
            }
        }

        fn kill_worker(&mut self, worker: usize) {
            self.workers[worker].kill();
            self.workers[worker] = start_worker(self.dir.path());
        }

        fn kill_server(&mut self) {
            self.server.kill();
            self.server = SocketServer::start(self.dir.path());
        }

        fn list(&self, status: &str) -> Vec<Value> {
            let args = ["jobs", "list", "--json", "--limit", "1000", "--status", status];
            let page: Value = serde_json::from_str(&client(self.dir.path(), &args)).expect("JSON");
            page["jobs"].as_array().expect("jobs").clone()
        }

        /// Waits until every job has ended, for now.
        fn settle(&self) {
            loop {
                let open = [self.list("running"), self.list("pending")].concat();
                let Some(last) = open.last() else { return };
                // Failed is an end too.
                let id = last["id"].to_string();
                run_alone(self.dir.path(), &["jobs", "wait", &id, "--url", "unix:t.sock"]);
            }
        }
    }

    fn start_worker(dir: &Path) -> Worker {
        let script = example().join("import_product.py");
        let script = script.to_string_lossy();
        worker(dir, &["--concurrency", "2", "--lease", "2s"], &[&*script, "imported"])
    }

    #[test]
    fn every_job_is_done_and_every_product_written_once_when_all_are_killed_meanwhile() {
        let mut world = World::new();
        for round in 0..3 {
            world.progress(0);
            world.kill_worker(round % 2);
            world.progress(1);
            world.kill_server();
            world.progress(0);
            // Both at once, and the server with them.
            world.server.kill();
            world.kill_worker(0);
            world.kill_worker(1);
            world.server = SocketServer::start(world.dir.path());
        }
        world.settle();
        let review = world.list("failed");
        let ids: Vec<_> = review.iter().map(|job| job["id"].as_u64().expect("an id")).collect();
        assert_eq!(ids, [150, 333], "{review:#?}");
        assert_eq!(world.list("completed").len(), ROWS - 2);
        let dir = world.dir.path();
        for (id, fixed) in [
            (
                "150",
                r#"{"sku":"P-00150","ean":"4006380001503","name":"Cotton stool","price":"24.90","stock":60}"#,
            ),
            (
                "333",
                r#"{"sku":"P-00333","ean":"4006380003330","name":"Linen table","price":"326.31","stock":9}"#,
            ),
        ] {
            client(dir, &["review", "retry", id, "--payload", fixed]);
            assert_eq!(client(dir, &["jobs", "wait", id]), format!("job {id} is completed\n"));
        }
        assert_eq!(world.list("completed").len(), ROWS);
        assert_eq!(imported(dir), (1..=ROWS).map(sku).collect());
        for worker in &mut world.workers {
            assert_eq!(worker.end(), Some(0), "{:#?}", worker.said);
        }
        assert!(run_alone(dir, &["check", "--integrity"]).expect(0).contains("clean"));
    }
}
