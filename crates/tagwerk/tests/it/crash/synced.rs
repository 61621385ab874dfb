//! An answer is written only when what it says has been synced: seen in the system calls of the server.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{Held, claim};

/// `strace` beside the server.
mod needs_strace {
    use super::*;

    /// What it has seen so far goes to a file in the server's folder.
    struct Trace {
        child: Child,
        /// Kept, so that what it says has somewhere to go.
        _said: BufReader<ChildStderr>,
    }

    impl Trace {
        fn of(server: &Server) -> Self {
            let calls = "trace=pwrite64,fdatasync,fsync,sendto,sendmsg,write,writev";
            let mut child = Command::new("strace")
                .args(["-f", "-y", "-s", "9000", "-e", calls, "-o", "trace", "-p", &server.pid().to_string()])
                .current_dir(server.dir())
                .stderr(Stdio::piped())
                .spawn()
                .expect("strace");
            let mut said = BufReader::new(child.stderr.take().expect("its stderr"));
            let mut line = String::new();
            said.read_line(&mut line).expect("its first words");
            assert!(line.contains("attached"), "strace may not look at the server: {line}");
            Self { child, _said: said }
        }

        /// Lets the server go, and returns what was seen.
        fn end(mut self, server: &Server) -> Vec<String> {
            let pid = i32::try_from(self.child.id())
                .ok()
                .and_then(rustix::process::Pid::from_raw)
                .expect("a process");
            rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("to end strace");
            self.child.wait().expect("its end");
            let seen = std::fs::read_to_string(server.dir().join("trace")).expect("what was seen");
            seen.lines().map(str::to_owned).collect()
        }
    }

    /// A system call that came to its end, by whether this is its one line, its beginning or its end.
    fn is_sync_of_log_begun(line: &str) -> bool {
        (line.contains("fdatasync(") || line.contains("fsync(")) && line.contains(".db-wal>")
    }

    /// The thread that a line is about.
    fn thread(line: &str) -> &str {
        line.split_whitespace().next().unwrap_or_default()
    }

    /// Whether between the last writing of this mark to the log and the first answer with it the log was synced.
    fn assert_synced(seen: &[String], mark: &str) {
        let has = |line: &&String| line.contains(mark);
        let at = |wanted: &dyn Fn(&&String) -> bool| seen.iter().position(|line| wanted(&line));
        let answered = at(&|line| has(line) && line.contains("HTTP/1.1 2")).expect("an answer");
        let written = seen[..answered].iter().rposition(|line| has(&line) && line.contains(".db-wal>"));
        let written = written.unwrap_or_else(|| panic!("{mark} was answered before it was written"));
        let begun = seen[written..answered].iter().position(|line| is_sync_of_log_begun(line));
        let begun = written + begun.unwrap_or_else(|| panic!("{mark} was answered before a sync was begun"));
        let ended = if seen[begun].contains("<unfinished") {
            let who = thread(&seen[begun]);
            let resumed = |line: &String| thread(line) == who && line.contains("sync resumed");
            seen[begun + 1..answered].iter().find(|line| resumed(line))
        } else {
            Some(&seen[begun])
        };
        let ended = ended.unwrap_or_else(|| panic!("{mark} was answered before the sync had ended"));
        assert!(ended.trim_end().ends_with("= 0"), "{mark}: {ended}");
    }

    #[test]
    fn f007_every_success_is_answered_after_its_sync() {
        let server = Server::start();
        let mut client = server.client();
        client.get("/livez").expect(200);
        let trace = Trace::of(&server);
        let mut marks = Vec::new();
        for n in 0..20 {
            let mark = |what: &str| format!("mark-{what}-{n}-");
            client.post("/jobs", &json!({"type": "t", "queue": "q", "payload": mark("new")})).expect(201);
            let wish = json!({"worker_id": mark("claimed"), "queues": ["q"]});
            let held: Held = claim(&mut client, &wish).expect("a job");
            let done: Value = held.call(&mut client, "complete", json!({"result": mark("done")})).expect(200);
            assert_eq!(done["status"], "completed");
            marks.extend(["new", "claimed", "done"].map(mark));
        }
        let seen = trace.end(&server);
        for mark in marks {
            assert_synced(&seen, &mark);
        }
    }
}
