//! The disk on which a directory is, as `io.max` names it.

use std::path::{Path, PathBuf};

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
        format!(
            "`{}` is not on a disk of this machine, but in memory, on an overlay, on Btrfs or on the network",
            path.display()
        )
    })
}

/// Returns the numbers of the disk that holds the partition `number`. `io.max` refuses partitions (cgroups(7), "IO"). A
/// logical volume (dm) and a RAID (md) are disks of their own there.
fn whole(disks: &Path, number: &str) -> Option<String> {
    number_of(&disk_of(disks.join(number).canonicalize().ok()?))
}

/// Returns whether the kernel divides the use of the disk `number` by the weights of groups: its scheduler is BFQ, or
/// its cost model is on. `costs` is the content of `io.cost.qos` of the machine.
pub(super) fn has_weights(number: &str, costs: &str) -> bool {
    has_weights_in(Path::new(DISKS), number, costs)
}

fn has_weights_in(disks: &Path, number: &str, costs: &str) -> bool {
    let Ok(device) = disks.join(number).canonicalize() else { return false };
    let is_on = |disk: &PathBuf| {
        let scheduler = std::fs::read_to_string(disk.join("queue/scheduler")).unwrap_or_default();
        let line =
            number_of(disk).and_then(|number| costs.lines().find(|line| line.starts_with(&format!("{number} "))));
        scheduler.contains("[bfq]") || line.is_some_and(|line| line.contains(" enable=1"))
    };
    below(disk_of(device)).iter().all(is_on)
}

/// Returns the disks on which a disk is: those of a logical volume or a RAID, otherwise the disk itself. Only they have
/// a scheduler.
fn below(disk: PathBuf) -> Vec<PathBuf> {
    let slaves = std::fs::read_dir(disk.join("slaves")).into_iter().flatten().flatten();
    let slaves: Vec<PathBuf> = slaves.filter_map(|slave| slave.path().canonicalize().ok()).map(disk_of).collect();
    if slaves.is_empty() { vec![disk] } else { slaves.into_iter().flat_map(below).collect() }
}

/// Returns the directory of the disk to which the device at `directory` belongs: itself, or that of its partition.
fn disk_of(directory: PathBuf) -> PathBuf {
    let disk = directory.parent().filter(|_| directory.join("partition").exists()).map(Path::to_owned);
    disk.unwrap_or(directory)
}

fn number_of(disk: &Path) -> Option<String> {
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
    fn weights_count_with_bfq_or_with_a_cost_model_on_the_disk_below_a_volume() {
        let sysfs = sysfs();
        let (disk, volume) = (sysfs.path().join("devices/nvme0n1"), sysfs.path().join("devices/dm-0"));
        std::fs::create_dir_all(volume.join("slaves")).unwrap();
        std::fs::write(volume.join("dev"), "253:0\n").unwrap();
        std::os::unix::fs::symlink(disk.join("nvme0n1p1"), volume.join("slaves/nvme0n1p1")).unwrap();
        std::os::unix::fs::symlink(&volume, sysfs.path().join("block/253:0")).unwrap();
        std::fs::create_dir(disk.join("queue")).unwrap();
        std::fs::write(disk.join("queue/scheduler"), "[none] mq-deadline bfq\n").unwrap();
        let has_weights = |costs| {
            let disks = sysfs.path().join("block");
            ["253:0", "259:0"].map(|number| has_weights_in(&disks, number, costs))
        };

        let neither = has_weights("259:0 enable=0 ctrl=auto\n8:0 enable=1 ctrl=auto\n");
        let by_cost = has_weights("8:0 enable=0 ctrl=auto\n259:0 enable=1 ctrl=auto\n");
        std::fs::write(disk.join("queue/scheduler"), "none mq-deadline [bfq]\n").unwrap();
        let by_scheduler = has_weights("");

        assert_eq!((neither, by_cost, by_scheduler), ([false; 2], [true; 2], [true; 2]));
        assert_eq!(whole(&sysfs.path().join("block"), "253:0").as_deref(), Some("253:0"));
    }

    #[test]
    fn a_directory_that_is_on_no_disk_says_so() {
        let wrong = of(Path::new("/proc")).unwrap_err();

        assert!(wrong.starts_with("`/proc` is not on a disk of this machine"), "{wrong}");
    }
}
