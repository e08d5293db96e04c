use super::*;

fn imports(files: &[(&str, &str)]) -> BTreeMap<String, BTreeSet<String>> {
    let texts = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Sources::parse(&texts).imports()
}

fn names(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn paths_are_found_in_imports_lists_code_and_macros() {
    let found = imports(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::{b::B, c::{self, C}};"),
        ("b.rs", "fn f() { format!(\"{}\", crate::c::name()) }"),
        ("c.rs", "fn f() { super::a::g(); }"),
    ]);

    assert_eq!(found["a.rs"], names(&["b.rs", "c.rs"]));
    assert_eq!(found["b.rs"], names(&["c.rs"]));
    assert_eq!(found["c.rs"], names(&["a.rs"]));
}

#[test]
fn to_name_who_may_use_something_is_not_to_use_it() {
    let found = imports(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub(in crate::b) fn f() {} pub(crate) struct S;"),
        ("b.rs", "pub(in crate) fn g() { crate::a::f() }"),
    ]);

    assert_eq!(found["a.rs"], names(&[]));
    assert_eq!(found["b.rs"], names(&["a.rs"]));
}

#[test]
fn a_name_that_is_passed_on_counts_for_the_file_that_defines_it() {
    let found = imports(&[
        ("lib.rs", "mod folder; mod user;"),
        ("folder/mod.rs", "mod inner; pub(crate) use inner::Thing; pub use self::inner::Other as Another;"),
        ("folder/inner.rs", "pub struct Thing; pub struct Other;"),
        ("user.rs", "use crate::folder::{Another, Thing};"),
    ]);

    assert_eq!(found["user.rs"], names(&["folder/inner.rs"]));
    assert_eq!(found["folder/mod.rs"], names(&[]));
}

#[test]
fn a_name_that_is_passed_on_and_used_in_the_same_file_counts_for_both() {
    let found = imports(&[
        ("lib.rs", "mod folder;"),
        (
            "folder/mod.rs",
            "mod inner; pub use inner::{Other, Thing}; struct Parent { things: Vec<Thing> } fn Other() {}",
        ),
        ("folder/inner.rs", "use super::Parent; pub struct Thing; pub struct Other;"),
    ]);

    assert_eq!(found["folder/mod.rs"], names(&["folder/inner.rs"]));
    assert_eq!(found["folder/inner.rs"], names(&["folder/mod.rs"]));
}

#[test]
fn a_word_that_only_looks_like_a_name_that_is_passed_on_is_not_a_use() {
    let found = imports(&[
        ("lib.rs", "mod folder;"),
        ("folder/mod.rs", "mod inner; pub use inner::{a, b}; struct S { a: u8 } fn f(s: S) -> u8 { s.a + other::b() }"),
        ("folder/inner.rs", "pub fn a() {} pub fn b() {}"),
    ]);

    assert_eq!(found["folder/mod.rs"], names(&[]));
}

#[test]
fn a_parent_that_calls_a_child_that_uses_the_parent_is_seen_both_ways() {
    let found = imports(&[
        ("lib.rs", "mod kinds;"),
        ("kinds/mod.rs", "mod image; pub struct Done; fn run() { image::run() }"),
        ("kinds/image.rs", "use super::Done; #[cfg(test)] mod tests { use crate::other::X; }"),
    ]);

    assert_eq!(found["kinds/mod.rs"], names(&["kinds/image.rs"]));
    assert_eq!(found["kinds/image.rs"], names(&["kinds/mod.rs"]));
}

#[test]
fn a_path_that_begins_with_an_imported_module_leads_where_the_whole_path_leads() {
    let found = imports(&[
        ("lib.rs", "mod folder; mod user;"),
        ("folder/mod.rs", "mod inner; pub use inner::Thing;"),
        ("folder/inner.rs", "use crate::user::g; pub struct Thing;"),
        ("user.rs", "use crate::{folder as other}; pub fn g() { other::Thing::new() }"),
    ]);

    assert_eq!(found["user.rs"], names(&["folder/mod.rs", "folder/inner.rs"]));
    assert_eq!(found["folder/inner.rs"], names(&["user.rs"]));
}

#[test]
fn a_name_that_a_module_inside_of_a_file_passes_on_counts_for_the_file_that_defines_it() {
    let found = imports(&[
        ("lib.rs", "mod inner; mod user; pub mod api { pub use super::inner::Thing; }"),
        ("inner.rs", "pub struct Thing;"),
        ("user.rs", "fn f(thing: crate::api::Thing) {}"),
    ]);

    assert_eq!(found["user.rs"], names(&["inner.rs"]));
    assert_eq!(found["lib.rs"], names(&[]));
}

#[test]
fn to_call_a_macro_is_to_use_the_file_that_defines_it() {
    let found = imports(&[
        ("lib.rs", "macro_rules! id { ($name:ident) => { $crate::a::new() } } mod a; mod b;"),
        ("a.rs", "id!(Name); fn f() { println!(); }"),
        ("b.rs", "macro_rules! id { () => {} } id!();"),
    ]);

    assert_eq!(found["lib.rs"], names(&["a.rs"]));
    assert_eq!(found["a.rs"], names(&["b.rs", "lib.rs"]));
    assert_eq!(found["b.rs"], names(&[]));
}

#[test]
fn a_path_in_the_string_of_an_attribute_is_found() {
    let found = imports(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "struct S { #[serde(with = \"crate::b::time\", default = \"super::c::one\")] at: u8 }"),
        ("b.rs", "/// crate::a is not used here\nfn f() -> &'static str { \"see crate::c\" }"),
    ]);

    assert_eq!(found["a.rs"], names(&["b.rs", "lib.rs"]));
    assert_eq!(found["b.rs"], names(&[]));
}

#[test]
fn what_follows_a_field_or_a_variant_of_tests_is_not_theirs() {
    let found = imports(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "struct S { #[cfg(test)] pub(crate) seed: u8, b: crate::b::B }"),
        ("b.rs", "enum E { #[cfg(test)] Seed, C(crate::c::C) } #[cfg(test)] fn f<A, B>() { crate::a::g() }"),
        ("c.rs", "#[cfg(test)] #[expect(unused)] pub(crate) fn f<A, B>() { crate::a::g() }"),
    ]);

    assert_eq!(found["a.rs"], names(&["b.rs"]));
    assert_eq!(found["b.rs"], names(&["c.rs"]));
    assert_eq!(found["c.rs"], names(&[]));
}

#[test]
fn what_hides_whose_names_are_used_is_named() {
    let texts = [
        ("lib.rs", "mod a; #[path = \"other.rs\"] mod b;"),
        ("a.rs", "pub use crate::c::*; use super::{c::Kind::*, d::{self, *}};"),
        ("c.rs", "pub enum Kind {} #[cfg(test)] mod tests { use super::*; }"),
        ("d.rs", "#[cfg(test)] mod tests; #[cfg(all(test, unix))] mod more { use crate::c::*; }"),
        ("d/tests.rs", "use super::*;"),
    ];
    let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into();

    let hidden = Sources::parse(&texts).hidden();

    let wanted = [
        "lib.rs: `#[path]`; give the file its module's name",
        "a.rs: `c::*`; import by name",
        "a.rs: `d::*`; import by name",
    ];
    assert_eq!(hidden, wanted);
}
