//! The functions of Sprig for JSON, YAML, base64 and digests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use sha2::{Digest, Sha256, Sha512};

use crate::functions::function::{Function, Room, at, made, plain, text};
use crate::json::{self, Form};
use crate::value::{V, size};
use crate::yaml;

pub(super) static FUNCTIONS: &[Function] = &[
    plain("toJson", 1, 1, |args, room| {
        roomy(args, room)?;
        made(json::write(at(args, 0), Form::Escaped))
    }),
    plain("toRawJson", 1, 1, |args, room| {
        roomy(args, room)?;
        made(json::write(at(args, 0), Form::Raw))
    }),
    plain("toPrettyJson", 1, 1, |args, room| {
        roomy(args, room)?;
        made(json::write(at(args, 0), Form::Pretty))
    }),
    plain("fromJson", 1, 1, |args, _| {
        let value: Value = serde_json::from_str(text(at(args, 0))?)
            .map_err(|e| format!("the text is not JSON (line {}, column {})", e.line(), e.column()))?;
        made(value)
    }),
    plain("toYaml", 1, 1, |args, room| {
        roomy(args, room)?;
        made(yaml::write(at(args, 0), room.0)?)
    }),
    plain("b64enc", 1, 1, |args, _| made(BASE64.encode(text(at(args, 0))?))),
    plain("b64dec", 1, 1, |args, _| {
        let bytes = BASE64.decode(text(at(args, 0))?).map_err(|_| "the text is not base64".to_owned())?;
        made(String::from_utf8(bytes).map_err(|_| "the decoded bytes are not UTF-8 text".to_owned())?)
    }),
    plain("sha256sum", 1, 1, |args, _| made(hex(&Sha256::digest(text(at(args, 0))?.as_bytes())))),
    plain("sha512sum", 1, 1, |args, _| made(hex(&Sha512::digest(text(at(args, 0))?.as_bytes())))),
];

/// Refuses a value of more than half of the allowed bytes, because escapes can make its text longer than the value.
fn roomy(args: &[V<'_>], room: Room) -> Result<(), String> {
    room.check(size(at(args, 0)).unwrap_or(usize::MAX).saturating_mul(2))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
