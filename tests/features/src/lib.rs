//! Gives every development build one set of features: see `Cargo.toml`. There is no code here.
