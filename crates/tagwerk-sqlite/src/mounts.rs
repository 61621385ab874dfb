//! Which file systems a write-ahead log cannot live on.
//!
//! The log's index is memory shared by all processes that have the file open. Network file systems do not share memory
//! between machines, and many lock wrongly; both damage the store without a word.

use std::path::{Path, PathBuf};

/// File systems that reach over a network (or to another kernel).
const NETWORK: &[&str] = &[
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "smb2",
    "ncpfs",
    "afs",
    "9p",
    "ceph",
    "lustre",
    "beegfs",
    "orangefs",
    "gpfs",
    "glusterfs",
    "davfs",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.rclone",
    "fuse.davfs2",
    "fuse.curlftpfs",
    "fuse.ceph",
    "fuse.gcsfuse",
    "fuse.juicefs",
    "fuse.mountpoint-s3",
];

/// The kind of file system that this folder is on, if it is one that reaches over a network.
pub(crate) fn network_kind(folder: &Path) -> Option<String> {
    let table = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let kind = kind_of(&table, folder)?;
    NETWORK.contains(&kind.as_str()).then_some(kind)
}

/// The kind of the deepest mount above a folder; the last of equal ones hides the others.
fn kind_of(table: &str, folder: &Path) -> Option<String> {
    let mounts = table.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((unescape(fields.next()?), fields.next()?))
    });
    let above = mounts.filter(|(point, _)| folder.starts_with(point));
    above.max_by_key(|(point, _)| point.components().count()).map(|(_, kind)| kind.to_owned())
}

/// Blanks and backslashes in mount points are written as three octal digits.
fn unescape(field: &str) -> PathBuf {
    let mut plain = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 4).unwrap_or_default();
        match u8::from_str_radix(digits, 8) {
            Ok(byte) if byte.is_ascii() => {
                plain.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            _ => {
                plain.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    plain.push_str(rest);
    PathBuf::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "/dev/vda / ext4 rw 0 0\nserver:/data /srv nfs4 rw 0 0\n/dev/vdb /srv/local\\040disk xfs rw 0 0\n\
                         u@h:/ /mnt/far fuse.sshfs rw 0 0\n";

    #[test]
    fn the_deepest_mount_counts() {
        let kind = |folder: &str| kind_of(TABLE, Path::new(folder));
        assert_eq!(kind("/var/lib/tagwerk").as_deref(), Some("ext4"));
        assert_eq!(kind("/srv/tagwerk").as_deref(), Some("nfs4"));
        assert_eq!(kind("/srv/local disk/tagwerk").as_deref(), Some("xfs"));
        assert_eq!(kind("/srvx").as_deref(), Some("ext4"));
        assert_eq!(kind("/mnt/far").as_deref(), Some("fuse.sshfs"));
    }

    #[test]
    fn local_file_systems_are_fine() {
        assert_eq!(network_kind(Path::new("/")), None);
        for kind in ["nfs4", "cifs", "fuse.sshfs"] {
            assert!(NETWORK.contains(&kind));
        }
    }
}
