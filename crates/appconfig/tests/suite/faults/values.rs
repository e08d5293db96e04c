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

#[test]
fn a_type_of_an_input_in_the_words_of_another_language_has_a_hint() {
    let input = |word: &str| {
        let keys = "name = \"a\"\ndisplay_name = \"A\"\ndescription = \"d\"\ngroup = \"main\"\n";
        good().with("inputs/a.toml", &format!("{keys}type = \"{word}\"\n")).faults().to_string()
    };

    for (word, meant) in [("int", "number"), ("Boolean", "bool"), ("text", "string"), ("object", "json")] {
        let found = input(word);

        assert!(found.contains(&format!("`type` is `{word}`")), "{found}");
        assert!(found.contains(&format!("did you mean `{meant}`?")), "{found}");
    }
    assert!(!input("zzz").contains("did you mean"));
}
