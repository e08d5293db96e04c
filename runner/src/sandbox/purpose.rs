//! The purpose of a box: any program of a job, or the program that makes an image.

use serde::{Deserialize, Serialize};

/// The first user id inside the box that an image build gets. The build sees it as root.
pub(super) const IMAGE_ROOT: u32 = 1;
/// The number of user ids that an image may have: 0 to 65535. The id 65534 is `nobody`.
pub(super) const IMAGE_USERS: u32 = 65_536;

/// The purpose of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// The box runs any program of a job. The program has one user and no capability.
    Program,
    /// The box runs a program that makes an image. The program is root in a user namespace inside the box, and none of
    /// the users in that namespace is the runner's user.
    ImageBuild,
}
