//! A fault as a value: what it is called, how it is made to happen, at which point, and how a try ends.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use fastrand::Rng;

use super::cell::Cell;

/// How a try ended that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tried {
    /// The fault happened, and everything was right afterwards.
    Passed,
    /// As `Passed`, and the work of a killed runner was taken up again after this many seconds.
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
    /// Programs without which it cannot be made to happen; of words with `|` between them any one is enough.
    pub needs: &'static [&'static str],
}

/// The point that a try took, and how many points there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub point: usize,
    pub of: usize,
}

/// Where a try makes its fault happen. Clones know the same place.
#[derive(Debug, Clone)]
pub struct Point {
    /// The number of the try, from 0.
    number: usize,
    pub rng: Rng,
    /// Whether the fault is tried only once, so that nobody has to know all of its points.
    pub is_only: bool,
    place: Arc<OnceLock<Place>>,
}

impl Point {
    /// Returns the point of the try with this number.
    pub fn new(number: u32, rng: Rng, is_only: bool) -> Self {
        Self { number: number as usize, rng, is_only, place: Arc::default() }
    }

    /// Returns the place that the try took; `None` if its point was drawn, or if it failed before.
    pub fn place(&self) -> Option<Place> {
        self.place.get().copied()
    }

    /// Returns one of `all`.
    pub fn of<T: Copy>(&self, all: &[T]) -> T {
        let [at] = self.among([all.len()]);
        all[at]
    }

    /// Returns one of all combinations of this many choices. As many tries as there are combinations take each of them
    /// once, and fewer tries are spread over all of them. The first try takes the first one.
    pub fn among<const N: usize>(&self, counts: [usize; N]) -> [usize; N] {
        let counts = counts.map(|count| count.max(1));
        let of: usize = counts.iter().product();
        let point = spread(self.number, of);
        self.takes(Place { point, of });
        let mut rest = point;
        counts.map(|count| {
            let at = rest % count;
            rest /= count;
            at
        })
    }

    /// Returns one of `count` points, as [`Point::among`] does, or one of `extra` further points, whose numbers begin with
    /// `count`. These are taken by the tries after the first one.
    pub fn with_extra(&self, count: usize, extra: usize) -> usize {
        let (count, of) = (count.max(1), count.max(1) + extra);
        let point = match self.number % of {
            0 => 0,
            number if number <= extra => count + number - 1,
            number => spread(number - extra, count),
        };
        self.takes(Place { point, of });
        point
    }

    fn takes(&self, place: Place) {
        let first = self.place.get_or_init(|| place);
        assert_eq!(*first, place, "a try has one point");
    }
}

/// Returns the row and the place in it of a point in rows of these lengths; `None` for a point after them.
pub(super) fn in_rows(mut point: usize, lengths: &[usize]) -> Option<(usize, usize)> {
    for (row, length) in lengths.iter().enumerate() {
        if point < *length {
            return Some((row, point));
        }
        point -= length;
    }
    None
}

/// Returns the point of this number, in an order of `count` points without repetition that halves the gaps again and again
/// (van der Corput's): the beginning, the middle, the quarters, and so on.
fn spread(number: usize, count: usize) -> usize {
    let halved = (0_u32..).map(|step| ((u64::from(step.reverse_bits()) * count as u64) >> 32) as usize);
    let mut taken = vec![false; count];
    let mut fresh = halved.filter(|point| !std::mem::replace(&mut taken[*point], true));
    fresh.nth(number % count).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn point(number: u32) -> Point {
        Point::new(number, Rng::with_seed(1), false)
    }

    #[test]
    fn as_many_tries_as_points_take_each_point_once() {
        for counts in [[1, 1, 1], [2, 2, 1], [3, 7, 1], [4, 3, 5], [2, 43, 1], [2, 1, 100]] {
            let all: usize = counts.iter().product();

            let taken: BTreeSet<_> = (0..all as u32).map(|number| point(number).among(counts)).collect();

            assert_eq!(taken.len(), all, "{counts:?}");
        }
        assert_eq!(point(0).among([3, 7]), [0, 0]);
    }

    #[test]
    fn few_tries_reach_the_beginning_the_middle_and_the_end_of_all_points() {
        for count in [43, 86, 100, 257, 600] {
            let tenths: BTreeSet<usize> = (0..20).map(|number| point(number).among([count])[0] * 10 / count).collect();

            assert_eq!(tenths.len(), 10, "{count}: {tenths:?}");
        }
    }

    #[test]
    fn extra_points_are_among_the_first_tries_and_are_counted() {
        let taken: Vec<usize> = (0..8).map(|number| point(number).with_extra(6, 2)).collect();

        assert_eq!(taken[..3], [0, 6, 7]);
        assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), 8);
        let one = point(1);
        one.with_extra(6, 2);
        assert_eq!(one.clone().place(), Some(Place { point: 6, of: 8 }));
    }

    #[test]
    fn a_point_is_in_the_row_that_has_it() {
        let rows = [2, 0, 3];

        let all: Vec<_> = (0..6).map(|point| in_rows(point, &rows)).collect();

        assert_eq!(all, [Some((0, 0)), Some((0, 1)), Some((2, 0)), Some((2, 1)), Some((2, 2)), None]);
    }
}
