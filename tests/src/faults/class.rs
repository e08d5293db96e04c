//! A fault as a value: what it is called, how it is made to happen, and how a try ends.

use std::pin::Pin;

use fastrand::Rng;

use super::cell::Cell;

/// How a try ended that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tried {
    /// The fault happened, and everything was right afterwards.
    Passed,
    /// As `Passed`, and the work of a killed runner was taken up again after so many seconds.
    TakenUp(f64),
    /// Everything was right, but the fault did not happen: this does not count as a try.
    Missed,
}

impl Tried {
    /// Returns `Passed` when at least one fault happened.
    pub const fn when(happened: bool) -> Self {
        if happened { Self::Passed } else { Self::Missed }
    }
}

/// The future of a try.
pub type Trying<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Tried>> + Send + 'a>>;

/// One of the faults.
#[derive(Debug, Clone, Copy)]
pub struct Class {
    /// Its number in `docs/guarantees.md`.
    pub number: u32,
    pub name: &'static str,
    /// Makes the fault happen once; the number of the try and the draws choose the point.
    pub attempt: for<'a> fn(&'a mut Cell, Point) -> Trying<'a>,
    /// Programs without which it is skipped; of words with `|` between them any one is enough.
    pub needs: &'static [&'static str],
}

/// Where a try makes its fault happen.
#[derive(Debug, Clone)]
pub struct Point {
    /// The number of the try, from 0: the points are taken in turn.
    pub number: u32,
    pub rng: Rng,
}

impl Point {
    /// Returns one of `all`, in turn.
    pub fn of<T: Copy>(&self, all: &[T]) -> T {
        all[self.number as usize % all.len()]
    }

    /// Returns how often all of `count` choices were used: then another parameter gets its next value.
    pub const fn round(&self, count: u32) -> u32 {
        self.number / count
    }
}

/// Declares the classes of a file: `number name attempt [needs]`.
macro_rules! declare {
    ($($number:literal $name:literal $attempt:ident [$($need:literal),*];)*) => {
        /// The classes of this file.
        pub(super) const CLASSES: &[super::class::Class] = &[$(super::class::Class {
            number: $number,
            name: $name,
            attempt: |cell, point| Box::pin($attempt(cell, point)),
            needs: &[$($need),*],
        }),*];
    };
}
pub(super) use declare;
