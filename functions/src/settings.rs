//! The settings of a function: environment variables that the tenant stack sets.

use std::sync::Arc;

use freehold_app::app_version::versions::Versions;
use freehold_app::notification::notifier::Notifier;
use freehold_app::ports::{BuildMachine, Clock, Store};
use freehold_app::stack::render_stack::RunnerProgram;
use freehold_app::table::WriterId;
use freehold_aws::caller_identity::StsCallerIdentity;
use freehold_aws::config::{SdkConfig, SystemClock, sdk_config};
use freehold_aws::dead_letters::{SqsDeadLetters, SqsSource};
use freehold_aws::notifications::{SnsSubscriptions, SnsTopic};
use freehold_aws::objects::S3Objects;
use freehold_aws::queue::{SqsAdmin, SqsOutbox};
use freehold_aws::registry::{EcrRegistry, EcrRemover};
use freehold_aws::scaling::ScalingGroup;
use freehold_aws::signer::KmsSigner;
use freehold_aws::store::DynamoStore;
use freehold_aws::tenant_queues::TenantQueues;
use freehold_aws::workflow::{SfnCallbacks, SfnMachines};
use freehold_protocol::{AccountId, KeyUse, TenantName};
use lambda_runtime::Error;

/// The environment of one function and its connection to AWS.
#[derive(Debug, Clone)]
pub struct Settings {
    pub tenant: TenantName,
    pub sdk: SdkConfig,
}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    /// When `FREEHOLD_TENANT` is missing or is not a valid tenant name.
    pub fn read() -> Result<Self, Error> {
        Ok(Self { tenant: variable("FREEHOLD_TENANT")?.parse()?, sdk: sdk_config() })
    }

    /// Returns the tenant's table.
    ///
    /// # Errors
    /// When its name is not set.
    pub fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(DynamoStore::new(&self.sdk, variable("FREEHOLD_TABLE")?)))
    }

    /// Returns the app versions in `store` and in the tenant's bucket.
    ///
    /// # Errors
    /// When the bucket's name is not set.
    pub fn versions(&self, store: &Arc<dyn Store>) -> Result<Versions, Error> {
        Ok(Versions::new(Arc::clone(store), self.objects()?))
    }

    /// Returns the tenant's bucket.
    ///
    /// # Errors
    /// When the bucket's name is not set.
    pub fn objects(&self) -> Result<Arc<S3Objects>, Error> {
        Ok(Arc::new(S3Objects::new(&self.sdk, variable("FREEHOLD_BUCKET")?)))
    }

    /// Returns the system clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// Returns the internal queues that this function may write to.
    ///
    /// # Errors
    /// When the dispatch queue's URL is not set.
    pub fn outbox(&self) -> Result<Arc<SqsOutbox>, Error> {
        let grants = std::env::var("FREEHOLD_GRANTS_QUEUE_URL").ok();
        Ok(Arc::new(SqsOutbox::new(&self.sdk, variable("FREEHOLD_DISPATCH_QUEUE_URL")?, grants)))
    }

    /// Returns the queue that triggers this function.
    ///
    /// # Errors
    /// When its URL, or the URL of the dead-letter queue, is not set.
    pub fn source_queue(&self) -> Result<SqsSource, Error> {
        Ok(SqsSource::new(&self.sdk, variable("FREEHOLD_SOURCE_QUEUE_URL")?, variable("FREEHOLD_DEAD_LETTERS_URL")?))
    }

    /// Returns the dead-letter queue of the functions' queues.
    ///
    /// # Errors
    /// When the URL of a queue is not set.
    pub fn dead_letters(&self) -> Result<Arc<SqsDeadLetters>, Error> {
        let sources = ["FREEHOLD_REPORTS_QUEUE_URL", "FREEHOLD_DISPATCH_QUEUE_URL", "FREEHOLD_GRANTS_QUEUE_URL"];
        let sources = sources.iter().map(|name| variable(name)).collect::<Result<_, _>>()?;
        let (url, putter) = (variable("FREEHOLD_DEAD_LETTERS_URL")?, variable("FREEHOLD_SWEEP_ROLE_ID")?);
        Ok(Arc::new(SqsDeadLetters::new(&self.sdk, self.tenant.clone(), url, sources, Some(putter))))
    }

    /// Returns the dead-letter queue of the orders queues. Its messages are never put back.
    ///
    /// # Errors
    /// When its URL is not set.
    pub fn orders_dead_letters(&self) -> Result<Arc<SqsDeadLetters>, Error> {
        let url = variable("FREEHOLD_ORDERS_DEAD_LETTERS_URL")?;
        Ok(Arc::new(SqsDeadLetters::new(&self.sdk, self.tenant.clone(), url, Vec::new(), None)))
    }

    /// Returns the port that creates and removes orders queues.
    ///
    /// # Errors
    /// When a setting is missing.
    pub fn queue_admin(&self) -> Result<Arc<SqsAdmin>, Error> {
        let place = TenantQueues {
            tenant: self.tenant.clone(),
            region: variable("AWS_REGION")?,
            account: self.account()?,
            reports_url: variable("FREEHOLD_REPORTS_QUEUE_URL")?,
            dead_letter_arn: variable("FREEHOLD_DEAD_LETTER_ARN")?,
            orders_dead_letter_arn: variable("FREEHOLD_ORDERS_DEAD_LETTER_ARN")?,
            // Only `register-install`, which creates reports queues, has the variable.
            report_concurrency: std::env::var("FREEHOLD_REPORT_CONCURRENCY").map_or(Ok(5), |text| text.parse())?,
        };
        Ok(Arc::new(SqsAdmin::new(&self.sdk, place)))
    }

    /// Returns the signer that uses the tenant's key in KMS, and whose delegate keys may sign statements of `uses`.
    ///
    /// # Errors
    /// When the key is not set.
    pub fn signer(&self, uses: &[KeyUse]) -> Result<Arc<KmsSigner>, Error> {
        let key = variable("FREEHOLD_SIGNING_KEY_ID")?;
        // Both are empty until the tenant has another root key than its first one.
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let succession = text("FREEHOLD_ROOT_SUCCESSION").map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))?;
        let second = text("FREEHOLD_SECOND_ROOT_KEY").map(|text| text.parse()).transpose()?;
        let signer = KmsSigner::new(&self.sdk, key, self.tenant.clone(), uses.iter().copied().collect());
        Ok(Arc::new(signer.following(succession, second)))
    }

    /// Returns the port that starts the tenant's state machines.
    ///
    /// # Errors
    /// When their prefix is not set.
    pub fn machines(&self) -> Result<Arc<SfnMachines>, Error> {
        Ok(Arc::new(SfnMachines::new(&self.sdk, variable("FREEHOLD_MACHINE_PREFIX")?)))
    }

    /// Returns the port that sends results to waiting states of state machines.
    pub fn callbacks(&self) -> Arc<SfnCallbacks> {
        Arc::new(SfnCallbacks::new(&self.sdk))
    }

    /// Returns the machine of the build runner, if the tenant stack starts one when there is something to build.
    pub fn build_machine(&self) -> Option<Arc<dyn BuildMachine>> {
        let group = std::env::var("FREEHOLD_BUILD_GROUP").ok()?;
        Some(Arc::new(ScalingGroup::new(&self.sdk, group)))
    }

    /// Returns the topic of the tenant's notifications.
    ///
    /// # Errors
    /// When its ARN is not set.
    pub fn topic(&self) -> Result<Arc<SnsTopic>, Error> {
        Ok(Arc::new(SnsTopic::new(&self.sdk, variable("FREEHOLD_NOTIFICATIONS_TOPIC_ARN")?)))
    }

    /// Returns the sender of notifications to the topic.
    ///
    /// # Errors
    /// When the topic's ARN is not set.
    pub fn notifier(&self, store: &Arc<dyn Store>) -> Result<Notifier, Error> {
        Ok(Notifier { store: Arc::clone(store), topic: self.topic()? })
    }

    /// Returns the subscriptions to the tenant's notifications.
    ///
    /// # Errors
    /// When the ARN of the topic or of its dead-letter queue is not set.
    pub fn subscriptions(&self) -> Result<Arc<SnsSubscriptions>, Error> {
        let (topic, dead) =
            (variable("FREEHOLD_NOTIFICATIONS_TOPIC_ARN")?, variable("FREEHOLD_NOTIFICATIONS_DEAD_LETTER_ARN")?);
        Ok(Arc::new(SnsSubscriptions::new(&self.sdk, topic, dead)))
    }

    /// Returns AWS STS, which confirms the roles of runners.
    pub fn callers(&self) -> Arc<StsCallerIdentity> {
        Arc::new(StsCallerIdentity::new(&self.sdk))
    }

    /// Returns the tenant registry.
    ///
    /// # Errors
    /// When the repository is not set.
    pub fn registry(&self) -> Result<Arc<EcrRegistry>, Error> {
        Ok(Arc::new(EcrRegistry::new(&self.sdk, variable("FREEHOLD_REPOSITORY")?)))
    }

    /// Returns the port that removes artifacts from the tenant registry.
    ///
    /// # Errors
    /// When the repository is not set.
    pub fn artifact_remover(&self) -> Result<Arc<EcrRemover>, Error> {
        Ok(Arc::new(EcrRemover::new(&self.sdk, variable("FREEHOLD_REPOSITORY")?)))
    }

    /// Returns the id of the tenant's AWS account.
    ///
    /// # Errors
    /// When it is not set, or not 12 digits.
    pub fn account(&self) -> Result<AccountId, Error> {
        Ok(variable("FREEHOLD_ACCOUNT")?.parse()?)
    }
}

/// Draws the id of this copy of the function.
pub fn writer() -> WriterId {
    WriterId::of(fastrand::u64(..))
}

/// Returns a required environment variable.
///
/// # Errors
/// When it is missing.
pub fn variable(name: &str) -> Result<String, Error> {
    std::env::var(name).map_err(|_| format!("environment variable `{name}` is not set").into())
}

/// Returns the runner program that customers' machines download, if the tenant stack names one.
pub fn runner_program() -> Option<RunnerProgram> {
    let [url, sha256] =
        ["FREEHOLD_RUNNER_URL", "FREEHOLD_RUNNER_SHA256"].map(|name| variable(name).unwrap_or_default());
    (!url.is_empty() && !sha256.is_empty()).then_some(RunnerProgram { url, sha256 })
}
