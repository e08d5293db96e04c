//! The log line about the version of Terraform or Pulumi. The runner uses its own program, even if the config names
//! another version.

/// Returns the line with the version that was found; `wanted` is empty when the config names none.
pub(super) fn version_line(program: &str, found: &str, wanted: &str) -> String {
    if wanted.is_empty() || wanted == found {
        format!("{program} {found}")
    } else {
        format!("uses {program} {found}, although the config names `{wanted}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_than_the_config_asks_for_is_named() {
        assert_eq!(version_line("pulumi", "3.1.0", ""), "pulumi 3.1.0");
        assert_eq!(version_line("pulumi", "3.1.0", "3.1.0"), "pulumi 3.1.0");
        assert_eq!(
            version_line("terraform", "1.9.8", "1.9.7"),
            "uses terraform 1.9.8, although the config names `1.9.7`"
        );
    }
}
