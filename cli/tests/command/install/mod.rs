//! `freehold install`, against prepared answers.

mod labels;
mod licence;
mod list;
mod stack;
mod sync;
