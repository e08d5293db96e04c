//! Finds, by name, the functions that a template may call: those of Go and those of Sprig.

pub(crate) mod function;
pub(crate) mod go;
mod sprig;

use crate::functions::function::Function;

fn tables() -> impl Iterator<Item = &'static Function> {
    std::iter::once(go::FUNCTIONS).chain(sprig::TABLES.iter().copied()).flatten()
}

/// Returns the function `name`. A name `mustX` also finds the function `x`: in Sprig, only `mustX` reports mistakes,
/// but here `x` reports them too.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    let known = |name: &str| tables().find(|function| function.name == name);
    known(name).or_else(|| {
        let mut rest = name.strip_prefix("must")?.chars();
        let first = rest.next().filter(char::is_ascii_uppercase)?.to_ascii_lowercase();
        let name = format!("{first}{}", rest.as_str());
        known(&name).filter(|function| sprig::HAVE_MUST.contains(&function.name))
    })
}

/// Returns the names of all functions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    tables().map(|function| function.name)
}
