//! Tagwerk beside its peers and its ceilings; started by `cargo xtask bench`.
//!
//! | module | what |
//! |---|---|
//! | `plan`, `measure` | how long and how often; what is measured |
//! | `install`, `start` | bringing systems here, configuring and starting them |
//! | `subject`, `driver`, `processes` | a system under test, the conversation with its driver, its processes |
//! | `run`, `scale` | the two runs |
//! | `report`, `targets`, `render` | what was measured, what it is to be, how it is shown |
//! | `drive`, `echo` | the other side: our own drivers, and the echo route |

mod drive;
mod driver;
mod echo;
mod install;
mod machine;
mod measure;
mod plan;
mod processes;
mod render;
mod report;
mod run;
mod scale;
mod start;
mod subject;
mod system;
mod targets;

use std::process::ExitCode;

use anyhow::Context as _;
use plan::{HELP, Plan};
use processes::Roster;
use subject::Place;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> anyhow::Result<()> {
    match words.first().map(String::as_str) {
        Some("drive") => drive::run(&words[1..]),
        Some("echo") => echo::run(),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(())
        }
        Some("scale") => {
            let plan = scale::Plan::parse(&words[1..])?;
            within_place(|place| scale::run(place, &plan))
        }
        _ => {
            let plan = Plan::parse(words)?;
            within_place(|place| compare(place, &plan))
        }
    }
}

/// The comparison with the peers.
fn compare(place: &Place, plan: &Plan) -> anyhow::Result<()> {
    let report = run::run(place, plan)?;
    let text = render::markdown(&report);
    println!("\n{text}");
    if plan.keep {
        keep(place, "", (&serde_json::to_string_pretty(&report)?, &text))?;
    }
    Ok(())
}

/// Writes results under the time of day.
fn keep(place: &Place, suffix: &str, what: (&str, &str)) -> anyhow::Result<()> {
    let folder = place.root.join("bench/results");
    std::fs::create_dir_all(&folder)?;
    let name = format!("{}{suffix}", system::date("%Y-%m-%d-%H%M"));
    for (extension, text) in [("json", what.0), ("md", what.1)] {
        let path = folder.join(format!("{name}.{extension}"));
        std::fs::write(&path, format!("{}\n", text.trim_end())).context("cannot keep the results")?;
        println!("kept in bench/results/{name}.{extension}");
    }
    Ok(())
}

/// Gives a folder on the disk of the build, and takes it away again together with all processes, whatever happens.
fn within_place(act: impl FnOnce(&Place) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let root = system::root();
    let own = std::env::current_exe().context("where is this program?")?;
    let tagwerk = own.with_file_name("tagwerk");
    anyhow::ensure!(tagwerk.exists(), "{} is not built; use `cargo xtask bench`", tagwerk.display());
    let folder = root.join(format!("target/bench/run-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let place = Place { root, folder, roster: Roster::default(), tagwerk, own };
    end_on_signal(&place);
    let done = act(&place);
    while place.roster.is_ending() {
        // The other thread ends the process once everything has ended.
        std::thread::park();
    }
    if done.is_ok() {
        std::fs::remove_dir_all(&place.folder)?;
    } else {
        println!("what the systems wrote is left in {}", place.folder.display());
    }
    done
}

/// On SIGINT and SIGTERM: everything that was started ends, then we do.
fn end_on_signal(place: &Place) {
    let place = place.clone();
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        if runtime.block_on(signalled()).is_ok() {
            println!("ending what was started");
            place.roster.end_all();
            drop(std::fs::remove_dir_all(&place.folder));
            std::process::exit(130);
        }
    });
}

async fn signalled() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
