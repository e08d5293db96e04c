//! An issuer and its client: begins a sign-in, exchanges its code for tokens, renews them and revokes them.

use reqwest::ClientBuilder;
use tokio::sync::Mutex;
use url::Url;

use crate::attempt::{Attempt, Begun};
use crate::discovery::Document;
use crate::error::{Error, IdTokenError};
use crate::http::{Answer, Http};
use crate::identity::{Expected, identity};
use crate::keys::Keys;
use crate::secret::Secret;
use crate::tokens::{Identity, TokenAnswer, Tokens};

/// Which issuer to use, and as which client.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The issuer exactly as its tokens name it.
    pub issuer: String,
    /// The id of the public client, which has no secret.
    pub client_id: String,
    /// The server that the document of the issuer is read from, if that is not the issuer itself:
    /// [`discovery_base`](crate::discovery_base).
    pub discovery_base: Option<Url>,
}

/// An issuer whose document has been read.
#[derive(Debug)]
pub struct Issuer {
    pub(crate) http: Http,
    pub(crate) settings: Settings,
    pub(crate) document: Document,
    /// The keys, once a token had to be checked.
    keys: Mutex<Option<Keys>>,
}

impl Issuer {
    /// Reads the document of an issuer. `builder` decides TLS, proxies and names; redirects are not followed.
    ///
    /// # Errors
    /// Address, Http, OtherIssuer, Endpoint, and the errors of a request.
    pub async fn discover(builder: ClientBuilder, settings: Settings) -> Result<Self, Error> {
        let http = Http::new(builder)?;
        let document = Document::read(&http, &settings.issuer, settings.discovery_base.as_ref()).await?;
        Ok(Self { http, settings, document, keys: Mutex::new(None) })
    }

    /// Returns the settings that this issuer was found with.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the origin of the page that [`Issuer::begin`] opens, such as `https://login.example.com`.
    pub fn origin(&self) -> String {
        self.document.authorization.origin().ascii_serialization()
    }

    /// Returns the scopes to ask for: the identity, the mail address, and a refresh token where the issuer has a scope
    /// for it.
    pub fn scopes(&self) -> String {
        let offline = self.document.scopes.iter().any(|scope| scope == "offline_access");
        if offline { "openid email offline_access".to_owned() } else { "openid email".to_owned() }
    }

    /// Begins a sign-in after which the browser returns to `redirect`.
    ///
    /// # Errors
    /// Random.
    pub fn begin(&self, redirect: &Url) -> Result<Begun, Error> {
        let attempt = Attempt::new(redirect)?;
        let (scopes, challenge) = (self.scopes(), attempt.challenge());
        let mut url = self.document.authorization.clone();
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", self.settings.client_id.as_str()),
            ("redirect_uri", attempt.redirect.as_str()),
            ("scope", scopes.as_str()),
            ("state", attempt.state.expose()),
            ("nonce", attempt.nonce.expose()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ]);
        Ok(Begun { url, attempt })
    }

    /// Ends a sign-in: checks the query that the browser returned with, exchanges its code, and checks the identity
    /// token.
    ///
    /// # Errors
    /// State, NoCode, Refused, OtherIssuer, NoIdToken, IdToken, and the errors of a request.
    pub async fn finish(&self, attempt: &Attempt, query: &str) -> Result<Tokens, Error> {
        let code = attempt.code(query, &self.settings.issuer)?;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", attempt.redirect.as_str()),
            ("client_id", self.settings.client_id.as_str()),
            ("code_verifier", attempt.verifier.expose()),
        ];
        let answer = self.http.post(&self.document.token, &form).await?;
        self.tokens(answer, Some(attempt.nonce.expose())).await
    }

    /// Renews tokens. The result has the newest refresh token: the one before may be refused from then on.
    ///
    /// # Errors
    /// Expired, Ended, OtherSubject, IdToken, and the errors of a request.
    pub async fn refresh(&self, tokens: &Tokens) -> Result<Tokens, Error> {
        let refresh = tokens.refresh.as_ref().ok_or(Error::Expired)?;
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
            ("client_id", self.settings.client_id.as_str()),
        ];
        let answer: TokenAnswer = match self.http.post(&self.document.token, &form).await?.read() {
            Err(Error::Refused(refusal)) if refusal.code == "invalid_grant" => return Err(Error::Ended),
            answer => answer?,
        };
        self.must_be_bearer(&answer)?;
        let expires_at = answer.expires_at();
        let identity = match &answer.id_token {
            Some(token) => self.identity(token, None).await?,
            None => tokens.identity.clone(),
        };
        if identity.subject != tokens.identity.subject {
            return Err(Error::OtherSubject);
        }
        let refresh = answer.refresh_token.or_else(|| tokens.refresh.clone());
        Ok(Tokens { access: answer.access_token, refresh, expires_at, identity })
    }

    /// Revokes the refresh token (RFC 7009), and with it the access tokens that the issuer can revoke. Returns whether
    /// the issuer offers this.
    ///
    /// # Errors
    /// Refused, and the errors of a request.
    pub async fn revoke(&self, tokens: &Tokens) -> Result<bool, Error> {
        let (Some(url), Some(refresh)) = (&self.document.revocation, &tokens.refresh) else { return Ok(false) };
        let form = [
            ("token", refresh.expose()),
            ("token_type_hint", "refresh_token"),
            ("client_id", self.settings.client_id.as_str()),
        ];
        self.http.post(url, &form).await?.refusal().map_or(Ok(true), Err)
    }

    /// Returns the tokens of a sign-in.
    pub(crate) async fn tokens(&self, answer: Answer, nonce: Option<&str>) -> Result<Tokens, Error> {
        let answer: TokenAnswer = answer.read()?;
        self.must_be_bearer(&answer)?;
        let expires_at = answer.expires_at();
        let identity = self.identity(answer.id_token.as_ref().ok_or(Error::NoIdToken)?, nonce).await?;
        Ok(Tokens { access: answer.access_token, refresh: answer.refresh_token, expires_at, identity })
    }

    fn must_be_bearer(&self, answer: &TokenAnswer) -> Result<(), Error> {
        if answer.is_bearer() {
            return Ok(());
        }
        let reason = "its tokens are not bearer tokens".to_owned();
        Err(Error::Unreadable { address: self.document.token.to_string(), reason })
    }

    /// Checks an identity token. Reads the keys again when none of the known ones signed it, because issuers change
    /// their keys.
    async fn identity(&self, token: &Secret, nonce: Option<&str>) -> Result<Identity, Error> {
        let Settings { issuer, client_id, .. } = &self.settings;
        let expected = Expected { issuer, client: client_id, nonce };
        let mut known = self.keys.lock().await;
        if let Some(keys) = known.as_ref() {
            match identity(token.expose(), keys, expected) {
                Err(IdTokenError::Key) => {}
                checked => return checked.map_err(Error::IdToken),
            }
        }
        let keys = Keys::read(&self.http, &self.document.keys).await?;
        let checked = identity(token.expose(), &keys, expected).map_err(Error::IdToken);
        *known = Some(keys);
        checked
    }
}
