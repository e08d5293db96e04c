//! Values of the right type that cannot be meant.

use crate::config::good;

#[test]
fn another_version_of_the_config_format_is_a_warning() {
    insta::assert_snapshot!(good().with("metadata.toml", "version = \"v1\"\n").faults(), @r#"
    warning: `version` is `v1`, and the config is read as `v2`
     --> metadata.toml:1:11
      |
    1 | version = "v1"
      |           ^^^^
      |
      = help: write `version = "v2"`
    "#);
}
