//! The replacement of the runner's own program by order. The machine always starts the same program, the launcher. It
//! starts the program that the last upgrade put in its place, tries a new one, and goes back to the old one.

pub mod hand_over;
pub mod launcher;
pub mod programs;
mod trial;
