//! Times as text.

use freehold_protocol::Timestamp;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Dated(#[serde(with = "freehold_protocol::time::rfc3339")] Timestamp);

fn text(millis: u64) -> serde_json::Result<String> {
    serde_json::to_string(&Dated(Timestamp::from_millis(millis)))
}

#[test]
fn known_days_have_their_dates() {
    let known = [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (951_868_800_000, "2000-03-01T00:00:00.000Z"),
        (1_795_272_846_123, "2026-11-21T14:54:06.123Z"),
        (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ];

    for (millis, expected) in known {
        assert_eq!(text(millis).unwrap(), format!("\"{expected}\""));
    }
    assert!(text(253_402_300_800_000).is_err());
}

#[test]
fn other_forms_are_refused() {
    for other in [
        "2026-11-21T14:54:06Z",
        "2026-11-21T14:54:06.123+00:00",
        "2026-02-30T00:00:00.000Z",
        "2026-13-01T00:00:00.000Z",
        "2026-00-01T00:00:00.000Z",
        "2026-11-21T24:00:00.000Z",
        "1969-12-31T23:59:59.999Z",
        "+026-11-21T14:54:06.123Z",
        "2026-11-21t14:54:06.123z",
        "",
    ] {
        assert!(serde_json::from_value::<Dated>(other.into()).is_err(), "{other}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(millis in 0..253_402_300_800_000u64) {
        let dated = Dated(Timestamp::from_millis(millis));

        prop_assert_eq!(serde_json::from_str::<Dated>(&text(millis).unwrap()).unwrap(), dated);
    }
}
