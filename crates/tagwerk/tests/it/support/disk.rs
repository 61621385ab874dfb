//! A small disk that can be filled. Mounting takes rights: tests that use it have `needs_tmpfs` in their path.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Unmounted when it is dropped, also by a test that fails. Its servers must have ended by then, or go on without a name.
pub(crate) struct Disk(TempDir);

impl Disk {
    /// `size` as `mount` takes it: `24m`.
    pub(crate) fn new(size: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", &text(dir.path())]);
        Self(dir)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file on it.
    pub(crate) fn file(&self, name: &str) -> String {
        text(&self.path().join(name))
    }

    /// Takes all the room that is left.
    pub(crate) fn fill(&self) {
        let mut ballast =
            OpenOptions::new().create(true).append(true).open(self.file("ballast")).expect("ballast");
        for size in [1 << 20, 1 << 12] {
            while ballast.write_all(&vec![1; size]).is_ok() {}
        }
    }

    /// Gives it back.
    pub(crate) fn free(&self) {
        std::fs::remove_file(self.file("ballast")).expect("ballast");
    }

    /// Mounts it anew, `ro` or `rw`.
    pub(crate) fn remount(&self, how: &str) {
        run("mount", &["-o", &format!("remount,{how}"), &text(self.path())]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").args(["--lazy", &text(self.path())]).status();
        if !std::thread::panicking() {
            assert!(
                unmounted.is_ok_and(|status| status.success()),
                "{} is still mounted",
                self.path().display()
            );
        }
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().expect(program);
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}
