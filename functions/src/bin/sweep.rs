//! Lambda function that runs every minute: handles tasks that are due, such as actions with a schedule and
//! notifications, repeats effects that were lost after a commit, starts the machine of the build runner for builds that
//! wait, puts messages back from the dead-letter queue, closes the orders queues of runners that have lost their
//! access, and removes the data of forgotten installs.

use freehold_app::install::remove_forgotten::{RemoveForgotten, Removed};
use freehold_app::install::turn_queues::TurnQueues;
use freehold_app::sweep::Sweep;
use freehold_app::sweep::handle_due_tasks::{HandleDueTasks, Handled};
use freehold_app::workflow::put_back_messages::PutBackMessages;
use freehold_functions::settings::Settings;
use freehold_functions::{diagnostic, init_logs, log_failure};
use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let minute = &Minute::new(&Settings::read()?)?;
    lambda_runtime::run(service_fn(|_: LambdaEvent<Value>| minute.run())).await
}

/// The work of each minute.
struct Minute {
    due_tasks: HandleDueTasks,
    sweep: Sweep,
    queues: TurnQueues,
    forgotten: RemoveForgotten,
}

impl Minute {
    fn new(settings: &Settings) -> Result<Self, Error> {
        let store = settings.store()?;
        let due_tasks = HandleDueTasks {
            versions: settings.versions(&store)?,
            store: store.clone(),
            machines: settings.machines()?,
            notifier: settings.notifier(&store)?,
            clock: settings.clock(),
        };
        let letters = PutBackMessages {
            store: store.clone(),
            letters: settings.dead_letters()?,
            orders_letters: settings.orders_dead_letters()?,
            clock: settings.clock(),
        };
        let forgotten = RemoveForgotten {
            store: store.clone(),
            queues: settings.queue_admin()?,
            callbacks: settings.callbacks(),
            letters,
            clock: settings.clock(),
        };
        let queues = TurnQueues { store: store.clone(), queues: settings.queue_admin()? };
        let sweep = Sweep {
            notifier: settings.notifier(&store)?,
            store,
            outbox: settings.outbox()?,
            callbacks: settings.callbacks(),
            machines: settings.machines()?,
            build_machine: settings.build_machine(),
            clock: settings.clock(),
        };
        Ok(Self { due_tasks, sweep, queues, forgotten })
    }

    async fn run(&self) -> Result<(), Diagnostic> {
        // Due tasks come first, because they are due in this minute. Lost effects have already waited for longer.
        let due = self.due_tasks.handle().await.map_err(|error| {
            log_failure("cannot handle due tasks", &error);
            diagnostic(&error)
        });
        let swept = self.sweep.sweep().await.map_err(|error| {
            log_failure("sweep failed", &error);
            diagnostic(&error)
        })?;
        // The tenant stack has a metric filter on the field `stuck_workflows`.
        tracing::info!(
            due = swept.due,
            postponed = swept.postponed,
            resent = swept.resent,
            lost = swept.lost,
            waiting = swept.waiting,
            opened = swept.opened,
            stuck_workflows = swept.stuck,
            builds = swept.builds,
            failed = swept.failed,
            "Swept"
        );
        // The next sweep tries again, so a failure here fails no other work.
        if let Err(error) = self.queues.turn().await {
            log_failure("could not look for orders queues to close or to open", &error);
        }
        match self.forgotten.remove().await {
            Ok(Removed { forgotten, pending, failed, unseen, put_back }) => {
                if put_back > 0 {
                    tracing::warn!(put_back, "Put messages back from the dead-letter queue");
                }
                if forgotten + pending + failed > 0 {
                    tracing::info!(forgotten, pending, failed, unseen, "Removed the data of forgotten installs");
                }
            }
            Err(error) => log_failure("could not look through the dead letters or remove forgotten installs", &error),
        }
        let due = due?;
        if due != Handled::default() {
            tracing::info!(started = due.started, skipped = due.skipped, failed = due.failed, "Handled due tasks");
        }
        Ok(())
    }
}
