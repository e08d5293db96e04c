//! Shows an artifact's lineage: collects, page by page, the evidence of its build and of every job that deployed it. It
//! does not verify the evidence. Missing evidence is left out, and the verifier reports the gap.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::build::{Build, BuildState};
use freehold_domain::install::Install;
use freehold_domain::job::{Job, JobState};
use freehold_protocol::api::LineagePage;
use freehold_protocol::lineage::{Approval, FORMAT, Lineage, Made, Proof, Used};
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, InstallId, TenantName};

use crate::AppError;
use crate::ports::{RootKey, Store};
use crate::read::List;
use crate::table::evidence::{self, MadeBy, ProofRecord, UsedBy, artifact_pk};
use crate::table::{self, Stored, build_key, load, load_all, parse};

/// The maximum number of uses on one page.
const PAGE_USES: u32 = 50;
/// A page ends when its signed messages have more than this number of bytes. The response of a function may have at
/// most 6 MB.
const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// The use case that shows a lineage, with its ports.
#[derive(Clone)]
pub struct ShowLineage {
    pub tenant: TenantName,
    pub store: Arc<dyn Store>,
    pub root: Arc<dyn RootKey>,
}

impl ShowLineage {
    /// Returns a page of the lineage of `artifact`: all builds, and the uses whose sort keys follow `after`. Within a
    /// page, the uses are sorted by time. With `install`, the page has only the uses in this install and the builds that
    /// they name, so that it says nothing about other installs.
    ///
    /// # Errors
    /// NotFound for an artifact that no build or job of this tenant made or deployed, or that was not deployed to
    /// `install`; Invalid when `after` belongs to another install; or the ports' errors.
    pub async fn show(
        &self,
        artifact: &Digest,
        install: Option<&InstallId>,
        after: Option<&str>,
    ) -> Result<LineagePage, AppError> {
        let store = &*self.store;
        let pk = artifact_pk(artifact);
        let prefix = uses_prefix(install);
        check_place(&prefix, install, after)?;
        let mut made: Vec<MadeBy> = load_all(store, &pk, "build#").await?;
        let rows = store.query(&pk, &prefix, after, PAGE_USES).await?;
        if rows.is_empty() && after.is_none() && (made.is_empty() || install.is_some()) {
            return Err(nothing_known(artifact, install));
        }
        let (mut uses, mut bytes, mut next) = (Vec::new(), 0, None);
        let mut installs = BTreeMap::new();
        let full = rows.len() == PAGE_USES as usize;
        for (at, row) in rows.iter().enumerate() {
            if let Some(used) = self.load_use(parse(row)?.value, &mut installs).await? {
                bytes += [&used.proof.order, &used.proof.report, &used.proof.hello]
                    .into_iter()
                    .flatten()
                    .map(|message| message.payload.len())
                    .sum::<usize>();
                uses.push(used);
            }
            let last = at + 1 == rows.len();
            if (last && full) || (!last && bytes > PAGE_BYTES) {
                next = Some(row.key.sk.clone());
                break;
            }
        }
        uses.sort_by_key(|used| used.proof.at);
        if install.is_some() {
            made.retain(|made| uses.iter().any(|used| used.build == made.build));
        }
        let mut builds = Vec::with_capacity(made.len());
        for made in made {
            builds.extend(self.load_build(made).await?);
        }
        let root_key = self.root.public_key().await?;
        let (tenant, artifact) = (self.tenant.clone(), artifact.clone());
        let succession = self.root.succession();
        let lineage = Lineage { format: FORMAT, tenant, root_key, succession, artifact, builds, uses };
        Ok(LineagePage { lineage, next })
    }

    /// Returns the record of a build, or `None` when it no longer exists.
    async fn load_build(&self, made: MadeBy) -> Result<Option<Made>, AppError> {
        let record: Option<Stored<Build>> = load(&*self.store, &build_key(&made.app, &made.build)).await?;
        let Some(Stored { value: build, .. }) = record else { return Ok(None) };
        let provenance = match build.state {
            BuildState::Built { artifact, .. } | BuildState::Removed { artifact, .. }
                if artifact.digest == made.artifact =>
            {
                artifact.provenance
            }
            BuildState::Built { .. }
            | BuildState::Building { .. }
            | BuildState::Failed { .. }
            | BuildState::Removed { .. } => None,
        };
        Ok(Some(Made {
            app: made.app,
            component: made.component,
            build: made.build,
            package: build.package,
            source: build.source,
            provenance,
            revoked: build.revoked,
            proof: self.proof(made.proof).await?,
        }))
    }

    /// Returns a use, or `None` when the job did not succeed with this attempt.
    async fn load_use(
        &self,
        used: UsedBy,
        installs: &mut BTreeMap<InstallId, Install>,
    ) -> Result<Option<Used>, AppError> {
        let job: Option<Stored<Job>> = load(&*self.store, &table::job_key(&used.proof.job)).await?;
        if job.is_some_and(|job| !has_succeeded(&job.value, used.proof.fence)) {
            return Ok(None);
        }
        let id = &used.proof.install;
        let install = match installs.get(id) {
            Some(known) => known.clone(),
            None => {
                let install = table::install(&*self.store, id).await?.value;
                installs.insert(id.clone(), install.clone());
                install
            }
        };
        // INVARIANT: components are only deployed to installs of apps.
        let app = install.require_app().map_err(|error| AppError::internal(error.to_string()))?.clone();
        Ok(Some(Used {
            app,
            component: used.component,
            account: install.account,
            build: used.build,
            workflow: used.workflow,
            approval: Approval::NoneRequired,
            disabled: install.disabled,
            proof: self.proof(used.proof).await?,
        }))
    }

    async fn proof(&self, record: ProofRecord) -> Result<Proof, AppError> {
        let store = &*self.store;
        let order = evidence::kept(store, &evidence::order_key(&record.job, record.fence.dispatch)).await?;
        let hello = evidence::kept(store, &evidence::hello_key(&record.install, &record.runner)).await?;
        Ok(Proof {
            install: record.install,
            job: record.job,
            fence: record.fence,
            runner: record.runner,
            at: record.at,
            order: order.map(|order| order.signed().envelope()),
            report: Some(record.report.envelope()),
            hello: hello.map(|hello| hello.signed().envelope()),
        })
    }
}

/// Returns the prefix of the sort keys of the uses: of all installs, or of one install. A name never contains `#`, so
/// the prefix of one install matches no other install.
fn uses_prefix(install: Option<&InstallId>) -> String {
    let prefix = List::Uses.prefix();
    install.map_or_else(|| prefix.to_owned(), |install| format!("{prefix}{install}#"))
}

fn check_place(prefix: &str, install: Option<&InstallId>, after: Option<&str>) -> Result<(), AppError> {
    match (install, after) {
        (Some(install), Some(after)) if !after.starts_with(prefix) => Err(AppError::invalid(format!(
            "`after` is not a place in the uses of install `{install}`; pass the `next` of the previous page of the same \
             install"
        ))),
        (_, _) => Ok(()),
    }
}

fn nothing_known(artifact: &Digest, install: Option<&InstallId>) -> AppError {
    AppError::not_found(match install {
        Some(install) => format!(
            "artifact `{artifact}` was not deployed to install `{install}`; `freehold install show {install}` shows \
             what is deployed there"
        ),
        None => {
            format!(
                "artifact `{artifact}` is unknown in this tenant; `freehold install show` and `freehold build` show \
                 digests"
            )
        }
    })
}

/// Returns whether the job succeeded with the attempt `fence`.
fn has_succeeded(job: &Job, fence: Fence) -> bool {
    matches!(&job.state, JobState::Succeeded { fence: accepted, .. } if *accepted == fence)
}
