//! The terms that customers accept. They are stored by digest, so that the terms that an install accepted can be
//! compared with the terms of a release. The control plane compares them only to report a problem early; the runner
//! decides.

use freehold_domain::contacted_hosts;
use freehold_domain::contract::{self as made, ConsentError};
use freehold_domain::install::Install;
use freehold_domain::workflow::{Node, NodeState, Target};
use freehold_permissions::{OrderedCommands, TermsDiff, compare_terms_for};
use freehold_protocol::api::ContractView;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::contract::{OrderTerms, PackedTerms, Terms, TermsChange};
use freehold_protocol::limits::{MAX_ORDER_TERMS_BYTES, MAX_TERMS_BYTES};
use freehold_protocol::{AppName, Digest, canonical};

use crate::AppError;
use crate::app_version::builds::builds_of;
use crate::app_version::versions::{Version, Versions};
use crate::ports::{Committed, Expect, Store};
use crate::table::{TermsRecord, known_terms, put, signed_contract};

/// Returns the digest of the terms of `version`. The install stack shows the digest to the customer for consent.
///
/// # Errors
/// Invalid for terms that are too large to be signed.
pub fn digest(version: &AppVersion) -> Result<Digest, AppError> {
    Ok(Digest::of(&bytes(version)?))
}

fn bytes(version: &AppVersion) -> Result<Vec<u8>, AppError> {
    bytes_of(&made::terms(version))
}

fn bytes_of(terms: &Terms) -> Result<Vec<u8>, AppError> {
    let bytes = canonical::to_vec(terms)?;
    if bytes.len() > MAX_TERMS_BYTES {
        return Err(AppError::invalid(format!(
            "the terms of app `{}` have {} bytes, more than the {MAX_TERMS_BYTES} that a contract \
             holds; shorten the policies of its roles",
            terms.app,
            bytes.len()
        )));
    }
    Ok(bytes)
}

/// Stores the terms of `version`, so that they can be read when a customer accepts their digest; returns the digest.
///
/// # Errors
/// The errors of [`digest`], or the store's errors.
pub async fn keep(store: &dyn Store, version: &AppVersion) -> Result<Digest, AppError> {
    let bytes = bytes(version)?;
    let digest = Digest::of(&bytes);
    let terms = String::from_utf8(bytes).map_err(|_| AppError::internal("terms are not UTF-8 text"))?;
    let record = TermsRecord { app: version.app.clone(), digest: digest.clone(), terms };
    match store.commit(vec![put(&record, Expect::Absent)?]).await? {
        // A conflict means that the same terms are stored already.
        Committed::Done | Committed::Conflict(_) => Ok(digest),
    }
}

/// Returns terms by their digest.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn show_terms(store: &dyn Store, app: &AppName, digest: &Digest) -> Result<Terms, AppError> {
    let found = known_terms(store, app, digest).await?.ok_or_else(|| {
        AppError::not_found(format!(
            "no version of app `{app}` in this tenant has the terms `{digest}`; `freehold contract show {app}` shows \
             the terms of the latest version"
        ))
    })?;
    Ok(serde_json::from_str(&found.terms)?)
}

/// Returns the contract of a version, with the tenant's signature if the contract has been signed.
///
/// # Errors
/// NotFound, or the ports' errors.
pub async fn show_contract(versions: &Versions, app: &AppName, version: &Digest) -> Result<ContractView, AppError> {
    let store = &*versions.store;
    let found = versions.load(app, Some(version)).await?;
    let builds = builds_of(store, &found.document).await?;
    let contract = made::contract(&found.document, version, &builds)?;
    let signed = signed_contract(store, app, version).await?;
    Ok(ContractView {
        terms: contract.terms.digest()?,
        number: found.number,
        hosts: contacted_hosts::hosts(&found.document),
        // After an artifact was rebuilt, the signed contract differs from the current contract and is not shown.
        signed: signed.filter(|signed| signed.contract == contract).map(|signed| signed.envelope),
        contract,
    })
}

/// Checks that the customer of `install` accepted everything that `version` may do and all of `commands`, as far as the
/// control plane knows the accepted terms. The runner would refuse orders that go beyond them.
///
/// # Errors
/// Conflict with the difference, or the store's errors.
pub async fn check_accepted(
    versions: &Versions,
    install: &Install,
    version: &Version,
    commands: &[OrderedCommands<'_>],
) -> Result<(), AppError> {
    let Some(accepted) = &install.accepted_contract else { return Ok(()) };
    let document = &*version.document;
    if digest(document)? == *accepted {
        return Ok(());
    }
    let (id, accepted) = (install.id.clone(), accepted.clone());
    let Some(known) = known_terms(&*versions.store, &document.app, &accepted).await? else {
        return Err(ConsentError::UnknownTerms { install: id, accepted }.into());
    };
    let agreed: Terms = serde_json::from_str(&known.terms)?;
    let diff = compare_with_commands(&agreed, &made::terms(document), commands);
    if diff.widened.is_empty() {
        return Ok(());
    }
    let more = diff.summary();
    let latest = versions.load(&document.app, None).await?;
    let fits = compare_with_commands(&agreed, &made::terms(&latest.document), commands).widened.is_empty();
    if latest.version != version.version && fits {
        let (version, latest) = (version.number, latest.number);
        return Err(ConsentError::Older { install: id, accepted, version, latest, more }.into());
    }
    Err(ConsentError::Wider { install: id, accepted, more }.into())
}

/// Returns the differences that matter for orders that run `commands` and for orders that run no command.
fn compare_with_commands(agreed: &Terms, asked: &Terms, commands: &[OrderedCommands<'_>]) -> TermsDiff {
    let mut diff = compare_terms_for(agreed, asked, OrderedCommands::None);
    for commands in commands {
        for clause in compare_terms_for(agreed, asked, *commands).widened {
            if !diff.widened.contains(&clause) {
                diff.widened.push(clause);
            }
        }
    }
    diff
}

/// Returns the commands of the gates among the nodes that have not run. A deploy with a gate whose command the customer did
/// not accept would stop halfway.
pub(crate) fn commands_of_gates(nodes: &[Node]) -> Vec<OrderedCommands<'_>> {
    let gates = nodes.iter().filter_map(|node| match &node.target {
        Target::Health { component, gate: true, .. } if node.state == NodeState::Waiting => Some(component),
        _ => None,
    });
    gates.map(OrderedCommands::OfHealth).collect()
}

/// Returns the terms for an order that removes what `version` deployed. If the customer has agreed to other terms, the
/// returned terms leave out the schedules, the customer's inputs, the secrets and the probes of `version`. A later version
/// may have replaced them, and the runner would then refuse the order. A removal does not need them: it starts no action and
/// no probe, and it reads values that the accepted terms name.
///
/// # Errors
/// The store's errors.
pub async fn for_removal(store: &dyn Store, install: &Install, version: &AppVersion) -> Result<OrderTerms, AppError> {
    let terms = for_order(store, install, version).await?;
    if install.accepted_contract.as_ref().is_none_or(|accepted| *accepted == terms.digest) {
        return Ok(terms);
    }
    let mut terms = made::terms(version);
    terms.actions.iter_mut().for_each(|action| action.schedules.clear());
    terms.customer_inputs.clear();
    terms.secrets.clear();
    terms.probes.clear();
    pack_terms(store, install, &terms).await
}

/// Returns the terms for an order to `install`: their digest, and the packed change from the accepted terms. If the
/// accepted terms are the same or unknown, the order has the packed terms instead of a change. A packed text that is
/// too large is left out.
///
/// # Errors
/// The store's errors.
pub async fn for_order(store: &dyn Store, install: &Install, version: &AppVersion) -> Result<OrderTerms, AppError> {
    pack_terms(store, install, &made::terms(version)).await
}

async fn pack_terms(store: &dyn Store, install: &Install, terms: &Terms) -> Result<OrderTerms, AppError> {
    let asked = bytes_of(terms)?;
    let digest = Digest::of(&asked);
    let other = install.accepted_contract.as_ref().filter(|accepted| **accepted != digest);
    let known = match other {
        Some(accepted) => known_terms(store, &terms.app, accepted).await?,
        None => None,
    };
    let pack = |bytes: &[u8]| {
        PackedTerms::of(bytes).map_err(|error| AppError::internal(format!("could not compress terms: {error}")))
    };
    let Some(known) = known else {
        let document = Some(pack(&asked)?).filter(|packed| packed.len() <= MAX_ORDER_TERMS_BYTES);
        return Ok(OrderTerms { digest, change: None, document });
    };
    let change = TermsChange { accepted: pack(known.terms.as_bytes())?, asked: pack(&asked)? };
    let fits = change.accepted.len() + change.asked.len() <= MAX_ORDER_TERMS_BYTES;
    Ok(OrderTerms { digest, change: fits.then_some(change), document: None })
}
