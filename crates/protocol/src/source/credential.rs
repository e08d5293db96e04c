//! The credential of a private source, as Secrets Manager stores it: one JSON document.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use super::address::Scheme;

/// The largest document, in bytes (AWS Secrets Manager User Guide, "Secrets Manager quotas").
pub const MAX_CREDENTIAL_BYTES: usize = 65_536;

/// A text that is neither printed nor left in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(Zeroizing<String>);

impl Hidden {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the text, for the server that it is meant for.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// A credential that reads a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum SourceCredential {
    /// A user and a token for Git over HTTPS.
    GitToken {
        #[serde(default = "token_user")]
        user: String,
        token: Hidden,
        /// Whether the host may have an address of a private network.
        #[serde(default, skip_serializing_if = "is_false")]
        inside: bool,
    },
    /// A private key for Git over SSH, and the keys that the server may have.
    SshKey {
        #[serde(default = "ssh_user")]
        user: String,
        /// A private key without a passphrase, in a form that `ssh-add` reads.
        private_key: Hidden,
        /// The public keys of the server, one in each text: `ssh-ed25519 AAAA...`.
        host_keys: Vec<String>,
        /// Whether the host may have an address of a private network.
        #[serde(default, skip_serializing_if = "is_false")]
        inside: bool,
    },
    /// A user and a password of a registry.
    RegistryLogin {
        user: String,
        password: Hidden,
        /// The hosts, in addition to the registry itself, whose token service may receive the password.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        token_hosts: Vec<String>,
    },
}

/// The reason why a document is not the credential of a source. The reason contains no part of the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error("the document is not a credential; store it again with `freehold tenant source add`")]
    Malformed,
    #[error(
        "the credential is a {found}, which cannot be used for an address that begins with `{scheme}://`",
        scheme = .0.as_str(),
        found = .1
    )]
    OtherScheme(Scheme, &'static str),
    #[error("the {0} is empty, or contains a line break or another control character")]
    Text(&'static str),
    #[error("the private key is not in PEM form: it does not begin with `-----BEGIN`")]
    NotPem,
    #[error("no public key of the server is given; name a file with its public keys in `--host-keys`")]
    NoHostKey,
    #[error("`{0}` is not a public key of a server; expected `ssh-ed25519 AAAA...`")]
    HostKey(String),
}

fn token_user() -> String {
    SourceCredential::TOKEN_USER.to_owned()
}

fn ssh_user() -> String {
    SourceCredential::SSH_USER.to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl SourceCredential {
    /// The user of a token whose server ignores it, as GitHub and GitLab do.
    pub const TOKEN_USER: &str = "x-access-token";
    /// The user of Git servers over SSH.
    pub const SSH_USER: &str = "git";

    /// Parses a document for an address of `scheme`.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub fn parse(text: &str, scheme: Scheme) -> Result<Self, CredentialError> {
        let found: Self = serde_json::from_str(text).map_err(|_| CredentialError::Malformed)?;
        found.check(scheme)?;
        Ok(found)
    }

    /// Checks the credential, which is for an address of `scheme`.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub fn check(&self, scheme: Scheme) -> Result<(), CredentialError> {
        if self.scheme() != scheme {
            return Err(CredentialError::OtherScheme(scheme, self.describe()));
        }
        let plain = |name, text: &str| {
            let is_plain = !text.is_empty() && !text.chars().any(char::is_control);
            if is_plain { Ok(()) } else { Err(CredentialError::Text(name)) }
        };
        match self {
            Self::GitToken { user, token, inside: _ } => {
                check_user(user)?;
                plain("token", token.reveal())
            }
            Self::SshKey { user, private_key, host_keys, inside: _ } => {
                check_user(user)?;
                if !private_key.reveal().trim_start().starts_with("-----BEGIN ") {
                    return Err(CredentialError::NotPem);
                }
                if host_keys.is_empty() {
                    return Err(CredentialError::NoHostKey);
                }
                let wrong = host_keys.iter().find(|key| !is_host_key(key));
                wrong.map_or(Ok(()), |key| Err(CredentialError::HostKey(key.chars().take(100).collect())))
            }
            Self::RegistryLogin { user, password, token_hosts: _ } => {
                check_user(user)?;
                plain("password", password.reveal())
            }
        }
    }

    /// Returns the texts that no log may contain.
    pub fn hidden(&self) -> [&str; 1] {
        match self {
            Self::GitToken { token: hidden, .. }
            | Self::SshKey { private_key: hidden, .. }
            | Self::RegistryLogin { password: hidden, .. } => [hidden.reveal()],
        }
    }

    /// Returns the kind of credential in words.
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::GitToken { .. } => "token for Git over HTTPS",
            Self::SshKey { .. } => "key for Git over SSH",
            Self::RegistryLogin { .. } => "login of a registry",
        }
    }

    const fn scheme(&self) -> Scheme {
        match self {
            Self::GitToken { .. } => Scheme::Https,
            Self::SshKey { .. } => Scheme::Ssh,
            Self::RegistryLogin { .. } => Scheme::Oci,
        }
    }
}

/// A colon would end the user in a basic login (RFC 7617 section 2), and a dash would begin an option of `ssh`.
fn check_user(user: &str) -> Result<(), CredentialError> {
    let is_plain = !user.is_empty()
        && !user.starts_with('-')
        && !user.chars().any(|c| c.is_control() || c.is_whitespace() || matches!(c, ':' | '@'));
    if is_plain { Ok(()) } else { Err(CredentialError::Text("user")) }
}

/// Returns whether `text` is a type and a base64 text, as in a file of known hosts (sshd(8), "SSH_KNOWN_HOSTS FILE
/// FORMAT").
fn is_host_key(text: &str) -> bool {
    let mut words = text.split(' ');
    let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let plain = |text: &str, more: &[u8]| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    (kind.starts_with("ssh-") || kind.starts_with("ecdsa-") || kind.starts_with("sk-"))
        && plain(kind, b"-@.")
        && key.starts_with("AAAA")
        && plain(key, b"+/=")
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

    #[test]
    fn a_document_is_read_for_its_own_scheme_only() {
        let token = r#"{"type":"git_token","token":"canary-token"}"#;

        let read = SourceCredential::parse(token, Scheme::Https).unwrap();

        let SourceCredential::GitToken { user, inside, .. } = &read else { panic!("{read:?}") };
        assert_eq!((user.as_str(), *inside), ("x-access-token", false));
        assert_eq!(read.hidden(), ["canary-token"]);
        assert!(matches!(SourceCredential::parse(token, Scheme::Oci), Err(CredentialError::OtherScheme(..))));
    }

    #[test]
    fn neither_an_error_nor_a_print_shows_the_credential() {
        let documents = [
            r#"{"type":"git_token","token":"canary\n-token"}"#,
            r#"{"type":"git_token","token":"canary-token","user":"a:b"}"#,
            r#"{"type":"git_token","token":"canary-token","more":1}"#,
            r#"{"type":"ssh_key","private_key":"canary-key","host_keys":[]}"#,
            r#"{"type":"registry_login","user":"-o","password":"canary-word"}"#,
            "canary",
        ];
        for document in documents {
            for scheme in [Scheme::Https, Scheme::Ssh, Scheme::Oci] {
                let error = SourceCredential::parse(document, scheme).unwrap_err();
                assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
            }
        }
        let token = SourceCredential::GitToken { user: "u".into(), token: Hidden::new("canary"), inside: false };
        assert!(!format!("{token:?}").contains("canary"));
    }

    #[test]
    fn a_key_needs_the_keys_of_its_server() {
        let key = |host_keys: &[&str]| SourceCredential::SshKey {
            user: "git".into(),
            private_key: Hidden::new("-----BEGIN OPENSSH PRIVATE KEY-----\n"),
            host_keys: host_keys.iter().map(|key| (*key).to_owned()).collect(),
            inside: false,
        };

        assert_eq!(key(&[KEY]).check(Scheme::Ssh), Ok(()));
        assert_eq!(key(&[]).check(Scheme::Ssh), Err(CredentialError::NoHostKey));
        for wrong in ["ssh-ed25519", "* ssh-ed25519 AAAA", "@revoked * ssh-rsa AAAA", "ssh-rsa AAAA\n* ssh-rsa AAAA"] {
            assert!(matches!(key(&[wrong]).check(Scheme::Ssh), Err(CredentialError::HostKey(_))), "{wrong}");
        }
    }
}
