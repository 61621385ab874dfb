//! K08: a disk that is full, a file that cannot be written, read or understood.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::server::{Options, Server, tagwerk};
use crate::support::{enqueue, list, take};

/// A `serve` that must not start: what it says, and that it changes nothing.
fn refused(dir: &Path, file: &str) -> String {
    let before = std::fs::read(dir.join(file)).ok();
    let output = tagwerk(dir, &["serve", "--listen", "127.0.0.1:0", "--store", &format!("sqlite:{file}")])
        .output()
        .expect("the binary");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // "Something on this machine", as `--help` says.
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(output.stdout.is_empty(), "{said}");
    assert_eq!(std::fs::read(dir.join(file)).ok(), before, "the file was touched");
    said
}

/// A folder with the file of a server that was stopped in order, with one job.
fn used_store() -> (Server, i64) {
    let mut server = Server::start();
    let id = enqueue(&mut server.client(), &json!({"type": "t", "queue": "q", "payload": "kept"}));
    assert!(server.terminate().success());
    (server, id)
}

/// What is in the store after all that.
fn assert_kept(server: &mut Server, id: i64) {
    server.start_again();
    assert_eq!(server.get(&format!("/jobs/{id}")).expect(200)["payload"], "kept");
}

#[test]
fn a_damaged_header_is_told_and_left_alone() {
    let (mut server, id) = used_store();
    let good = std::fs::read(server.file()).expect("the file");
    for (what, from, bytes) in [
        ("magic", 0, &b"SQLite format 4\0"[..]),
        ("page size", 16, &[0xFF, 0xFF][..]),
        ("all of it", 0, &[0; 100][..]),
    ] {
        let mut bad = good.clone();
        bad[from..from + bytes.len()].copy_from_slice(bytes);
        std::fs::write(server.file(), &bad).expect("to write");
        let said = refused(server.dir(), "tagwerk.db");
        assert!(said.contains("tagwerk.db"), "{what}: {said}");
        assert!(said.contains("not a SQLite database") || said.contains("damaged"), "{what}: {said}");
    }
    std::fs::write(server.file(), &good).expect("to write");
    assert_kept(&mut server, id);
}

#[test]
fn a_file_of_somebody_else_is_told_and_left_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("notes.txt"), "milk, bread").expect("a file");
    let said = refused(dir.path(), "notes.txt");
    assert!(said.contains("notes.txt"), "{said}");
    std::fs::create_dir(dir.path().join("folder")).expect("a folder");
    let said = refused(dir.path(), "folder");
    assert!(said.contains("folder"), "{said}");
}

/// The file of a version that is yet to come.
mod needs_sqlite3 {
    use super::*;

    #[test]
    fn a_file_of_a_newer_version_is_told_and_left_alone() {
        let (mut server, id) = used_store();
        let sql = |text: &str| {
            let output = std::process::Command::new("sqlite3")
                .args([server.file().as_os_str(), text.as_ref()])
                .output()
                .expect("sqlite3");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        sql(
            "INSERT INTO migration (version, name, checksum, applied_at) VALUES (9999, '9999_later', 'x', 0)",
        );
        let said = refused(server.dir(), "tagwerk.db");
        assert!(said.contains("newer") && said.contains("9999"), "{said}");
        sql("DELETE FROM migration WHERE version = 9999");
        assert_kept(&mut server, id);
    }
}

/// Mounting needs rights, and the superuser is let through where a file is read-only.
mod needs_tmpfs {
    use super::*;
    use crate::support::disk::Disk;

    /// A full disk was not told apart from other errors: one retry and one report each second, tens of thousands. And a
    /// lock was taken in one store while the insert into another failed: the key was blocked and the job never there.
    #[test]
    fn f037_f052_a_full_disk_refuses_says_so_once_and_loses_nothing() {
        let disk = Disk::new("24m");
        let ballast = disk.path().join("ballast");
        std::fs::write(&ballast, vec![1; 4 << 20]).expect("ballast");
        let mut server = Server::with(Options::default().store(&disk.file("tagwerk.db")));
        let mut client = server.client();
        let held_id = enqueue(&mut client, &json!({"type": "held", "queue": "held"}));
        let held = take(&mut client, "w", "held");
        let payload = "x".repeat(100_000);
        let job = |n: usize| json!({"type": "t", "queue": "q", "payload": payload, "idempotency_key": format!("k-{n}")});
        let mut accepted = Vec::new();
        let refused = loop {
            let n = accepted.len();
            assert!(n < 1_000, "the disk does not get full");
            let answer = client.post("/jobs", &job(n));
            match answer.status {
                201 => accepted.push(answer.json()["id"].clone()),
                _ => break answer,
            }
        };
        let problem = refused.problem(503, "store-full");
        assert_eq!(problem["retryable"], true);
        assert!(refused.header("retry-after").is_some());
        // Again and again: the same answer, and the log does not repeat it.
        for _ in 0..200 {
            client.post("/jobs", &job(accepted.len())).problem(503, "store-full");
        }
        let lines =
            server.log().lines().filter(|line| line.contains("ERROR") || line.contains("WARN")).count();
        assert!(lines < 20, "{lines} lines in the log");
        // Reading goes on, and it says what is wrong.
        assert_eq!(list(&mut client, "?queue=q").len(), accepted.len());
        server.get("/livez").expect(200);
        assert_eq!(server.get("/readyz?verbose").status, 503);
        // A report is tried: it is small, so it may even fit.
        let report = held.call(&mut client, "complete", json!({}));
        assert!(report.status == 200 || report.problem(503, "store-full")["retryable"] == true);
        // Somebody makes room; nobody restarts anything.
        std::fs::remove_file(&ballast).expect("ballast");
        let late = client.post("/jobs", &job(accepted.len())).expect(201);
        accepted.push(late["id"].clone());
        if report.status != 200 {
            held.complete(&mut client);
        }
        assert_eq!(server.get(&format!("/jobs/{held_id}")).expect(200)["status"], "completed");
        assert_eq!(server.get("/readyz").status, 200);
        server.restart();
        let jobs = list(&mut server.client(), "?queue=q");
        assert_eq!(jobs.iter().map(|job| job["id"].clone()).collect::<Vec<_>>(), accepted);
        let store = format!("sqlite:{}", disk.file("tagwerk.db"));
        let check =
            tagwerk(server.dir(), &["check", "--integrity", "--store", &store]).output().expect("the binary");
        assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stdout));
    }

    #[test]
    fn a_disk_that_becomes_read_only_refuses_writes_and_still_reads() {
        let disk = Disk::new("32m");
        let file = disk.file("tagwerk.db");
        let mut server = Server::with(Options::default().store(&file));
        let id = enqueue(&mut server.client(), &json!({"type": "t", "payload": "kept"}));
        assert!(server.terminate().success());
        disk.remount("ro");
        let said = refused(disk.path(), "tagwerk.db");
        assert!(said.contains("read-only"), "{said}");
        disk.remount("rw");
        assert_kept(&mut server, id);
    }
}

/// Who may write, for the files that the server makes.
#[test]
fn the_files_of_the_store_are_for_their_owner() {
    let server = Server::start();
    enqueue(&mut server.client(), &json!({"type": "t"}));
    let mut seen = 0;
    for entry in std::fs::read_dir(server.dir()).expect("the folder") {
        let entry = entry.expect("an entry");
        if entry.file_name().to_string_lossy().starts_with("tagwerk.db") {
            let mode = entry.metadata().expect("its mode").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.file_name());
            seen += 1;
        }
    }
    assert!(seen >= 2, "the file and its log");
}
