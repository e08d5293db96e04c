//! `freehold install`, against prepared answers.

mod labels;
mod list;
mod stack;
mod sync;
