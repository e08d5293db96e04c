//! `freehold customer windows`: shows when changes may start, according to the launched stack.

use std::collections::BTreeMap;

use clap::Args;
use freehold_protocol::{InstallId, Timestamp};
use freehold_windows::{ACTIONS, Decision, FREEZES, HELD, NOW_BY, Rules, WINDOWS};
use serde_json::{Value, json};

use super::answer::Answer;
use super::own_install::OwnInstall;
use crate::clock;
use crate::cloudformation::Stack;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::Part;

/// The openings that are shown: at most this many, within this many days.
const OPENINGS: usize = 5;
const DAYS: i64 = 35;

/// For customers: show when the vendor's changes may start, and whether they may now.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold customer windows globex --tenant acme

You set the windows with the stack's parameters `ChangeWindows`, such as `Europe/Berlin: Mon-Fri 22:00-04:00; Sat,Sun
00:00-24:00`, and `ChangeFreezes`, such as `2026-12-20..2027-01-02`.

Exit code 1 when no window opens within 400 days.")]
pub(crate) struct Windows {
    /// Name of the install.
    install: InstallId,
}

impl Windows {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let stack = OwnInstall::find(context, &self.install).await?.stack().await?;
        answer(&stack, clock::now()?)?.print(context.out)
    }
}

/// Returns when the vendor's changes may start.
pub(super) fn answer(stack: &Stack, now: Timestamp) -> Result<Answer> {
    let shown = Shown::of(&stack.name, &stack.parameters, now)?;
    let verdict = match shown.never {
        Some(why) => Err(Error::failed(format!("stack `{}`: {why}", stack.name))),
        None => Ok(()),
    };
    Ok(Answer::new(&shown.json, vec![Part::Text(shown.text)])?.with_verdict(verdict))
}

/// Returns when changes may start, as `--json` prints it.
pub(crate) fn change_windows(stack: &Stack, now: Timestamp) -> Result<Value> {
    Ok(Shown::of(&stack.name, &stack.parameters, now)?.json)
}

/// A stack's rules about changes, as the command shows them.
struct Shown {
    text: String,
    json: Value,
    /// The reason why no window ever opens; absent if none was found.
    never: Option<String>,
}

impl Shown {
    fn of(stack: &str, parameters: &BTreeMap<String, String>, now: Timestamp) -> Result<Self> {
        if !parameters.contains_key(WINDOWS) {
            return Err(Error::not_found(format!("stack `{stack}` has no parameter `{WINDOWS}`"))
                .or("launch the template of a newer version"));
        }
        let rules = Rules::of_parameters(parameters).map_err(|wrong| {
            Error::invalid(format!("stack `{stack}`: {wrong}"))
                .or("correct the parameter with `freehold install launch`; until then the runner starts no change")
        })?;
        let (sentence, open, until, never) = match rules.at(now) {
            Decision::Open { until } => {
                let end = until.map_or_else(|| "at any time".to_owned(), |at| format!("until {}", rules.shown(at)));
                (format!("changes may start now, {end}"), true, until, None)
            }
            Decision::Closed(closed) => {
                let never = (closed.until.is_none() && !rules.is_held()).then(|| closed.sentence());
                (closed.sentence(), false, closed.until, never)
            }
        };
        let mut lines = vec![sentence.clone()];
        let next = rules.openings(now, DAYS, OPENINGS).all;
        if !rules.is_unlimited() {
            lines.extend(next.iter().map(|one| {
                let end = one.until.map_or_else(|| "without an end".to_owned(), |at| rules.shown(at));
                format!("  from {} until {end}", rules.shown(one.from))
            }));
        }
        let value = |name: &str| parameters.get(name).cloned().unwrap_or_default();
        let named = [WINDOWS, FREEZES, HELD, NOW_BY, ACTIONS];
        lines
            .extend(named.iter().filter(|name| !value(name).is_empty()).map(|name| format!("{name}: {}", value(name))));
        let openings: Vec<Value> = next.iter().map(|one| json!({ "from": one.from, "until": one.until })).collect();
        let texts: BTreeMap<&str, String> = named.iter().map(|name| (*name, value(name))).collect();
        let json = json!({
            "stack": stack, "open": open, "until": until, "says": sentence, "openings": openings, "parameters": texts,
        });
        Ok(Self { text: lines.join("\n"), json, never })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(windows: &str, freezes: &str, held: &str) -> Result<Shown> {
        let parameters = [(WINDOWS, windows), (FREEZES, freezes), (HELD, held)];
        let parameters = parameters.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        // Friday, 27 November 2026, 12:00 UTC.
        Shown::of("freehold-acme--globex", &parameters, Timestamp::from_millis(1_795_780_800_000))
    }

    #[test]
    fn closed_windows_say_until_when_and_name_the_next_ones() {
        let answer = render("Europe/Berlin: Sat 02:00-06:00", "2026-12-05", "false").unwrap();

        insta::assert_snapshot!(answer.text, @r"
        the customer's change windows are closed until Sat 2026-11-28 02:00 Europe/Berlin
          from Sat 2026-11-28 02:00 Europe/Berlin until Sat 2026-11-28 06:00 Europe/Berlin
          from Sat 2026-12-12 02:00 Europe/Berlin until Sat 2026-12-12 06:00 Europe/Berlin
          from Sat 2026-12-19 02:00 Europe/Berlin until Sat 2026-12-19 06:00 Europe/Berlin
          from Sat 2026-12-26 02:00 Europe/Berlin until Sat 2026-12-26 06:00 Europe/Berlin
        ChangeWindows: Europe/Berlin: Sat 02:00-06:00
        ChangeFreezes: 2026-12-05
        ChangesHeld: false
        ");
        assert_eq!((answer.json["open"].as_bool(), answer.never), (Some(false), None));
    }

    #[test]
    fn without_windows_changes_may_start_at_any_time_and_a_hold_says_how_it_ends() {
        let open = render("", "", "false").unwrap();
        let held = render("", "", "true").unwrap();

        assert_eq!(open.text, "changes may start now, at any time\nChangesHeld: false");
        assert!(held.text.starts_with("the customer holds all changes") && held.never.is_none(), "{}", held.text);
    }

    #[test]
    fn windows_that_never_open_and_texts_that_are_wrong_are_errors_with_a_way_out() {
        let never = render("UTC: Mon 22:00-23:00", "2026-01-01..2030-01-01", "false").unwrap().never.unwrap();
        let wrong = render("Mars/Base: Mon 22:00-23:00", "", "false").map(|_| ()).unwrap_err().to_string();

        assert!(never.contains("no window opens within 400 days"), "{never}");
        assert!(wrong.contains("`ChangeWindows`, column 1: `Mars/Base` is not a time zone"), "{wrong}");
    }
}
