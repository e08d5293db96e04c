//! The values of a resource in MessagePack, as Terraform sends them: a map of texts, of which some are not known yet.

use std::collections::BTreeMap;

/// The value of an attribute of type string.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Text {
    Null,
    /// Terraform learns the value when the plan is applied.
    Unknown,
    Known(String),
}

impl Text {
    pub(crate) fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::Null | Self::Unknown => None,
        }
    }
}

/// The attributes of a resource by their names.
pub(crate) type Object = BTreeMap<String, Text>;

/// Encodes an object of at most 15 attributes; `None` is a resource that does not exist.
pub(crate) fn encode(object: Option<&Object>) -> Vec<u8> {
    let Some(object) = object else { return vec![0xc0] };
    let mut bytes = vec![0x80 | u8::try_from(object.len()).unwrap_or_default()];
    for (name, text) in object {
        push_text(&mut bytes, name);
        match text {
            Text::Null => bytes.push(0xc0),
            Text::Unknown => bytes.extend([0xd4, 0, 0]),
            Text::Known(text) => push_text(&mut bytes, text),
        }
    }
    bytes
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(0xdb);
    bytes.extend(u32::try_from(text.len()).unwrap_or_default().to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// Decodes an object; returns `None` for a resource that does not exist, and for a value that is not an object of strings.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Object> {
    let count = match byte(&mut bytes)? {
        head @ 0x80..=0x8f => usize::from(head & 0x0f),
        0xde => length(&mut bytes, 2)?,
        _ => return None,
    };
    let mut object = Object::new();
    for _ in 0..count {
        let name = text(&mut bytes)?.known()?.to_owned();
        object.insert(name, text(&mut bytes)?);
    }
    Some(object)
}

fn text(bytes: &mut &[u8]) -> Option<Text> {
    let size = match byte(bytes)? {
        0xc0 => return Some(Text::Null),
        // The two extension types by which Terraform encodes an unknown value. The second (0xc7) also says what is known about it.
        0xd4 => return skip(bytes, 2),
        0xc7 => {
            let size = length(bytes, 1)?;
            return skip(bytes, size + 1);
        }
        head @ 0xa0..=0xbf => usize::from(head & 0x1f),
        0xd9 => length(bytes, 1)?,
        0xda => length(bytes, 2)?,
        0xdb => length(bytes, 4)?,
        _ => return None,
    };
    let (text, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    Some(Text::Known(String::from_utf8(text.to_vec()).ok()?))
}

fn skip(bytes: &mut &[u8], size: usize) -> Option<Text> {
    *bytes = bytes.get(size..)?;
    Some(Text::Unknown)
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn length(bytes: &mut &[u8], size: usize) -> Option<usize> {
    let mut length = 0;
    for _ in 0..size {
        length = length << 8 | usize::from(byte(bytes)?);
    }
    Some(length)
}
