//! Pseudo-random numbers from a seed, the same on every machine.

/// A source of numbers (`SplitMix64`, <https://prng.di.unimi.it/splitmix64.c>).
#[derive(Debug)]
pub struct Draw {
    state: u64,
}

impl Draw {
    /// Returns the source for input `number` of `seed`; each number gets an independent source.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut draw = Self { state: seed };
        draw.state = draw.next() ^ number;
        draw.state = draw.next();
        draw
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`; 0 when that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % (end.max(1) as u64)) as usize
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
