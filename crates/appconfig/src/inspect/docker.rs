//! Checks Dockerfiles: the file is in the source, has a `FROM` line, and has the stage that the config names.

use freehold_template::nearest;

use crate::inspect::reader::Reader;
use crate::read::files::Place;
use crate::read::paths::{join, normal};
use crate::report::draft::Draft;
use crate::state::file::Checked;
use crate::state::source::Held;

/// Checks the Dockerfile of `held`.
pub(super) fn look(reader: &mut Reader<'_>, checked: &Checked, held: &Held) {
    let Some(word) = checked.root.text("dockerfile") else { return };
    let place = checked.place_of(&checked.root, "dockerfile");
    let name = normal(word).filter(|name| held.paths.contains(name));
    let Some(name) = name else {
        let near = nearest(word, held.paths.iter().map(String::as_str));
        let draft = Draft::error(place, format!("there is no `{word}` in `{}`", held.path));
        reader.say(match near {
            near @ Some(_) => draft.meant(near),
            None => draft.help("create the file, or correct the path, which is relative to the source"),
        });
        return;
    };
    let Some(file) = reader.open(held, &name) else { return };
    let stages = stages(reader.text(file));
    if stages.is_empty() {
        let message = format!("`{}` has no `FROM` line", join(&held.path, &name));
        reader.say(Draft::error(Place { file, span: 0..1 }, message).help("add `FROM ...`"));
        return;
    }
    let target = checked.root.text("target").filter(|target| !target.is_empty() && target.parse::<usize>().is_err());
    if let Some(target) = target
        && !stages.iter().flatten().any(|stage| stage.eq_ignore_ascii_case(target))
    {
        let draft = Draft::error(checked.place_of(&checked.root, "target"), format!("there is no stage `{target}`"));
        reader.say(match nearest(target, stages.iter().flatten().map(String::as_str)) {
            near @ Some(_) => draft.meant(near),
            None => draft.help(format!("name one in `{}`: `FROM ... AS {target}`", join(&held.path, &name))),
        });
    }
}

/// Returns the name of each stage of a Dockerfile; `None` for a stage without a name.
fn stages(text: &str) -> Vec<Option<String>> {
    let froms = text.lines().map(str::split_whitespace).filter_map(|mut words| {
        words.next().filter(|word| word.eq_ignore_ascii_case("FROM"))?;
        let mut rest = words.skip_while(|word| !word.eq_ignore_ascii_case("AS"));
        Some(rest.next().and_then(|_| rest.next()).map(str::to_owned))
    });
    froms.collect()
}
