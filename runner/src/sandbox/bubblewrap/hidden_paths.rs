//! The paths at which a box with an image has files of its own.

use std::path::PathBuf;

/// The paths that a box makes itself, even if an image has them too.
const OWN: [&str; 11] = [
    "/proc",
    "/dev",
    "/sys",
    "/tmp",
    "/run/freehold",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/hosts",
    // This file of an image names libraries. The machine's loader, which starts the first process, would load them.
    "/etc/ld.so.preload",
];

/// Returns the paths at which a box has files of its own, even if an image has them too. `others` are paths that the box
/// shows beside the image.
pub(super) fn hidden(others: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    OWN.iter().map(PathBuf::from).chain(others).collect()
}
