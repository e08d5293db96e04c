//! `freehold login` and `freehold logout`: sign a person in at the issuer of a tenant, so that commands call the API
//! without AWS credentials.

mod browser;
mod device;
mod logout;
mod loopback;
mod paste;
mod target;

use clap::Args;
use freehold_protocol::Timestamp;
use freehold_sign_in::{Issuer, Login as Kept, Tokens};
use serde::Serialize;

pub(crate) use logout::Logout;

use crate::bearer::logins;
use crate::context::Context;
use crate::error::Result;
use crate::output::time;
use target::Target;

/// Sign in as a person. Commands then call the tenant API with your own token, and need no AWS credentials for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold login --tenant acme
  freehold login --tenant acme --no-browser
  freehold login --tenant acme --api https://abc.execute-api.eu-west-1.amazonaws.com \\
      --issuer https://id.example.com --client-id 2f3c

The first example reads the issuer from the tenant's stack, and needs AWS credentials that may read it. The last one
needs none: ask somebody who has them for the three values, which are the outputs ApiUrl, PeopleIssuer and
PeopleClientId in `freehold tenant status`. Whoever is not a member yet then runs `freehold member accept CODE`.

The login is in a file that only you can read, below $XDG_STATE_HOME/freehold or ~/.local/state/freehold. It is renewed
until the issuer ends it; `freehold logout` ends it. `--as-aws` makes a command use AWS credentials nevertheless. A
pipeline does not sign in: it sets FREEHOLD_PIPELINE_TOKEN or FREEHOLD_PIPELINE_TOKEN_FILE.")]
pub(crate) struct Login {
    /// Issuer of people's tokens; by default that of the last login, or else that of the tenant's stack.
    #[arg(long, value_name = "URL", requires = "client_id")]
    issuer: Option<String>,
    /// Client of the issuer that the command is.
    #[arg(long, value_name = "ID", requires = "issuer")]
    client_id: Option<String>,
    /// Open no browser: print the address of the page, and read from stdin the address at which the browser ends.
    #[arg(long, conflicts_with = "device")]
    no_browser: bool,
    /// Print a code to enter on another device, if the issuer has such codes; user pools of Cognito do not.
    #[arg(long)]
    device: bool,
}

impl Login {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let store = logins::required_store()?;
        let given = self.issuer.clone().zip(self.client_id.clone());
        let target = Target::find(context, &store, given).await?;
        let issuer = Issuer::discover(crate::api::http_builder(), target.settings()).await?;
        let tokens = self.tokens(&issuer).await?;
        let login = target.login(tokens);
        store.save(&login).await?;
        context.out.show(&LoginView::of(&login), LoginView::text)
    }

    async fn tokens(&self, issuer: &Issuer) -> Result<Tokens> {
        if self.device {
            device::sign_in(issuer).await
        } else if self.no_browser {
            paste::sign_in(issuer).await
        } else {
            browser::sign_in(issuer).await
        }
    }
}

/// A login without its tokens.
#[derive(Debug, Serialize)]
struct LoginView<'a> {
    api: &'a str,
    issuer: &'a str,
    subject: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
    /// The end of the access token, which the next command renews.
    expires_at: Timestamp,
    is_renewable: bool,
}

impl<'a> LoginView<'a> {
    fn of(login: &'a Kept) -> Self {
        let Tokens { refresh, expires_at, identity, .. } = &login.tokens;
        Self {
            api: &login.api,
            issuer: &login.issuer,
            subject: &identity.subject,
            email: identity.email.as_deref(),
            expires_at: *expires_at,
            is_renewable: refresh.is_some(),
        }
    }

    fn text(&self) -> String {
        let name = self.email.map_or_else(String::new, |email| format!("{email}, "));
        let end = if self.is_renewable {
            "the login lasts until the issuer or `freehold logout` ends it".to_owned()
        } else {
            format!("the login ends at {}, because the issuer gave no refresh token", time(self.expires_at))
        };
        format!("signed in at {} as {name}subject `{}`\n{end}", self.api, self.subject)
    }
}
