//! The processor that a program is built for, by its directory in a release.

use clap::ValueEnum;

/// A processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Architecture {
    #[value(name = "arm64")]
    Arm64,
    #[value(name = "x86_64")]
    X86_64,
}

impl Architecture {
    /// Returns the directory of the architecture in a release.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Arm64 => "arm64",
            Self::X86_64 => "x86_64",
        }
    }
}
