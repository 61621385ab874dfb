//! A copy of the sources in which faults are planted. It stays between runs, and only what differs is written, so that cargo
//! builds what has changed and no more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::fault::Fault;
use crate::command;

/// See the module.
pub(crate) struct Copy {
    root: PathBuf,
    folder: PathBuf,
}

impl Copy {
    /// A copy of what git tracks, and of what it would track.
    pub(crate) fn of(root: &Path) -> anyhow::Result<Self> {
        let copy = Self { root: root.to_path_buf(), folder: root.join("target/planted/tree") };
        let words =
            ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let names = command::output(&mut command::program("git", &words))?;
        let names: BTreeSet<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
        for name in &names {
            // What was deleted and not yet committed is listed too.
            if root.join(name).is_file() {
                copy.restore_file(name)?;
            }
        }
        copy.forget_others(&copy.folder, &names)?;
        Ok(copy)
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Changes the copy.
    pub(crate) fn plant(&self, fault: &Fault) -> anyhow::Result<()> {
        let files = fault.changed(|file| Ok(std::fs::read_to_string(self.root.join(file))?))?;
        for (file, text) in files {
            write(&self.folder.join(file), text.as_bytes())?;
        }
        Ok(())
    }

    /// Undoes that.
    pub(crate) fn restore(&self, fault: &Fault) -> anyhow::Result<()> {
        fault.edits.iter().try_for_each(|edit| self.restore_file(&edit.file))
    }

    fn restore_file(&self, name: &str) -> anyhow::Result<()> {
        let from = self.root.join(name);
        let bytes = std::fs::read(&from).with_context(|| from.display().to_string())?;
        write(&self.folder.join(name), &bytes)
    }

    /// Deletes what is no longer part of the project.
    fn forget_others(&self, folder: &Path, names: &BTreeSet<&str>) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.strip_prefix(&self.folder)?.to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                self.forget_others(&path, names)?;
            } else if !names.contains(name.as_str()) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

/// Writes a file unless it says this already.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if std::fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes).with_context(|| path.display().to_string())
}
