//! Estimates the control plane's clock from the `Date` header of SQS responses and this machine's monotonic clock. So a
//! wrong wall clock on this machine does no harm. The monotonic clock stops while the machine is suspended; a
//! comparison with other clocks shows this.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use freehold_protocol::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// A response that is older than this when it is read was delayed, for example because this process was stopped.
pub const STALE: Duration = Duration::from_secs(5);

/// The estimate of the control plane's time.
#[derive(Debug, Default)]
pub struct ServerClock {
    known: Mutex<Option<Known>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    millis: u64,
    at: Instant,
    pauses: Pauses,
}

impl Known {
    fn new(server: Timestamp, at: Instant) -> Self {
        Self { millis: server.as_millis(), at, pauses: Pauses::now() }
    }

    fn now(self, at: Instant) -> u64 {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let since = at.saturating_duration_since(self.at) + self.pauses.suspended();
        let before = self.at.saturating_duration_since(at);
        self.millis.saturating_add(millis(since)).saturating_sub(millis(before))
    }
}

/// How far other clocks of this machine are ahead of its monotonic clock, at one moment. The lead grows while the
/// machine is suspended.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    boot_ahead: Duration,
    wall_ahead: Duration,
}

impl Pauses {
    /// Reads the clocks of this machine.
    pub fn now() -> Self {
        let monotonic = read(ClockId::Monotonic);
        Self {
            boot_ahead: read(ClockId::Boottime).saturating_sub(monotonic),
            wall_ahead: read(ClockId::Realtime).saturating_sub(monotonic),
        }
    }

    /// Returns the value from before the machine was suspended for `time`.
    #[cfg(test)]
    pub(crate) fn before_a_suspension_of(time: Duration) -> Self {
        let now = Self::now();
        Self { boot_ahead: now.boot_ahead.saturating_sub(time), wall_ahead: now.wall_ahead.saturating_sub(time) }
    }

    /// Returns how long the machine was suspended since this value was read.
    pub fn suspended(self) -> Duration {
        let gap = Self::now().boot_ahead.saturating_sub(self.boot_ahead);
        // The clocks are read one after the other, so small differences mean nothing.
        if gap < Duration::from_millis(50) { Duration::ZERO } else { gap }
    }

    /// Returns how far the wall clock or the boot clock got ahead of the monotonic clock since this value was read.
    /// When a host pauses a virtual machine, perhaps only the wall clock shows it.
    pub fn jump(self) -> Duration {
        self.suspended().max(Self::now().wall_ahead.saturating_sub(self.wall_ahead))
    }
}

/// Returns `at` on the clock that continues during a suspension (`CLOCK_BOOTTIME`), in nanoseconds.
pub fn boot_nanos(at: Instant) -> u64 {
    let (now, boot) = (Instant::now(), read(ClockId::Boottime));
    let boot = if at >= now { boot + (at - now) } else { boot.saturating_sub(now - at) };
    u64::try_from(boot.as_nanos()).unwrap_or(u64::MAX)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

impl ServerClock {
    /// Records that a response with the server's time `server` was read at `at`. Returns the response's age at that
    /// moment, estimated from earlier responses.
    pub fn observe(&self, server: Timestamp, at: Instant) -> Duration {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = known.map_or(server.as_millis(), |known| known.now(at));
        let age = Duration::from_millis(expected.saturating_sub(server.as_millis()));
        // A response is never younger than its `Date`, so the latest estimate is the best one. A large step back means
        // that the server corrected its clock, or that the response was delayed. The next response shows which.
        if age < Duration::from_millis(1) || age > STALE {
            *known = Some(Known::new(server, at));
        }
        age
    }

    /// Records that the server's time is at least `server`, the time at which SQS received a message. This replaces the
    /// estimate only if it is missing or earlier.
    pub fn at_least(&self, server: Timestamp, at: Instant) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none_or(|known| known.now(at) < server.as_millis()) {
            *known = Some(Known::new(server, at));
        }
    }

    /// Returns the control plane's time at `at`; `None` before the first response.
    pub fn now(&self, at: Instant) -> Option<Timestamp> {
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.map(|known| Timestamp::from_millis(known.now(at)))
    }
}

/// Returns this machine's own time. It is only shown to people: decisions use the control plane's time.
pub fn local() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn time_passes_between_two_answers() {
        let clock = ServerClock::default();
        let start = Instant::now();
        assert_eq!(clock.now(start), None);

        clock.observe(at(1_000), start);

        assert_eq!(clock.now(start + Duration::from_secs(7)), Some(at(1_007)));
    }

    #[test]
    fn a_slow_answer_does_not_put_the_clock_back() {
        let clock = ServerClock::default();
        let start = Instant::now();
        clock.observe(at(1_000), start);

        let age = clock.observe(at(1_001), start + Duration::from_secs(3));

        assert_eq!(age, Duration::from_secs(2));
        assert_eq!(clock.now(start + Duration::from_secs(3)), Some(at(1_003)));
    }

    #[test]
    fn an_answer_that_was_stuck_shows_its_age_and_a_corrected_clock_is_followed() {
        let clock = ServerClock::default();
        let start = Instant::now();
        clock.observe(at(1_000), start);

        let stuck = clock.observe(at(1_001), start + Duration::from_secs(40));
        let next = clock.observe(at(1_011), start + Duration::from_secs(50));

        assert_eq!(stuck, Duration::from_secs(39));
        assert_eq!(next, Duration::ZERO);
    }

    #[test]
    fn the_time_of_a_message_moves_the_clock_forward_only() {
        let clock = ServerClock::default();
        let start = Instant::now();

        clock.at_least(at(500), start);
        clock.at_least(at(400), start);

        assert_eq!(clock.now(start), Some(at(500)));
    }
}
