//! The rules of an install stack: what they say at a time, and what is wrong with a text.

#![cfg(test)]

use std::collections::BTreeMap;

use freehold_protocol::Timestamp;
use freehold_protocol::order::AskedBy;
use freehold_windows::{ACTIONS, Decision, FREEZES, HELD, NOW_BY, Rules, RulesError, WINDOWS, Why};
use jiff::tz::TimeZone;
use proptest::prelude::*;

fn parsed(parameters: &[(&str, &str)]) -> Result<Rules, RulesError> {
    let owned: BTreeMap<String, String> =
        parameters.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Rules::of_parameters(&owned)
}

fn rules(windows: &str, freezes: &str) -> Rules {
    parsed(&[(WINDOWS, windows), (FREEZES, freezes)]).unwrap()
}

fn utc(text: &str) -> Timestamp {
    let at: jiff::Timestamp = format!("{text}Z").parse().unwrap();
    Timestamp::from_millis(at.as_millisecond().try_into().unwrap())
}

/// The decision as a word and the time until which it holds, in UTC.
fn at(rules: &Rules, now: &str) -> String {
    let end = |until: Option<Timestamp>| {
        until.map_or_else(
            || "for ever".to_owned(),
            |until| {
                let until = jiff::Timestamp::from_millisecond(until.as_millis().try_into().unwrap()).unwrap();
                until.strftime("until %Y-%m-%dT%H:%M").to_string()
            },
        )
    };
    match rules.at(utc(now)) {
        Decision::Open { until } => format!("open {}", end(until)),
        Decision::Closed(closed) => format!("closed {}", end(closed.until)),
    }
}

#[test]
fn without_a_rule_changes_may_start_at_any_time() {
    assert_eq!(at(&parsed(&[]).unwrap(), "2026-11-27T12:00:00"), "open for ever");
    assert!(parsed(&[(WINDOWS, " "), (FREEZES, ""), (HELD, "false")]).unwrap().is_unlimited());
}

#[test]
fn a_window_over_midnight_belongs_to_the_day_on_which_it_begins() {
    let rules = rules("Europe/Berlin: Fri 22:00-04:00", "");

    // Friday the 27th; the clock in Berlin is an hour ahead.
    assert_eq!(at(&rules, "2026-11-27T20:59:59"), "closed until 2026-11-27T21:00");
    assert_eq!(at(&rules, "2026-11-27T21:00:00"), "open until 2026-11-28T03:00");
    assert_eq!(at(&rules, "2026-11-28T02:59:59"), "open until 2026-11-28T03:00");
    assert_eq!(at(&rules, "2026-11-28T03:00:00"), "closed until 2026-12-04T21:00");
}

#[test]
fn windows_that_meet_are_one_opening() {
    let rules = rules("UTC: Mon-Fri 22:00-24:00; Tue-Sat 00:00-02:00,01:00-03:00", "");

    assert_eq!(at(&rules, "2026-11-27T22:30:00"), "open until 2026-11-28T03:00");
}

#[test]
fn hours_that_the_clock_skips_are_in_no_window() {
    // In Berlin the clock goes from 02:00 to 03:00 on 2027-03-28, at 01:00 UTC.
    let skipped = rules("Europe/Berlin: Sun 02:15-02:45", "");
    let around = rules("Europe/Berlin: Sun 01:30-03:30", "");

    assert_eq!(at(&skipped, "2027-03-28T00:00:00"), "closed until 2027-04-04T00:15");
    assert_eq!(at(&around, "2027-03-28T00:45:00"), "open until 2027-03-28T01:30");
}

#[test]
fn hours_that_the_clock_shows_twice_are_in_the_window_both_times() {
    // In Berlin the clock goes from 03:00 to 02:00 on 2026-10-25, at 01:00 UTC.
    let rules = rules("Europe/Berlin: Sun 02:15-02:45", "");

    assert_eq!(at(&rules, "2026-10-25T00:20:00"), "open until 2026-10-25T00:45");
    assert_eq!(at(&rules, "2026-10-25T00:50:00"), "closed until 2026-10-25T01:15");
    assert_eq!(at(&rules, "2026-10-25T01:20:00"), "open until 2026-10-25T01:45");
}

#[test]
fn a_freeze_over_a_window_closes_it_for_whole_days_of_the_zone() {
    let rules = rules("Europe/Berlin: daily 22:00-04:00", "2026-12-24..2026-12-26");

    assert_eq!(at(&rules, "2026-12-23T22:00:00"), "open until 2026-12-23T23:00");
    assert_eq!(at(&rules, "2026-12-24T22:00:00"), "closed until 2026-12-26T23:00");
    assert_eq!(at(&rules, "2026-12-26T23:30:00"), "open until 2026-12-27T03:00");
}

#[test]
fn a_freeze_without_windows_is_in_the_zone_that_is_given_and_otherwise_in_utc() {
    assert_eq!(at(&rules("", "2026-12-24"), "2026-12-24T00:00:00"), "closed until 2026-12-25T00:00");
    assert_eq!(at(&rules("Asia/Tokyo", "2026-12-24"), "2026-12-23T16:00:00"), "closed until 2026-12-24T15:00");
}

#[test]
fn a_window_that_never_opens_says_so_and_names_the_way_out() {
    let never = rules("Europe/Berlin: Mon 22:00-23:00", "2026-01-01..9999-12-31");

    let Decision::Closed(closed) = never.at(utc("2026-11-27T12:00:00")) else { panic!("open") };

    assert_eq!(
        closed.to_string(),
        "the customer's freeze `2026-01-01..9999-12-31` permits no change, and no window opens within 400 days; the customer \
         has to change `ChangeWindows` or `ChangeFreezes` of the install stack"
    );
    assert!(never.openings(utc("2026-11-27T12:00:00"), 30, 9).all.is_empty());
}

#[test]
fn a_hold_closes_every_window_and_has_no_end() {
    let held = parsed(&[(WINDOWS, "UTC: daily 00:00-24:00"), (HELD, "true")]).unwrap();

    let Decision::Closed(closed) = held.at(utc("2026-11-27T12:00:00")) else { panic!("open") };

    assert_eq!((closed.until, closed.why.clone()), (None, Why::Held));
    assert!(closed.to_string().contains("lift-hold"), "{closed}");
    assert!(held.openings(utc("2026-11-27T12:00:00"), 30, 9).all.is_empty());
}

#[test]
fn a_closed_window_says_until_when_on_the_clock_of_the_customer() {
    let Decision::Closed(closed) = rules("America/New_York: Sat 02:00-06:00", "").at(utc("2026-11-27T12:00:00")) else {
        panic!("open")
    };

    assert_eq!(
        closed.to_string(),
        "the customer's change windows are closed until Sat 2026-11-28 02:00 America/New_York"
    );
}

#[test]
fn wrong_texts_are_named_with_their_place_and_the_way_out() {
    let wrong: Vec<String> = [
        (WINDOWS, "Europe/Berln: Mon 22:00-23:00"),
        (WINDOWS, "Mon-Fri 22:00-04:00"),
        (WINDOWS, "UTC: Mo 22:00-23:00"),
        (WINDOWS, "UTC: Mon 22:00-23:00; Tue"),
        (WINDOWS, "UTC: Mon 22:00-25:00"),
        (WINDOWS, "UTC: Mon 22:00-22:00"),
        (WINDOWS, "UTC: Mon 24:00-01:00"),
        (WINDOWS, "UTC: Mon 22:00-23:00;"),
        (FREEZES, "2026-12-24, 24.12.2026"),
        (FREEZES, "2026-02-30"),
        (FREEZES, "2026-12-26..2026-12-24"),
        (HELD, "yes"),
        (NOW_BY, "ana"),
        (ACTIONS, "health check"),
    ]
    .into_iter()
    .map(|(parameter, text)| parsed(&[(parameter, text)]).unwrap_err().to_string())
    .map(|message| message.split("; ").next().unwrap().to_owned())
    .collect();

    assert_eq!(
        wrong,
        [
            "parameter `ChangeWindows`, column 1: `Europe/Berln` is not a time zone",
            "parameter `ChangeWindows`, column 1: `Mon-Fri 22:00-04:00` is not a time zone",
            "parameter `ChangeWindows`, column 6: `Mo` is not a weekday",
            "parameter `ChangeWindows`, column 23: `Tue` is not a window",
            "parameter `ChangeWindows`, column 16: `25:00` is not a time of day",
            "parameter `ChangeWindows`, column 10: the window `22:00-22:00` has no length",
            "parameter `ChangeWindows`, column 10: a window cannot begin at 24:00",
            "parameter `ChangeWindows`, column 22: `` is not a window",
            "parameter `ChangeFreezes`, column 13: `24.12.2026` is not a day",
            "parameter `ChangeFreezes`, column 1: `2026-02-30` is not a day",
            "parameter `ChangeFreezes`, column 1: the freeze `2026-12-26..2026-12-24` ends before it begins",
            "parameter `ChangesHeld`, column 1: `yes` is not `true` or `false`",
            "parameter `ChangesNowBy`, column 1: `ana` is not a caller",
            "parameter `ActionsAnyTime`, column 1: `health check` is not the name of an action",
        ]
    );
}

#[test]
fn only_whom_the_customer_names_may_pass_and_nobody_passes_a_hold() {
    let by = |arn: &str| AskedBy::Caller { arn: arn.parse().unwrap() };
    let named = "arn:aws:iam::111111111111:user/eve, arn:aws:sts::111111111111:assumed-role/deployer/*";
    let rules = parsed(&[(NOW_BY, named)]).unwrap();
    let held = parsed(&[(NOW_BY, named), (HELD, "true")]).unwrap();
    let ana = by("arn:aws:sts::111111111111:assumed-role/deployer/ana");

    assert!(rules.lets_pass(Some(&ana)));
    assert!(rules.lets_pass(Some(&by("arn:aws:iam::111111111111:user/eve"))));
    for other in [
        by("arn:aws:sts::222222222222:assumed-role/deployer/ana"),
        by("arn:aws:sts::111111111111:assumed-role/deployer2/ana"),
        by("arn:aws:iam::111111111111:user/deployer"),
        AskedBy::Schedule,
        AskedBy::Sweep,
    ] {
        assert!(!rules.lets_pass(Some(&other)), "{other}");
    }
    assert!(!rules.lets_pass(None));
    assert!(!held.lets_pass(Some(&ana)));
    assert!(!parsed(&[]).unwrap().lets_pass(Some(&ana)));
}

#[test]
fn an_action_counts_as_a_change_unless_the_customer_names_it() {
    let free = |text: &str| {
        let rules = parsed(&[(ACTIONS, text)]).unwrap();
        ["health", "migrate"].map(|action| rules.free_actions().contains(&action.parse().unwrap()))
    };

    assert_eq!((free(""), free("health"), free("*")), ([false, false], [true, false], [true, true]));
}

/// Windows as text, with some that touch the hours at which clocks change.
fn windows() -> impl Strategy<Value = String> {
    let zone = prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/St_Johns",
        "Australia/Lord_Howe",
        "America/Santiago",
        "Asia/Beirut",
        "Pacific/Chatham",
    ]);
    let days = prop::sample::select(vec!["daily", "Mon-Fri", "Sat,Sun", "Sun", "Fri-Mon", "Wed"]);
    let window = (days, 0..1440u32, 1..1440u32).prop_map(|(days, from, length)| {
        let to = (from + length) % 1440;
        format!("{days} {:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    });
    (zone, prop::collection::vec(window, 1..4)).prop_map(|(zone, all)| format!("{zone}: {}", all.join("; ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The time at which a decision ends is the first minute that has another one, minute by minute.
    #[test]
    fn a_decision_holds_until_the_time_that_it_names(windows in windows(), secs in 1_767_000_000u64..1_900_000_000) {
        let rules = rules(&windows, "");
        let minute = |n: u64| Timestamp::from_millis((secs / 60 + n) * 60_000);
        let is_open = |at: Timestamp| matches!(rules.at(at), Decision::Open { .. });
        let (open, until) = match rules.at(minute(0)) {
            Decision::Open { until } => (true, until),
            Decision::Closed(closed) => (false, closed.until),
        };

        let counted = (1..2880).map(minute).find(|at| is_open(*at) != open);

        match counted {
            Some(counted) => prop_assert_eq!(until, Some(counted)),
            None => prop_assert!(until.is_none_or(|until| until >= minute(2880))),
        }
    }

    /// The openings are those that deciding again and again finds, and they do not overlap.
    #[test]
    fn openings_are_in_order_and_apart(windows in windows(), secs in 1_767_000_000u64..1_900_000_000) {
        let rules = rules(&windows, "2028-01-01..2028-01-09");
        let now = Timestamp::from_millis(secs * 1000);

        let found = rules.openings(now, 30, 8);

        let mut last = now;
        for opening in &found.all {
            prop_assert!(opening.from >= last);
            prop_assert_eq!(rules.at(opening.from), Decision::Open { until: opening.until });
            last = opening.until.unwrap_or(last);
        }
        prop_assert!(found.all.len() <= 8 && found.known_until > now);
    }

    #[test]
    fn no_text_breaks_the_reader(text in "(UTC|Europe/Berlin|\\PC{0,8}):? ?[A-Za-z0-9:;,. \u{e9}-]{0,40}") {
        for parameter in [WINDOWS, FREEZES, HELD, NOW_BY, ACTIONS] {
            if let Err(error) = parsed(&[(parameter, &text)]) {
                prop_assert!(error.column <= text.chars().count() + 1);
                prop_assert!(!error.to_string().contains(char::is_control));
            }
        }
    }
}

#[test]
fn the_bundled_time_zones_know_what_the_rules_need() {
    for zone in ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Chatham", "America/St_Johns"] {
        assert!(TimeZone::get(zone).is_ok(), "{zone}");
    }
}
