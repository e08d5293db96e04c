//! Pseudo-random numbers from a seed, the same on every machine.

/// A source of pseudo-random numbers.
#[derive(Debug)]
pub struct Draw {
    numbers: fastrand::Rng,
}

impl Draw {
    /// Returns the source for input `number` of `seed`; each number gets an independent source.
    pub fn new(seed: u64, number: u64) -> Self {
        // Adjacent numbers as seeds would give similar first draws.
        let own = fastrand::Rng::with_seed(seed).u64(..) ^ number;
        Self { numbers: fastrand::Rng::with_seed(fastrand::Rng::with_seed(own).u64(..)) }
    }

    /// Returns a number below `end`; 0 when that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.numbers.usize(..end.max(1))
    }

    /// Returns true once in `count` times.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// Returns one of `from`, which is not empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
