//! The disk on which a directory is, as `io.max` names it.

use std::path::Path;

use rustix::fs::{major, minor, stat};

/// The directory in which the kernel describes its disks, by their numbers (sysfs(5)).
const DISKS: &str = "/sys/dev/block";

/// Returns the numbers of the disk on which `path` is, such as `259:0`.
///
/// # Errors
/// The reason why there is no such disk, as a sentence.
pub(super) fn of(path: &Path) -> Result<String, String> {
    let data = stat(path).map_err(|error| format!("`{}` cannot be examined: {error}", path.display()))?;
    whole(Path::new(DISKS), &format!("{}:{}", major(data.st_dev), minor(data.st_dev))).ok_or_else(|| {
        format!("`{}` is not on a disk of this machine, but in memory, on an overlay or on the network", path.display())
    })
}

/// Returns the numbers of the disk that holds the partition `number`. `io.max` refuses partitions (cgroups(7), "IO").
fn whole(disks: &Path, number: &str) -> Option<String> {
    let device = disks.join(number).canonicalize().ok()?;
    let disk = if device.join("partition").exists() { device.parent()? } else { &device };
    Some(std::fs::read_to_string(disk.join("dev")).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes what sysfs has of a disk with one partition: links by number to directories, one inside the other.
    fn sysfs() -> tempfile::TempDir {
        let sysfs = tempfile::tempdir().unwrap();
        let partition = sysfs.path().join("devices/nvme0n1/nvme0n1p1");
        std::fs::create_dir_all(&partition).unwrap();
        std::fs::create_dir(sysfs.path().join("block")).unwrap();
        std::fs::write(partition.join("partition"), "1\n").unwrap();
        for (number, place) in [("259:0", "devices/nvme0n1"), ("259:1", "devices/nvme0n1/nvme0n1p1")] {
            std::fs::write(sysfs.path().join(place).join("dev"), format!("{number}\n")).unwrap();
            std::os::unix::fs::symlink(sysfs.path().join(place), sysfs.path().join("block").join(number)).unwrap();
        }
        sysfs
    }

    #[test]
    fn a_partition_counts_as_its_disk_and_a_disk_as_itself() {
        let sysfs = sysfs();

        let whole = |number| whole(&sysfs.path().join("block"), number);

        assert_eq!([whole("259:1"), whole("259:0")], [Some("259:0".to_owned()), Some("259:0".to_owned())]);
        assert_eq!(whole("0:25"), None);
    }

    #[test]
    fn a_directory_that_is_on_no_disk_says_so() {
        let wrong = of(Path::new("/proc")).unwrap_err();

        assert!(wrong.starts_with("`/proc` is not on a disk of this machine"), "{wrong}");
    }
}
