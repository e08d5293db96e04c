//! The part of protocol buffers that the protocol of Terraform's plugins needs.

use std::collections::BTreeMap;

/// Encodes a length-delimited field of a protocol buffer.
pub(crate) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        encoded.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
        length >>= 7;
    }
    encoded.push(u8::try_from(length).unwrap_or_default());
    encoded.extend_from_slice(bytes);
    encoded
}

/// Decodes the length-delimited fields of a message, by field number. Skips fields that hold a number.
pub(crate) fn fields(mut message: &[u8]) -> BTreeMap<u64, Vec<u8>> {
    let mut found = BTreeMap::new();
    while let Some(key) = number(&mut message) {
        let Some(value) = number(&mut message) else { break };
        if key & 7 == 2 {
            let Some((bytes, rest)) = usize::try_from(value).ok().and_then(|length| message.split_at_checked(length))
            else {
                break;
            };
            found.insert(key >> 3, bytes.to_vec());
            message = rest;
        }
    }
    found
}

fn number(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
