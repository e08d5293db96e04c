//! `freehold logout`: ends logins, at the issuer and on this machine.

use clap::Args;
use freehold_sign_in::{Issuer, Login, Store};
use serde::Serialize;

use crate::bearer::logins;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::note;

/// End a login: the issuer revokes it, and its file is removed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold logout --tenant acme
  freehold logout --everywhere

The file is removed also when the issuer cannot be asked. An access token that was already made stays valid until it
expires, within an hour by default. The session of your browser at the issuer is not ended.")]
pub(crate) struct Logout {
    /// End your logins at all tenants on this machine.
    #[arg(long)]
    everywhere: bool,
}

/// A login that was ended.
#[derive(Debug, Serialize)]
struct Ended {
    api: String,
    /// Whether the issuer revoked it.
    is_revoked: bool,
}

impl Logout {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let store = logins::required_store()?;
        let profile = context.profile()?;
        let logins = if self.everywhere {
            store.all()?
        } else {
            if profile.api.is_none() {
                profile.tenant()?;
            }
            logins::find(&store, &profile)?.into_iter().collect()
        };
        let mut ended = Vec::new();
        for login in logins {
            ended.extend(end(&store, &login).await?);
        }
        context.out.show(&ended, |ended| text(ended))
    }
}

/// Ends a login. Its file is removed first, so that no other command renews it afterwards.
async fn end(store: &Store, login: &Login) -> Result<Option<Ended>> {
    let Some(newest) = store.remove(&login.api).await? else { return Ok(None) };
    let is_revoked = match revoke(&newest).await {
        Ok(is_revoked) => is_revoked,
        Err(error) => {
            note(&format!("the issuer did not revoke the login at {}: {error}", newest.api));
            false
        }
    };
    Ok(Some(Ended { api: newest.api, is_revoked }))
}

async fn revoke(login: &Login) -> Result<bool, Error> {
    let endpoint = std::env::var("AWS_ENDPOINT_URL").ok();
    let issuer = Issuer::discover(crate::api::http_builder(), login.settings(endpoint.as_deref())).await?;
    Ok(issuer.revoke(&login.tokens).await?)
}

fn text(ended: &[Ended]) -> String {
    if ended.is_empty() {
        return "there is no login".to_owned();
    }
    let line = |ended: &Ended| {
        let more = if ended.is_revoked { "" } else { "; the issuer did not revoke it" };
        format!("signed out at {}{more}", ended.api)
    };
    ended.iter().map(line).collect::<Vec<_>>().join("\n")
}
