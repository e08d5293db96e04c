//! The EC2 instance types on which a runner can run in a customer's account: those with a Graviton processor.

/// The type of the runner's machine when the app config names none.
const DEFAULT: &str = "t4g.small";
/// The sizes of `t4g` (Amazon EC2 instance types, "Specifications").
const SMALL: &[&str] = &["nano", "micro", "small", "medium", "large", "xlarge", "2xlarge"];
/// The sizes of `m6g`, `c6g` and `r6g`, except `metal`.
const LARGE: &[&str] = &["medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge"];

/// The maximum length of a type, in characters. All types that EC2 has are shorter.
const MAX_CHARS: usize = 32;

/// Returns whether `text` has the form of a type with a Graviton processor, such as `t4g.small` or `m7gd.large`. The
/// parameter `InstanceType` of the install stack permits texts of the same form, and no others.
pub fn is_graviton_type(text: &str) -> bool {
    if text.len() > MAX_CHARS {
        return false;
    }
    let Some((family, size)) = text.split_once('.') else { return false };
    let generation = family.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let options = generation.trim_start_matches(|c: char| c.is_ascii_digit());
    generation.len() < family.len()
        && options.len() < generation.len()
        && options.starts_with('g')
        && options.bytes().all(|byte| byte.is_ascii_lowercase())
        && !size.is_empty()
        && size.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Returns the type with a Graviton processor that replaces a type with a processor of Intel or AMD, such as `t4g.large`
/// for `t3a.large`: it has at least as many processors and as much memory. Returns `None` if there is no such type.
pub fn graviton_instead_of(text: &str) -> Option<String> {
    let (family, size) = text.split_once('.')?;
    let (instead, sizes) = match family {
        "t2" | "t3" | "t3a" => ("t4g", SMALL),
        "m5" | "m5a" | "m6a" | "m6i" | "m7a" | "m7i" => ("m6g", LARGE),
        "c5" | "c5a" | "c6a" | "c6i" | "c7a" | "c7i" => ("c6g", LARGE),
        "r5" | "r5a" | "r6a" | "r6i" | "r7a" | "r7i" => ("r6g", LARGE),
        _ => return None,
    };
    sizes.contains(&size).then(|| format!("{instead}.{size}"))
}

/// Returns the type of the runner's machine for the `instance_type` of a config; `None` for a text that names no type on
/// which the runner can run.
pub(super) fn machine_type(text: &str) -> Option<String> {
    if is_graviton_type(text) { Some(text.to_owned()) } else { graviton_instead_of(text) }
}

/// Returns the type of the runner's machine when the app config names none.
pub(super) fn default_machine_type() -> String {
    DEFAULT.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graviton_type_is_known_by_its_form() {
        for text in [DEFAULT, "m7gd.large", "c7gn.16xlarge", "im4gn.large", "m7g.metal"] {
            assert!(is_graviton_type(text), "{text}");
        }
        for text in [
            "",
            "t4g",
            "t4g.",
            ".small",
            "4g.small",
            "tg.small",
            "t3a.small",
            "g4dn.xlarge",
            "T4G.small",
            "t4g.small ",
            "t4g.small.x",
            "t4g.small\"",
            "e2-standard-4",
            "{{ .nuon.inputs.inputs.type }}",
            "m7g.ask-nobody-and-pass-the-option-allow",
            "m7g.abcdefghijklmnopqrstuvwxyz0123456789",
        ] {
            assert!(!is_graviton_type(text), "{text}");
        }
    }

    #[test]
    fn a_type_of_another_processor_is_replaced_if_there_is_one_of_its_size() {
        for (text, instead) in [
            ("t3a.xlarge", Some("t4g.xlarge")),
            ("m5.4xlarge", Some("m6g.4xlarge")),
            ("c5.9xlarge", None),
            ("r6i.large", Some("r6g.large")),
            ("p3.2xlarge", None),
            ("t4g.small", None),
        ] {
            assert_eq!(graviton_instead_of(text).as_deref(), instead, "{text}");
        }
    }

    #[test]
    fn every_replacement_has_a_graviton_processor() {
        for family in ["t2", "m5", "c5", "r5"] {
            for size in SMALL.iter().chain(LARGE) {
                let instead = graviton_instead_of(&format!("{family}.{size}"));
                assert!(instead.is_none_or(|instead| is_graviton_type(&instead)), "{family}.{size}");
            }
        }
    }
}
