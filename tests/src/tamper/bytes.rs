//! Changes bytes in different ways.

use freehold_fuzz::Draw;

/// Returns `bytes` with something changed, and what. It is never the same as before. `others` may stand in for all of it.
pub(super) fn change(draw: &mut Draw, bytes: &[u8], others: &[Vec<u8>]) -> (Vec<u8>, String) {
    loop {
        let mut changed = bytes.to_vec();
        let what = once(draw, &mut changed, others);
        if changed != bytes {
            return (changed, what);
        }
    }
}

fn once(draw: &mut Draw, bytes: &mut Vec<u8>, others: &[Vec<u8>]) -> String {
    let len = bytes.len();
    let at = draw.below(len);
    match draw.below(10) {
        0..=2 if len > 0 => {
            let bit = draw.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} of {len} flipped")
        }
        3 if len > 0 => {
            bytes[at] = (draw.below(256)) as u8;
            format!("byte {at} of {len} is another one")
        }
        4 => {
            bytes.truncate(at);
            format!("cut to {at} of {len} bytes")
        }
        5 => {
            let span = at..(at + 1 + draw.below(16)).min(len);
            let what = format!("bytes {span:?} of {len} left out");
            bytes.drain(span);
            what
        }
        6 => {
            let span = at..(at + 1 + draw.below(16)).min(len);
            let what = format!("bytes {span:?} of {len} repeated");
            let piece = bytes[span.clone()].to_vec();
            bytes.splice(span.end..span.end, piece);
            what
        }
        7 => {
            bytes.extend((0..=draw.below(8)).map(|n| b" \0}a"[n % 4]));
            format!("{} bytes more than {len}", bytes.len() - len)
        }
        8 => {
            bytes.rotate_left(at);
            format!("the first {at} of {len} bytes moved to the end")
        }
        _ if !others.is_empty() => {
            let other = draw.below(others.len());
            bytes.clone_from(&others[other]);
            format!("{} other bytes in the place of {len}", bytes.len())
        }
        _ => {
            bytes.clear();
            format!("all {len} bytes left out")
        }
    }
}
