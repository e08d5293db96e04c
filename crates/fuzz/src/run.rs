//! Runs a target over numbered inputs on a few threads, and counts what crashes.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Draw;

/// Code under test, which takes inputs.
pub trait Target: Sync {
    type Input: std::fmt::Debug;

    /// Makes an input.
    fn input(&self, draw: &mut Draw) -> Self::Input;

    /// Runs the code on an input. Returns whether the whole input was accepted.
    ///
    /// # Panics
    /// When the result breaks a promise, which counts as a crash.
    fn feed(&self, input: &Self::Input) -> bool;
}

/// An input that crashed.
#[derive(Debug, Clone)]
pub struct Crash {
    /// The number of the input; with the seed it gives the input again.
    pub number: u64,
    /// The message and place of the panic.
    pub message: String,
    /// The input itself.
    pub input: String,
}

/// The result of running many inputs.
#[derive(Debug)]
pub struct Outcome {
    pub attempted: u64,
    /// How many inputs were accepted completely; a measure of how deep the inputs reach.
    pub accepted: u64,
    /// The first crashes, in the order of their numbers.
    pub crashes: Vec<Crash>,
    pub crashed: u64,
    /// The input that took longest, and how long.
    pub slowest: (u64, Duration),
    pub took: Duration,
}

/// How many crashes are kept with their inputs.
const KEPT: usize = 20;
/// How many inputs a thread takes at once.
const CHUNK: u64 = 64;

thread_local! {
    /// The message of the last panic of this thread; `None` in a thread that runs no inputs.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Feeds `target` the inputs `numbers` of `seed` on `threads` threads.
pub fn run<T: Target>(target: &T, seed: u64, numbers: std::ops::Range<u64>, threads: usize) -> Outcome {
    remember_panics();
    let begun = Instant::now();
    let next = AtomicU64::new(numbers.start);
    let total = Mutex::new(Outcome::none());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                PANIC.set(Some(String::new()));
                let mut mine = Outcome::none();
                loop {
                    let from = next.fetch_add(CHUNK, Ordering::Relaxed);
                    if from >= numbers.end {
                        break;
                    }
                    (from..(from + CHUNK).min(numbers.end)).for_each(|number| mine.one(target, seed, number));
                }
                total.lock().unwrap_or_else(PoisonError::into_inner).add(mine);
            });
        }
    });
    let mut outcome = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome.crashes.sort_by_key(|crash| crash.number);
    outcome.took = begun.elapsed();
    outcome
}

impl Outcome {
    const fn none() -> Self {
        Self {
            attempted: 0,
            accepted: 0,
            crashes: Vec::new(),
            crashed: 0,
            slowest: (0, Duration::ZERO),
            took: Duration::ZERO,
        }
    }

    fn one<T: Target>(&mut self, target: &T, seed: u64, number: u64) {
        let input = target.input(&mut Draw::new(seed, number));
        let begun = Instant::now();
        let fed = panic::catch_unwind(AssertUnwindSafe(|| target.feed(&input)));
        let took = begun.elapsed();
        self.attempted += 1;
        if took > self.slowest.1 {
            self.slowest = (number, took);
        }
        match fed {
            Ok(accepted) => self.accepted += u64::from(accepted),
            Err(_) => {
                self.crashed += 1;
                if self.crashes.len() < KEPT {
                    let message = PANIC.with_borrow(|message| message.clone().unwrap_or_default());
                    self.crashes.push(Crash { number, message, input: format!("{input:#?}") });
                }
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.attempted += other.attempted;
        self.accepted += other.accepted;
        self.crashed += other.crashed;
        self.crashes.extend(other.crashes);
        if other.slowest.1 > self.slowest.1 {
            self.slowest = other.slowest;
        }
    }
}

/// Keeps the message of a panic in a thread that runs inputs, instead of printing it.
fn remember_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let kept =
                PANIC.with_borrow_mut(|message| message.as_mut().map(|message| *message = info.to_string()).is_some());
            if !kept {
                print(info);
            }
        }));
    });
}
