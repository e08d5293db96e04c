//! Canonical JSON (RFC 8785, "JSON Canonicalization Scheme"). Each value has exactly one byte string, so that programs
//! in any language can check digests and signatures over it.

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::{Error, Number, Value};

use crate::Digest;

/// Returns the canonical bytes of `value`: no white space, keys sorted by their UTF-16 code units, numbers as
/// ECMAScript writes them.
///
/// # Errors
/// For a map with keys that are not strings, for NaN and infinities, and for an integer that an IEEE 754 double cannot
/// represent, because its canonical form would be another integer. An integer of more than 64 bits is a double already
/// when it is read, and is not refused.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    check(&serde_json::to_value(value)?)?;
    serde_json_canonicalizer::to_vec(&value)
}

/// Returns the digest of the canonical bytes of `value`.
///
/// # Errors
/// As [`to_vec`].
pub fn digest<T: Serialize + ?Sized>(value: &T) -> Result<Digest, Error> {
    Ok(Digest::of(&to_vec(value)?))
}

/// Returns `value` with the decimal text of each integer that [`to_vec`] refuses in place of that integer. No digit is lost, and
/// templates and Terraform variables read the text like the number.
#[must_use]
pub fn with_long_integers_as_text(value: Value) -> Value {
    match value {
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, with_long_integers_as_text(value))).collect(),
        Value::Array(items) => items.into_iter().map(with_long_integers_as_text).collect(),
        Value::Number(number) if check_number(&number).is_err() => Value::String(number.to_string()),
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

/// Refuses a value with an integer whose canonical form is another integer.
///
/// # Errors
/// Names the first such integer.
pub(crate) fn check(value: &Value) -> Result<(), Error> {
    match value {
        Value::Object(map) => map.values().try_for_each(check),
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Number(number) => check_number(number),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

fn check_number(number: &Number) -> Result<(), Error> {
    if number.is_f64() || serde_json_canonicalizer::to_vec(number)? == number.to_string().into_bytes() {
        return Ok(());
    }
    Err(Error::custom(format!("number `{number}` has more digits than a JSON number can store; write it as a string")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(value: &Value) -> String {
        String::from_utf8(to_vec(value).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn every_integer_is_written_as_itself_or_as_its_text(number in any::<i64>(), large in any::<u64>()) {
            let value = json!({ "a": [number, { "b": large }], "c": "x" });

            let written = text(&with_long_integers_as_text(value));

            prop_assert_eq!(written.replace(&format!("\"{number}\""), &number.to_string())
                .replace(&format!("\"{large}\""), &large.to_string()), format!("{{\"a\":[{number},{{\"b\":{large}}}],\"c\":\"x\"}}"));
        }
    }

    #[test]
    fn only_an_integer_without_a_canonical_form_becomes_text() {
        let value = json!({ "large": 9_007_199_254_740_993_u64, "small": 42, "half": 0.5, "list": [-9_007_199_254_740_993_i64] });

        let found = with_long_integers_as_text(value);

        assert_eq!(
            found,
            json!({ "large": "9007199254740993", "small": 42, "half": 0.5, "list": ["-9007199254740993"] })
        );
    }

    #[test]
    fn keys_are_sorted_at_every_depth() {
        assert_eq!(
            text(&json!({"b": {"z": 1, "a": [true, null]}, "a": "x"})),
            r#"{"a":"x","b":{"a":[true,null],"z":1}}"#
        );
    }

    /// RFC 8785, section 3.2.2 and its result in section 3.2.4.
    #[test]
    fn literals_numbers_and_strings_are_written_as_in_the_rfc() {
        let input = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;

        let found = text(&serde_json::from_str(input).unwrap());

        let expected = concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        assert_eq!(found, expected);
    }

    /// RFC 8785, section 3.2.3: by UTF-16 code units U+1F600 comes before U+FB33, by UTF-8 bytes after it.
    #[test]
    fn keys_are_sorted_as_in_the_rfc() {
        let input = r#"{
            "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
            "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
        }"#;

        let found = text(&serde_json::from_str(input).unwrap());

        let expected = concat!(
            r#"{"\r":"Carriage Return","1":"One","#,
            "\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",",
            "\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
        );
        assert_eq!(found, expected);
    }

    /// RFC 8785, appendix B: the bits of a double, and its text.
    const NUMBERS: [(u64, &str); 24] = [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];

    #[test]
    fn numbers_are_written_as_in_the_rfc() {
        for (bits, expected) in NUMBERS {
            assert_eq!(to_vec(&f64::from_bits(bits)).unwrap(), expected.as_bytes(), "{bits:016x}");
        }
        assert!(to_vec(&f64::NAN).is_err() && to_vec(&f64::INFINITY).is_err());
    }

    #[test]
    fn an_integer_that_a_double_cannot_hold_is_refused() {
        let error = to_vec(&json!({ "vars": [9_007_199_254_740_993_u64] })).unwrap_err().to_string();

        assert_eq!(
            error,
            "number `9007199254740993` has more digits than a JSON number can store; write it as a string"
        );
        assert!(to_vec(&u64::MAX).is_err() && to_vec(&i64::MAX).is_err());
        assert_eq!(text(&json!(9_007_199_254_740_992_u64)), "9007199254740992");
        assert_eq!(text(&json!(i64::MIN / 1024)), "-9007199254740992");
    }

    proptest! {
        #[test]
        fn order_of_insertion_does_not_change_the_digest(entries in prop::collection::btree_map("[a-z]{1,6}", 0u32..9, 0..8)) {
            let forward: serde_json::Map<_, _> = entries.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
            let backward: serde_json::Map<_, _> = entries.iter().rev().map(|(k, v)| (k.clone(), json!(v))).collect();

            prop_assert_eq!(digest(&Value::Object(forward)).unwrap(), digest(&Value::Object(backward)).unwrap());
        }

        /// Documents are stored in their canonical form and read again.
        #[test]
        fn what_was_written_can_be_written_again(number in any::<f64>().prop_filter("JSON", |number| number.is_finite())) {
            let bytes = to_vec(&number).unwrap();
            let read: Value = serde_json::from_slice(&bytes).unwrap();

            prop_assert_eq!(to_vec(&read).unwrap(), bytes);
        }
    }
}
