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

#[test]
fn a_text_that_names_nothing_is_an_error() {
    let config = good()
        .with("input_groups/a.toml", "name = \"\"\n")
        .with(
            "components/net.toml",
            "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"\"\n",
        )
        .with(
            "components/web.toml",
            "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"\"\ntag = \"1.0\"\n",
        );

    insta::assert_snapshot!(config.faults(), @r#"
    error: the path of the source is empty
     --> components/net.toml:4:10
      |
    4 | source = ""
      |          ^^
      |
      = help: write a path, such as `./path`

    error: `image_url` is empty
     --> components/web.toml:4:13
      |
    4 | image_url = ""
      |             ^^ expected a text of at least one character

    error: `name` is empty
     --> input_groups/a.toml:1:8
      |
    1 | name = ""
      |        ^^ expected a text of at least one character
    "#);
}
