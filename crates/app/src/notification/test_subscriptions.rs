//! Sends a test to subscribers of the notifications.

use std::sync::Arc;

use freehold_domain::notification;
use freehold_protocol::api::{TestSent, TestSubscriptionsRequest};

use crate::AppError;
use crate::ports::{Clock, NotificationTopic, Store};
use crate::table;

/// The use case that sends a test, with its ports.
#[derive(Clone)]
pub struct TestSubscriptions {
    pub store: Arc<dyn Store>,
    pub topic: Arc<dyn NotificationTopic>,
    pub clock: Arc<dyn Clock>,
}

impl TestSubscriptions {
    /// Sends a test to the subscribers that would get notifications about the install or the app of the request. A request that
    /// is repeated with the same `cause` sends a test with the same id.
    ///
    /// # Errors
    /// NotFound for an app or an install that does not exist, or the errors of the ports.
    pub async fn test(&self, request: &TestSubscriptionsRequest, cause: &str) -> Result<TestSent, AppError> {
        let app = match (&request.install, &request.app) {
            (Some(install), _) => table::install(&*self.store, install).await?.value.app().cloned(),
            (None, Some(app)) => Some(table::app(&*self.store, app).await?.value.app),
            (None, None) => None,
        };
        let test = notification::test(request.install.clone(), app, cause, self.clock.now());
        self.topic.publish(&test).await?;
        Ok(TestSent { id: test.id })
    }
}
