//! One byte string for one JSON value: sorted keys, no white space. Digests and signatures are taken over it.

use serde::Serialize;
use serde_json::Value;

use crate::Digest;

/// Returns the canonical bytes of `value`.
///
/// Keys are sorted by their UTF-8 bytes whatever map type the process was built with, so the same value gives the
/// same bytes on every machine. Numbers are written as `serde_json` writes them.
///
/// # Errors
/// When `value` cannot be represented as JSON (a map with keys that are not strings).
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let value = serde_json::to_value(value)?;
    let mut out = Vec::with_capacity(256);
    write(&value, &mut out)?;
    Ok(out)
}

/// Returns the digest of the canonical bytes of `value`.
///
/// # Errors
/// As [`to_vec`].
pub fn digest<T: Serialize + ?Sized>(value: &T) -> Result<Digest, serde_json::Error> {
    Ok(Digest::of(&to_vec(value)?))
}

fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            out.push(b'{');
            for (at, (key, item)) in entries.into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, key)?;
                out.push(b':');
                write(item, out)?;
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(item, out)?;
            }
            out.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => serde_json::to_writer(out, value)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let bytes = to_vec(&json!({"b": {"z": 1, "a": [true, null]}, "a": "x"})).unwrap();

        assert_eq!(String::from_utf8(bytes).unwrap(), r#"{"a":"x","b":{"a":[true,null],"z":1}}"#);
    }

    proptest! {
        #[test]
        fn order_of_insertion_does_not_change_the_digest(entries in prop::collection::btree_map("[a-z]{1,6}", 0u32..9, 0..8)) {
            let forward: serde_json::Map<_, _> = entries.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
            let backward: serde_json::Map<_, _> = entries.iter().rev().map(|(k, v)| (k.clone(), json!(v))).collect();

            prop_assert_eq!(digest(&Value::Object(forward)).unwrap(), digest(&Value::Object(backward)).unwrap());
        }
    }
}
