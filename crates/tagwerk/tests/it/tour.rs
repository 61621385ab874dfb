//! The README's first job and tour, as they are written, and the tour with everything killed meanwhile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli_ran::run_alone;
use crate::examples_workers::examples;
use crate::work_outage::{SocketServer, client, worker};
use crate::work_process::Worker;

/// The blocks of shell under a heading of the README.
fn blocks(heading: &str) -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(readme).expect("the README");
    let section = text.split(&format!("\n## {heading}\n")).nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1);
    blocks.filter_map(|rest| Some(rest.split_once("```")?.0.to_owned())).collect()
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

mod needs_python3 {
    use super::*;
    use crate::server::Server;
    use std::process::Command;

    /// The README's commands on this machine: another port, another folder, the binary under test on the path.
    struct Walk {
        server: Server,
        path: String,
    }

    impl Walk {
        fn new() -> Self {
            let server = Server::start();
            std::os::unix::fs::symlink(examples(), server.dir().join("examples")).expect("a link");
            let binary = Path::new(crate::server::BINARY).parent().expect("its folder").display();
            let path = std::env::var("PATH").expect("a path");
            // Python itself rather than a wrapper that chooses one: it is started 3,000 times.
            let which = ["-c", "import os, sys; print(os.path.dirname(sys.executable))"];
            let python = Command::new("python3").args(which).output().expect("python3").stdout;
            let python = String::from_utf8(python).expect("UTF-8");
            Self { path: format!("{binary}:{}:{path}", python.trim()), server }
        }

        fn command(&self, block: &str) -> Command {
            let folder = self.server.dir().join("tour").display().to_string();
            let block =
                block.replace("http://127.0.0.1:7070", &self.server.url()).replace("/tmp/tour", &folder);
            let block: Vec<_> = block.lines().filter(|line| !line.starts_with("export PATH=")).collect();
            let mut command = Command::new("sh");
            command.args(["-e", "-c", &block.join("\n")]).current_dir(self.server.dir());
            command.env("PATH", &self.path).env("TAGWERK_URL", self.server.url());
            command
        }

        /// Runs a block; what it printed.
        fn run(&self, block: &str) -> String {
            let output = self.command(block).output().expect("a shell");
            assert!(output.status.success(), "{block}\n{output:?}");
            String::from_utf8(output.stdout).expect("UTF-8")
        }

        /// Waits until no job waits or runs.
        fn settle(&self) {
            for status in ["running", "pending", "running"] {
                loop {
                    let page = self.server.get(&format!("/jobs?status={status}&limit=1")).expect(200);
                    let Some(job) = page["jobs"].get(0) else { break };
                    self.server.get(&format!("/jobs/{}?wait_seconds=20", job["id"])).expect(200);
                }
            }
        }
    }

    mod needs_curl {
        use super::*;

        #[test]
        fn the_readme_works_as_written() {
            let walk = Walk::new();
            let [first] = blocks("The first job").try_into().expect("one block");
            assert!(walk.run(&first).contains("\"status\":\"completed\""));
            let [enqueue, work, look, review] = blocks("A tour").try_into().expect("four blocks");
            assert_eq!(walk.run(&enqueue), "created 3000, existing 0, refused 0\n");
            // Two minutes are plenty on a machine that does nothing else.
            let work = format!("exec {}", work.trim().replace("--for 2m", "--for 9m"));
            let mut workers = [(); 2].map(|()| Worker::spawn(&mut walk.command(&work)));
            workers[1].line("outcome=completed");
            assert!(walk.run(&look).contains("job 3000 is "));
            walk.settle();
            for worker in &mut workers {
                assert_eq!(worker.end(), Some(0), "{:#?}", worker.said);
            }
            let said = walk.run(&review);
            assert_eq!(said.lines().filter(|line| line.contains("  permanent  ")).count(), 16, "{said}");
            for text in [
                "P-00150 has no price",
                "job 151 is pending, due ",
                "job 334 is cancelled\n",
                "clean (3001 jobs",
            ] {
                assert!(said.contains(text), "{text:?} is not in {said}");
            }
            let bad = |number: &usize| number % 300 == 150 || number % 500 == 333;
            let good: BTreeSet<_> = (1..=3000).filter(|number| !bad(number)).map(sku).collect();
            assert_eq!(good.len(), 2_984);
            assert_eq!(imported(&walk.server.dir().join("tour")), good);
        }
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
