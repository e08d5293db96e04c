//! What a box is for: any program of a job, or the program that makes an image.

use serde::{Deserialize, Serialize};

/// The first user inside the box of an image build that is the build's; it is root there.
pub(super) const IMAGE_ROOT: u32 = 1;
/// How many users an image may have: 0 to 65534, which is `nobody`, and 65535.
pub(super) const IMAGE_USERS: u32 = 65_536;

/// What a box is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// Any program of a job; it has one user and no capability.
    Program,
    /// A program that makes an image; it is root in a user namespace inside the box, and none of its users is the runner.
    ImageBuild,
}
