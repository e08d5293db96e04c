//! The parts of an install, which are its components and its sandbox: the versions that describe them, the records of
//! what an unfinished deploy may have created, and whether a late result still counts.

pub(crate) mod attempted_part;
pub(crate) mod late_result;
pub(crate) mod standing_parts;
