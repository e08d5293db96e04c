//! Where a person signs in, and for which API: from the options, the last login, or the tenant's stack.

use freehold_protocol::TenantName;
use freehold_sign_in::{Login, Settings, Store, Tokens, discovery_base};
use url::Url;

use crate::api::{PEOPLE_CLIENT_ID, PEOPLE_ISSUER, Profile, api_url_of, tenant_stack};
use crate::bearer::logins;
use crate::context::Context;
use crate::error::{Error, Result};

/// An API, and the issuer whose tokens it takes.
#[derive(Debug)]
pub(super) struct Target {
    api: Url,
    tenant: Option<TenantName>,
    issuer: String,
    client_id: String,
}

impl Target {
    /// Returns the target of a login. `given` are the issuer and the client of the options.
    pub(super) async fn find(context: &Context, store: &Store, given: Option<(String, String)>) -> Result<Self> {
        let profile = context.profile()?;
        let Profile { api, tenant, .. } = &profile;
        if let (Some((issuer, client_id)), Some(api)) = (&given, api) {
            let (issuer, client_id) = (issuer.clone(), client_id.clone());
            return Ok(Self { api: api.clone(), tenant: tenant.clone(), issuer, client_id });
        }
        if let (None, Some(login)) = (&given, logins::find(store, &profile)?) {
            let api = logins::api_of(&login)?;
            let tenant = tenant.clone().or(login.tenant);
            return Ok(Self { api, tenant, issuer: login.issuer, client_id: login.client_id });
        }
        if api.is_some() && tenant.is_none() {
            return Err(Error::invalid("the issuer of this API is not known, because there is no login for it yet")
                .or("pass `--issuer URL` and `--client-id ID` too, or `--tenant NAME`, whose stack names both"));
        }
        let tenant = profile.tenant()?.clone();
        let stack = tenant_stack(&context.config().await?, &tenant).await?;
        let (issuer, client_id) = match given {
            Some(given) => given,
            None => (stack.output(PEOPLE_ISSUER)?.to_owned(), stack.output(PEOPLE_CLIENT_ID)?.to_owned()),
        };
        let api = api.clone().map_or_else(|| api_url_of(&stack), Ok)?;
        Ok(Self { api, tenant: Some(tenant), issuer, client_id })
    }

    /// Returns the settings of the issuer.
    pub(super) fn settings(&self) -> Settings {
        let endpoint = std::env::var("AWS_ENDPOINT_URL").ok();
        Settings {
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            discovery_base: discovery_base(&self.issuer, endpoint.as_deref()),
        }
    }

    /// Returns the login with these tokens.
    pub(super) fn login(self, tokens: Tokens) -> Login {
        let Self { api, tenant, issuer, client_id } = self;
        Login { api: api.to_string(), tenant, issuer, client_id, tokens }
    }
}
