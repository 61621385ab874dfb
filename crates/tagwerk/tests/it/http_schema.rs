//! The served `OpenAPI` document and the server that serves it, held against each other by schemathesis: it makes calls
//! out of the document, good and bad ones, and judges the answers by it.
//!
//! What is left out, and why, stands in `xtask/schemathesis`. `cargo xtask schemathesis --examples N` tries harder.

mod needs_schemathesis {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use serde_json::Value;

    use crate::server::Server;
    use crate::support::setting;

    /// As many as pass in half a minute on a small machine.
    const EXAMPLES: u32 = 8;
    /// The same calls each time: what this finds it finds for everybody. `cargo xtask schemathesis` rolls the dice.
    const SEED: u32 = 1;

    #[test]
    fn the_document_and_the_server_agree_in_every_operation() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let server = Server::start();
        let document = server.get("/openapi.json").expect(200);
        // From a file: read from the server, the path of the document itself would be left out.
        let file = server.dir().join("openapi.json");
        std::fs::write(&file, document.to_string()).expect("the document");
        let report = server.dir().join("report.json");
        let rules = root.join("xtask/schemathesis");
        let mut command = Command::new(root.join("target/tools/python/bin/schemathesis"));
        command.arg("--config-file").arg(rules.join("schemathesis.toml")).arg("run").arg(&file);
        command.args(["--url", &server.url(), "--no-color", "--report", "json"]);
        command.arg("--report-json-path").arg(&report);
        command.args(["--max-examples", &setting("TAGWERK_SCHEMATHESIS_EXAMPLES", EXAMPLES).to_string()]);
        let seed = setting("TAGWERK_SCHEMATHESIS_SEED", SEED.to_string());
        if seed != "random" {
            command.args(["--seed", &seed]);
        }
        command.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", &rules);
        command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(server.dir()).stdin(Stdio::null());
        let ended = command.output().expect("schemathesis");
        let said = String::from_utf8_lossy(&ended.stdout);
        let report = std::fs::read_to_string(&report).unwrap_or_else(|error| {
            panic!("no report: {error}\n{said}\n{}", String::from_utf8_lossy(&ended.stderr))
        });
        let report: Value = serde_json::from_str(&report).expect("JSON");
        // From the text, since no float holds it.
        let seed = said.lines().find(|line| line.starts_with("Seed: ")).unwrap_or("no seed");
        println!("{seed}, {}", report["test_cases"]);
        assert!(ended.status.success(), "{said}");
        let routes = tagwerk_api::openapi::routes().count();
        for count in ["total", "selected", "tested"] {
            assert_eq!(report["operations"][count], routes, "{}", report["operations"]);
        }
        for phase in ["examples", "coverage", "fuzzing", "stateful"] {
            assert_eq!(report["phases"][phase]["status"], "success", "{}", report["phases"]);
        }
        // Calls that were made, not only planned.
        assert!(report["test_cases"]["generated"].as_u64() > Some(1_000), "{}", report["test_cases"]);
    }
}
