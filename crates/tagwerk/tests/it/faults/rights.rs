//! K08: files and folders that may not be written or read, at the start and under a running server; files that are taken away
//! under it. (A full disk stands in `disk` and in `crash::full`.)
//!
//! Deliberately absent: a file system that turns read-only under open files. The kernel refuses to remount one that somebody
//! writes to; it happens by itself only after errors of a disk.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::server::{BINARY, Options, Server, tagwerk};
use crate::support::{enqueue, in_parallel, job, list, text};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("to set the mode");
}

/// The database and its log.
fn files(server: &Server) -> [PathBuf; 2] {
    [server.file(), server.file().with_extension("db-wal")]
}

/// What is written to a file that was deleted is lost, so nobody is told that it was stored.
#[test]
fn a_file_that_is_taken_away_under_the_server_takes_no_acknowledged_job_along() {
    let mut server = Server::start();
    let mut client = server.client();
    let mut ids = vec![enqueue(&mut client, &json!({"type": "t", "queue": "q"}))];
    for file in files(&server) {
        let aside = server.dir().join("aside");
        fs::rename(&file, &aside).expect("to move it");
        for replaced in [false, true] {
            if replaced {
                fs::write(&file, b"").expect("another file");
            }
            let refused = client.post("/jobs", &json!({"type": "t", "queue": "q"}));
            let problem = refused.problem(503, "store-damaged");
            assert!(refused.header("retry-after").is_some(), "{problem}");
            // It is no damage, and the way out is no backup.
            let detail = problem["detail"].as_str().expect("a detail");
            assert!(detail.contains("gone or is another one; put it back"), "{problem}");
            assert!(!detail.contains("backup") && !detail.contains("damaged"), "{problem}");
            let ready = client.get("/readyz?verbose");
            assert_eq!(ready.status, 503);
            assert!(ready.text().contains("deleted or replaced"), "{ready:?}");
            assert!(!ready.text().contains("backup"), "{ready:?}");
            client.get("/livez").expect(200);
        }
        fs::rename(&aside, &file).expect("to put it back");
        ids.push(enqueue(&mut client, &json!({"type": "t", "queue": "q"})));
        assert_eq!(client.get("/readyz").status, 200);
    }
    server.restart();
    let jobs = list(&mut server.client(), "?queue=q");
    assert_eq!(jobs.iter().map(|job| job["id"].clone()).collect::<Vec<_>>(), ids);
}

/// The superuser is let through everywhere, so the server runs as somebody without rights.
mod needs_setpriv {
    use super::*;

    /// `nobody`
    const NOBODY: u32 = 65_534;
    const UNDER: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

    /// A folder of nobody's, with a program that nobody may run.
    fn folder() -> (tempfile::TempDir, Options) {
        let dir = tempfile::tempdir().expect("a folder");
        let program = dir.path().join("program");
        fs::copy(BINARY, &program).expect("a copy of the binary");
        chmod(&program, 0o755);
        chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("to give it away");
        let under = UNDER.map(str::to_owned).into_iter().chain([program.to_str().expect("UTF-8").to_owned()]);
        (dir, Options::default().under(under.collect()))
    }

    fn start() -> Server {
        let (dir, options) = folder();
        Server::in_dir(dir, options)
    }

    /// A `serve` that must not start: it says why and changes nothing.
    fn refused(server: &Server) {
        let before = fs::read(server.file()).expect("the file");
        let output =
            server.command(&["serve", "--listen", "127.0.0.1:0", "--store", &server.store()]).output();
        let output = output.expect("the binary");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(output.stdout.is_empty(), "{said}");
        assert!(said.contains("read-only") || said.contains("written"), "{said}");
        assert!(said.contains("tagwerk.db"), "{said}");
        assert_eq!(fs::read(server.file()).expect("the file"), before);
    }

    #[test]
    fn a_file_or_folder_that_may_not_be_written_is_told_at_the_start() {
        let mut server = start();
        let id = enqueue(&mut server.client(), &json!({"type": "t", "payload": "kept"}));
        assert!(server.terminate().success());
        for (path, mode, right) in [(server.file(), 0o400, 0o600), (server.dir().to_owned(), 0o500, 0o700)] {
            chmod(&path, mode);
            refused(&server);
            chmod(&path, right);
        }
        // What is only to be looked at needs no right to write.
        chmod(&server.file(), 0o400);
        let check = server.command(&["check", "--store", &server.store()]).output().expect("the binary");
        assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
        // It leaves nothing behind that the next server may not write.
        assert!(!files(&server)[1].exists());
        chmod(&server.file(), 0o600);
        server.start_again();
        assert_eq!(text(&job(&mut server.client(), id)["payload"]), "kept");
    }

    /// Rights are looked at when a file is opened: who has it open goes on. Nothing becomes an error of the server.
    #[test]
    fn rights_that_are_taken_away_from_a_running_server_lose_nothing() {
        let mut server = start();
        let mut client = server.client();
        let mut ids = vec![enqueue(&mut client, &json!({"type": "t", "queue": "q"}))];
        let [database, log] = files(&server);
        for (path, mode, right) in
            [(server.dir().to_owned(), 0o500, 0o700), (database, 0o400, 0o600), (log, 0, 0o600)]
        {
            chmod(&path, mode);
            ids.push(enqueue(&mut client, &json!({"type": "t", "queue": "q"})));
            // More at once than there are connections open, so that some are opened now.
            let answers =
                in_parallel((6, &[(); 12]), || server.client(), |client, ()| client.get("/jobs?queue=q"));
            for answer in answers {
                assert!(answer.status == 200 || answer.status == 503, "{path:?}: {answer:?}");
            }
            chmod(&path, right);
            assert_eq!(list(&mut client, "?queue=q").len(), ids.len(), "{path:?}");
        }
        server.restart();
        let jobs = list(&mut server.client(), "?queue=q");
        assert_eq!(jobs.iter().map(|job| job["id"].clone()).collect::<Vec<_>>(), ids);
        let check = tagwerk(server.dir(), &["check", "--integrity", "--store", &server.store()]).output();
        assert_eq!(check.expect("the binary").status.code(), Some(0));
    }
}
