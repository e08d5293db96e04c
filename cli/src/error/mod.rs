//! The error of a command: its kind, a sentence, and the exit code for scripts. All exit codes are defined here.

mod api;
mod aws;
mod sign_in;
mod tip;
mod usage;

use std::fmt;

pub(crate) use freehold_aws_errors::chain;
use serde_json::{Value, json};

pub(crate) use aws::no_credentials;
pub(crate) use tip::with_tip;
pub(crate) use usage::usage;

/// The text about exit codes in `freehold --help`; [`Kind::exit_code`] decides them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0   done
  1   the request failed (a workflow that failed or was cancelled, leftovers after `tenant destroy`, differences with
      `app diff --exit-code`, wider terms with `contract diff`, a denial with `policy test` or `access test`, a
      lineage with a broken link, a contract or a licence with a broken signature, an install template with a
      finding or without the SHA-256 of `--sha256`, a sealed support bundle that was changed); of `customer`:
      the answer is no or is not proven, such as audit records with a problem, an event without a record,
      an install that is not stopped or not gone
  2   wrong usage, input or config: a value that is never valid
  3   not found: an install, app, version, release, component, action, role, workflow or job that does not exist;
      of `customer gone`: nothing shows that the install ever existed
  4   conflict: the current state does not allow the request, such as a deploy before the build, or a cancel of a
      workflow that has ended
  5   network trouble or throttling; try again
  6   access denied
  70  a defect of freehold
  130 stopped by ctrl-c

With --json an error is one line of JSON on stderr. Its object `error` has
the fields code, exit_code and message, and sometimes way_out and found; see
docs/errors.md.";

/// The kind of an error, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command ran, but the requested operation failed.
    Failed,
    /// The usage, an input or the config is wrong.
    Invalid,
    NotFound,
    Conflict,
    /// A transient failure: the network, throttling, or a service that is down.
    Transient,
    /// Missing or insufficient permission.
    Denied,
    /// A defect in Freehold.
    Internal,
    /// The user pressed Ctrl-c.
    Interrupted,
}

impl Kind {
    /// Returns the process's exit code.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Invalid => 2,
            Self::NotFound => 3,
            Self::Conflict => 4,
            Self::Transient => 5,
            Self::Denied => 6,
            Self::Internal => 70,
            Self::Interrupted => 130,
        }
    }

    /// Returns the name of the kind in the JSON output.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Transient => "transient",
            Self::Denied => "denied",
            Self::Internal => "internal",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The error of every command: a kind, a sentence that describes the problem, and a way out: what the user can do about
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    kind: Kind,
    message: String,
    /// The advice to the user, if the message does not contain it.
    way_out: Option<String>,
    soon: bool,
    /// Every mistake that was found in an app config, for programs.
    found: Option<Box<Value>>,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($name:ident => $kind:ident),+) => {
        $(pub(crate) fn $name(message: impl Into<String>) -> Self {
            Self::of(Kind::$kind, &message.into())
        })+
    };
}

impl Error {
    constructors! {
        failed => Failed, invalid => Invalid, not_found => NotFound, conflict => Conflict,
        transient => Transient, denied => Denied, internal => Internal, interrupted => Interrupted
    }

    /// Returns an error of `kind`. All texts have the form `problem; way out`, so the way out is the text after the
    /// last semicolon, except for semicolons in backticks, such as those of a path.
    fn of(kind: Kind, text: &str) -> Self {
        let parts = text.rmatch_indices("; ").map(|(at, _)| text.split_at(at));
        let mut outside = parts.filter(|(before, _)| before.matches('`').count().is_multiple_of(2));
        let (message, way_out) = match outside.next() {
            Some((message, rest)) => (message, Some(rest.trim_start_matches("; ").to_owned())),
            None => (text, None),
        };
        Self { kind, message: message.to_owned(), way_out, soon: false, found: None }
    }

    /// Returns an error whose message contains a text that this program did not write. A semicolon in this text does
    /// not begin a way out.
    pub(crate) fn quoting(kind: Kind, message: String) -> Self {
        Self::of(kind, "").with_message(message)
    }

    /// Returns this error with another message. A semicolon in this message does not begin a way out.
    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// Returns this error with the way out `way_out`.
    pub(crate) fn or(self, way_out: impl Into<String>) -> Self {
        Self { way_out: Some(way_out.into()), ..self }
    }

    /// Returns this error with every mistake that was found in an app config.
    pub(crate) fn with_found(self, found: Value) -> Self {
        Self { found: Some(Box::new(found)), ..self }
    }

    /// Returns the error as `--json` prints it.
    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({
            "code": self.kind.code(), "exit_code": self.kind.exit_code(), "message": self.message,
        });
        let more =
            [("way_out", self.way_out.as_ref().map(|text| json!(text))), ("found", self.found.as_deref().cloned())];
        if let Some(error) = error.as_object_mut() {
            error.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        json!({ "error": error })
    }

    /// Returns the advice to the user, if the error has any.
    pub(crate) fn way_out(&self) -> Option<&str> {
        self.way_out.as_deref()
    }

    /// Returns the kind, which chooses the exit code.
    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether the API expects the cause of the error to be gone within about a minute.
    pub(crate) const fn passes_soon(&self) -> bool {
        self.soon
    }

    /// Returns whether the API refused a request because it performs an earlier try of the same request.
    pub(crate) fn is_being_performed(&self) -> bool {
        self.soon && self.kind == Kind::Transient
    }

    /// Returns this error with `context` in front of its sentence.
    pub(crate) fn within(self, context: impl fmt::Display) -> Self {
        Self { message: format!("{context}: {}", self.message), ..self }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(400).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.way_out.as_ref().map_or(Ok(()), |way_out| write!(f, "; {way_out}"))
    }
}

impl std::error::Error for Error {}

/// Adds to an error the operation that failed.
pub(crate) trait ResultExt<T> {
    /// Turns the error into a command's error that begins with "cannot `what`".
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T> ResultExt<T> for std::io::Result<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| {
            let wrong = Error::invalid(format!("cannot {what}: {error}"));
            match error.kind() {
                std::io::ErrorKind::PermissionDenied => wrong.or("give this user the permission, or use another path"),
                std::io::ErrorKind::ReadOnlyFilesystem => wrong.or("use another path"),
                std::io::ErrorKind::StorageFull => wrong.or("make space on the disk"),
                _ => wrong,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_in_a_quoted_text_begins_no_way_out() {
        let wrong = "`a; b` is not a contract: no field; no comma".to_owned();
        let absent = Error::not_found("there is no file `a; b`");

        assert_eq!(Error::quoting(Kind::Invalid, wrong.clone()).or("try `c`").to_string(), format!("{wrong}; try `c`"));
        assert_eq!(absent.clone().or("try `c`").to_string(), "there is no file `a; b`; try `c`");
        assert_eq!(absent.way_out(), None);
        assert_eq!(Error::invalid("`a; b` is wrong; try `c`, or `d; e`").way_out(), Some("try `c`, or `d; e`"));
    }

    #[test]
    fn every_kind_has_its_documented_exit_code() {
        let kinds = [
            Kind::Failed,
            Kind::Invalid,
            Kind::NotFound,
            Kind::Conflict,
            Kind::Transient,
            Kind::Denied,
            Kind::Internal,
            Kind::Interrupted,
        ];

        for kind in kinds {
            let line = format!("  {:<3} ", kind.exit_code());
            assert!(EXIT_CODES.contains(&line), "{kind:?}");
        }
    }

    #[test]
    fn the_page_about_exit_codes_says_what_the_help_says() {
        let page = include_str!("../../../docs/exit-codes.md");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let block = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();

        assert_eq!(words(block), words(EXIT_CODES));
    }

    #[test]
    fn an_error_is_an_object_with_its_code_message_and_way_out() {
        let error = Error::conflict("`my-app` is not empty; name a new directory").within("app init");

        assert_eq!(
            error.to_json().to_string(),
            r#"{"error":{"code":"conflict","exit_code":4,"message":"app init: `my-app` is not empty","way_out":"name a new directory"}}"#
        );
        assert_eq!(error.to_string(), "app init: `my-app` is not empty; name a new directory");
        assert_eq!(Error::internal("a defect").to_json()["error"].get("way_out"), None);
    }
}
