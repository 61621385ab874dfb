//! A store that cannot be written: told from memory, since no row can say it.

/// Filling a disk takes one that is small.
mod needs_tmpfs {
    use serde_json::json;

    use crate::alerts::{alerts, eventually, quick, told, writes_down};
    use crate::server::Server;
    use crate::support::disk::Disk;

    #[test]
    fn a_full_disk_is_told_once_when_it_is_full_and_once_when_it_is_not() {
        let disk = Disk::new("24m");
        let server =
            Server::with(writes_down(quick().set("alerts.calm=0.5s")).store(&disk.file("tagwerk.db")));
        let client = &mut server.client();
        let job = json!({"type": "t", "queue": "q", "payload": "x".repeat(200_000)});
        client.post("/jobs", &job).expect(201);
        disk.fill();
        let mut tries = 0;
        while client.post("/jobs", &job).status == 201 {
            tries += 1;
            assert!(tries < 1_000, "the disk does not get full");
        }
        let opened = eventually("it is told that nothing can be written", || {
            // A small transaction may still fit between: it goes on failing while somebody writes much.
            client.post("/jobs", &job);
            told(&server).pop()
        });
        assert_eq!((&opened["type"], &opened["data"]["kind"]), (&json!("alert.opened"), &json!("store")));
        assert_eq!((&opened["data"]["scope"], &opened["data"]["name"]), (&json!("server"), &json!(null)));
        let detail = opened["data"]["detail"].as_str().expect("words");
        assert!(detail.contains("nothing can be written") && detail.contains("disk"), "{detail}");
        disk.free();
        eventually("it can be written again", || (client.post("/jobs", &job).status == 201).then_some(()));
        let closed = eventually("it is told that it is over", || told(&server).into_iter().nth(1));
        assert_eq!((&closed["type"], &closed["data"]["kind"]), (&json!("alert.closed"), &json!("store")));
        assert!(alerts(&server, "open").is_empty());
    }
}
