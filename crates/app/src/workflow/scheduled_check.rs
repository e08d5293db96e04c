//! What becomes of a check of an install that a schedule starts.

use freehold_domain::install::Install;
use freehold_domain::install::connection::ConnectionState;
use freehold_protocol::{Timestamp, WorkflowId};

use crate::ports::Store;
use crate::table::{self, Contact};
use crate::{AppError, Kind};

/// The start of a check that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scheduled {
    /// The check of this minute was started, now or by an earlier call.
    Started,
    /// No schedule is due, because the version has changed since.
    NotDue,
    /// The check is left to the next minute of the schedule.
    Skipped(String),
}

impl Scheduled {
    /// Returns what became of a start: what the install refuses is left to the next minute of the schedule.
    ///
    /// # Errors
    /// Every other error.
    pub(crate) fn of(started: Result<WorkflowId, AppError>) -> Result<Self, AppError> {
        match started {
            Ok(_) => Ok(Self::Started),
            Err(error) => match error.kind {
                Kind::Invalid | Kind::NotFound | Kind::Conflict => Ok(Self::Skipped(error.message)),
                _ => Err(error),
            },
        }
    }
}

/// Returns why the install's runner takes no orders at `now`; `None` if it does, as far as is known. A check that waits finds
/// nothing that the next one does not find.
///
/// # Errors
/// The store's errors.
pub(crate) async fn is_away(store: &dyn Store, install: &Install, now: Timestamp) -> Result<Option<String>, AppError> {
    let contact = table::load::<Contact>(store, &table::contact_key(&install.id)).await?;
    let Some(contact) = contact else { return Ok(None) };
    let contact = contact.value.contact;
    let connection = contact.connection(Some(contact.at), now);
    let is_away = connection.state != ConnectionState::Connected;
    Ok(is_away.then(|| format!("the runner takes no orders: it is {}", connection.state.as_str())))
}
