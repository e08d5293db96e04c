//! `freehold tenant source`: stores, lists and removes the credentials of private sources. Only the build runner reads
//! them.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata as _;
use aws_sdk_secretsmanager::types::{Filter, FilterNameStringType, SecretListEntry, Tag};
use clap::{Args, Subcommand};
use freehold_protocol::source::{Hidden, MAX_CREDENTIAL_BYTES, Scheme, SourceAddress, SourceCredential};
use freehold_protocol::{Arn, TenantName};
use serde::Serialize;
use serde_json::json;
use zeroize::Zeroizing;

use super::names::TENANT_TAG;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::file;
use crate::output::{Table, time};

/// The policy of each secret of a source.
const POLICY: &str = include_str!("../../../infra/source-policy.json");

/// Store, list and remove the credentials with which the build runner reads private Git servers and registries.
#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    Add(Add),
    List(List),
    Remove(Remove),
}

/// Store the credential for an address of private sources; it replaces the credential that this address already has.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold tenant source add https://github.com/acme --file token.txt
  pass git/token | freehold tenant source add https://git.corp.example/team --user bot --inside
  freehold tenant source add ssh://git.corp.example --file id_ed25519 --host-keys keys.txt
  freehold tenant source add oci://ghcr.io/acme --user bot --file token.txt

The credential applies to this address and everything below it; if several addresses match a source, the longest one
applies. A credential is never given to another host. Secrets Manager stores the credential as `fh-<tenant>/source/...`,
with a policy that lets only the build runner's role read it. The next build uses the credential.")]
pub(crate) struct Add {
    /// `https://HOST/PATH` or `ssh://HOST/PATH` for Git, `oci://HOST/PATH` for a registry; the path may be left out.
    #[arg(value_name = "ADDRESS")]
    address: SourceAddress,
    /// File with the token, the private key or the password; stdin when absent or `-`.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// User name of the credential. A registry needs a user name. For Git, leave it out unless the host checks it: the
    /// default is `git` for SSH, and `x-access-token` for HTTPS.
    #[arg(long)]
    user: Option<String>,
    /// File with the public keys that the SSH server may have, one in each line, as `ssh-keyscan` prints them.
    #[arg(long, value_name = "FILE")]
    host_keys: Option<PathBuf>,
    /// Host whose token service may receive the password, besides the registry itself; may be repeated.
    #[arg(long = "token-host", value_name = "HOST")]
    token_hosts: Vec<String>,
    /// Allow the Git server to have an address in a private network.
    #[arg(long)]
    inside: bool,
    /// Name of the tenant; the same as `--tenant`.
    #[arg(long)]
    name: Option<TenantName>,
}

/// List the addresses for which a credential is stored, and when each was stored and last read.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold tenant source list")]
pub(crate) struct List {
    /// Name of the tenant; the same as `--tenant`.
    #[arg(long)]
    name: Option<TenantName>,
}

/// Remove the credential of a source; builds that need it then fail.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold tenant source remove https://github.com/acme")]
pub(crate) struct Remove {
    /// The address, as `freehold tenant source list` prints it.
    #[arg(value_name = "ADDRESS")]
    address: SourceAddress,
    /// Name of the tenant; the same as `--tenant`.
    #[arg(long)]
    name: Option<TenantName>,
}

impl SourceCommand {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Add(args) => args.run(context).await,
            Self::List(args) => args.run(context).await,
            Self::Remove(args) => args.run(context).await,
        }
    }
}

impl Add {
    async fn run(self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let address = self.address.clone();
        let credential = self.credential()?;
        let config = context.config().await?;
        let name = store(&config, &tenant, &address, &credential).await?;
        let value = json!({ "address": address.to_string(), "secret": name, "kind": credential.describe() });
        context.out.show(&value, |_| {
            format!("the {} of `{address}` is stored as secret `{name}`; the next build uses it", credential.describe())
        })
    }

    /// Returns the credential, from the options and the file or stdin.
    fn credential(self) -> Result<SourceCredential> {
        let scheme = self.address.scheme();
        self.check_options(scheme)?;
        let text = self.read()?;
        let inside = self.inside;
        let credential = match (scheme, self.user) {
            (Scheme::Https, user) => SourceCredential::GitToken {
                user: user.unwrap_or_else(|| SourceCredential::TOKEN_USER.to_owned()),
                token: Hidden::new(text.trim()),
                inside,
            },
            (Scheme::Ssh, user) => SourceCredential::SshKey {
                user: user.unwrap_or_else(|| SourceCredential::SSH_USER.to_owned()),
                private_key: Hidden::new(text.trim()),
                host_keys: host_keys(self.host_keys.as_deref())?,
                inside,
            },
            (Scheme::Oci, Some(user)) => SourceCredential::RegistryLogin {
                user,
                password: Hidden::new(text.trim()),
                token_hosts: self.token_hosts,
            },
            (Scheme::Oci, None) => {
                return Err(Error::invalid("the login of a registry has a user and a password; pass `--user USER`"));
            }
        };
        let address = &self.address;
        credential
            .check(scheme)
            .map_err(|e| Error::invalid(format!("the credential of `{address}` is refused: {e}")))?;
        Ok(credential)
    }

    fn check_options(&self, scheme: Scheme) -> Result<()> {
        let unfit = |option: &str, scheme: &str| {
            Err(Error::invalid(format!(
                "`{option}` is for `{scheme}` addresses only; leave it out for `{}`",
                self.address
            )))
        };
        match scheme {
            Scheme::Https | Scheme::Oci if self.host_keys.is_some() => unfit("--host-keys", "ssh://"),
            Scheme::Https | Scheme::Ssh if !self.token_hosts.is_empty() => unfit("--token-host", "oci://"),
            Scheme::Oci if self.inside => unfit("--inside", "https:// and ssh://"),
            Scheme::Https | Scheme::Ssh | Scheme::Oci => Ok(()),
        }
    }

    fn read(&self) -> Result<Zeroizing<String>> {
        const OTHER_FILE: &str = "pass the file with the token, the private key or the password as `--file FILE`";
        let most = u64::try_from(MAX_CREDENTIAL_BYTES).unwrap_or(u64::MAX);
        let mut text = Zeroizing::new(String::new());
        let read = match self.file.as_ref().filter(|path| path.as_os_str() != "-") {
            Some(path) => return file::read_text_at_most(path, most, OTHER_FILE).map(Zeroizing::new),
            // A terminal would show the typed secret.
            None if std::io::stdin().is_terminal() => Err(Error::invalid(
                "this command reads the credential from stdin, which is a terminal; pipe it in, or pass `--file FILE`",
            )),
            None => {
                std::io::stdin().lock().take(most).read_to_string(&mut text).doing("read the credential from stdin")
            }
        };
        read.map(|_| text)
    }
}

/// Returns the keys in a file. Each line has a key type and a key; the host before them, which `ssh-keyscan` prints, is
/// left out.
fn host_keys(path: Option<&Path>) -> Result<Vec<String>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = crate::file::read_text(path, "pass the file that `ssh-keyscan HOST` wrote")?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let key = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, kind, key] | [kind, key] => format!("{kind} {key}"),
            _ => line.to_owned(),
        }
    };
    Ok(lines.map(key).collect())
}

/// Stores `credential` as the secret of `address`. The policy is set before the value is stored.
async fn store(
    config: &SdkConfig,
    tenant: &TenantName,
    address: &SourceAddress,
    credential: &SourceCredential,
) -> Result<String> {
    let document = serde_json::to_string(credential).map(Zeroizing::new);
    let document = document.map_err(|e| Error::internal(format!("cannot write the credential: {e}")))?;
    let policy = policy(config, tenant).await?;
    let (client, name) = (Client::new(config), address.secret_name(tenant));
    let tag = Tag::builder().key(TENANT_TAG).value(tenant.as_str()).build();
    let create = client.create_secret().name(&name).tags(tag);
    match create.description(format!("Freehold tenant {tenant}: reads {address}")).send().await {
        Ok(_) => {}
        Err(error) if error.code() == Some("ResourceExistsException") => {}
        Err(error) => drop(Err::<(), _>(error).doing(format!("make secret `{name}`"))?),
    }
    let limit = client.put_resource_policy().secret_id(&name).resource_policy(policy);
    limit.send().await.doing(format!("set the policy of secret `{name}`"))?;
    let put = client.put_secret_value().secret_id(&name).secret_string(document.as_str());
    put.send().await.doing(format!("store secret `{name}`"))?;
    Ok(name)
}

/// Returns the policy by which only the build runner's role reads a secret.
async fn policy(config: &SdkConfig, tenant: &TenantName) -> Result<String> {
    let caller = crate::aws::caller(config).await?;
    let partition = Arn::parse(&caller.arn).map_or("aws", |arn| arn.partition);
    Ok(filled(partition, caller.account.as_str(), tenant))
}

fn filled(partition: &str, account: &str, tenant: &TenantName) -> String {
    let values = [("%{PARTITION}", partition), ("%{ACCOUNT}", account), ("%{TENANT}", tenant.as_str())];
    values.into_iter().fold(POLICY.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// A stored source.
#[derive(Debug, Serialize)]
struct Listed {
    address: String,
    secret: String,
    stored_at_millis: Option<i64>,
    /// Secrets Manager records only the day, not the time.
    last_read_at_millis: Option<i64>,
}

impl List {
    async fn run(self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let config = context.config().await?;
        let all: Vec<Listed> =
            list_stored(&config, &tenant).await?.into_iter().map(|(address, entry)| listed(&address, &entry)).collect();
        context.out.show(&all, |all| {
            if all.is_empty() {
                return format!(
                    "tenant `{tenant}` has no credential of a source; store one with `freehold tenant source add`"
                );
            }
            let mut table = Table::new(&["ADDRESS", "STORED", "LAST READ"]);
            for one in all {
                table.row([one.address.clone(), shown(one.stored_at_millis), shown(one.last_read_at_millis)]);
            }
            context.out.table(&table)
        })
    }
}

fn listed(address: &SourceAddress, entry: &SecretListEntry) -> Listed {
    let millis = |at: Option<&aws_sdk_secretsmanager::primitives::DateTime>| at.and_then(|at| at.to_millis().ok());
    Listed {
        address: address.to_string(),
        secret: entry.name().unwrap_or_default().to_owned(),
        stored_at_millis: millis(entry.last_changed_date()),
        last_read_at_millis: millis(entry.last_accessed_date()),
    }
}

fn shown(millis: Option<i64>) -> String {
    let millis = millis.and_then(|millis| u64::try_from(millis).ok());
    millis.map_or_else(|| "-".to_owned(), |millis| time(freehold_protocol::Timestamp::from_millis(millis)))
}

/// Returns the stored sources of `tenant`, in the order of their addresses.
pub(super) async fn list_stored(
    config: &SdkConfig,
    tenant: &TenantName,
) -> Result<Vec<(SourceAddress, SecretListEntry)>> {
    let prefix = SourceAddress::secret_prefix(tenant);
    let by_name = Filter::builder().key(FilterNameStringType::Name).values(&prefix).build();
    let mut pages = Client::new(config).list_secrets().filters(by_name).into_paginator().send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.doing("list secrets")?;
        found.extend(
            page.secret_list()
                .iter()
                .filter_map(|entry| Some((SourceAddress::of_secret(tenant, entry.name()?)?, entry.clone()))),
        );
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

impl Remove {
    async fn run(self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let config = context.config().await?;
        let (address, name) = (&self.address, self.address.secret_name(&tenant));
        if !delete(&config, &name).await? {
            return Err(Error::not_found(format!(
                "no credential of `{address}` is stored; `freehold tenant source list` prints all addresses"
            )));
        }
        let value = json!({ "address": address.to_string(), "secret": name });
        context.out.show(&value, |_| {
            format!("the credential of `{address}` is removed; revoke it at its server too, if it is still valid there")
        })
    }
}

/// Deletes the secret `name` at once. Returns false if the secret does not exist.
pub(super) async fn delete(config: &SdkConfig, name: &str) -> Result<bool> {
    let client = Client::new(config);
    // With `force_delete_without_recovery`, Secrets Manager reports success for a secret that does not exist.
    match client.describe_secret().secret_id(name).send().await {
        Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => {
            return Ok(false);
        }
        found => drop(found.doing(format!("look up secret `{name}`"))?),
    }
    match client.delete_secret().secret_id(name).force_delete_without_recovery(true).send().await {
        Ok(_) => Ok(true),
        Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => Ok(false),
        Err(error) => Err(error).doing(format!("delete secret `{name}`")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    const CANARY: &str = "canary-of-a-token";

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        add: Add,
    }

    fn credential(words: &[&str], contents: &str) -> Result<SourceCredential> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("credential");
        std::fs::write(&file, contents).unwrap();
        let words = ["add"].iter().chain(words).chain(&["--file", file.to_str().unwrap()]).copied().collect::<Vec<_>>();
        Line::try_parse_from(words).unwrap().add.credential()
    }

    #[test]
    fn the_address_decides_which_credential_the_file_holds() {
        let token = credential(&["https://github.com/acme"], &format!("{CANARY}\n")).unwrap();
        let login = credential(&["oci://ghcr.io/acme", "--user", "bot"], CANARY).unwrap();

        assert_eq!((token.describe(), token.hidden()), ("token for Git over HTTPS", [CANARY]));
        assert_eq!((login.describe(), login.hidden()), ("login of a registry", [CANARY]));
    }

    #[test]
    fn a_refused_credential_is_not_shown() {
        let cases = [
            (&["ssh://git.corp.example"][..], "not in PEM form"),
            (&["oci://ghcr.io/acme"], "pass `--user USER`"),
            (&["oci://ghcr.io/acme", "--user", "bot", "--inside"], "`--inside` is for"),
            (&["https://github.com", "--token-host", "sso.example"], "`--token-host` is for"),
            (&["https://github.com", "--host-keys", "x"], "`--host-keys` is for"),
            (&["https://github.com", "--user", "a b"], "the user is empty, or contains"),
        ];
        for (words, message) in cases {
            let error = credential(words, CANARY).unwrap_err().to_string();

            assert!(error.contains(message) && !error.contains(CANARY), "{error}");
        }
        assert!(credential(&["https://github.com"], "\n").unwrap_err().to_string().contains("the token is empty"));
    }

    #[test]
    fn the_keys_of_a_server_are_read_as_ssh_keyscan_prints_them() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("keys");
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
        std::fs::write(&file, format!("# git.corp.example:22 SSH-2.0\n\ngit.corp.example {key}\n{key}\n")).unwrap();

        assert_eq!(host_keys(Some(&file)).unwrap(), [key, key]);
        let words = ["ssh://git.corp.example", "--host-keys", file.to_str().unwrap()];
        let read = credential(&words, "-----BEGIN OPENSSH PRIVATE KEY-----\n").unwrap();
        assert!(matches!(read, SourceCredential::SshKey { host_keys, .. } if host_keys == [key, key]));
    }

    #[test]
    fn the_policy_denies_a_secret_to_everybody_but_the_build_runner() {
        let policy: serde_json::Value =
            serde_json::from_str(&filled("aws", "111111111111", &"acme".parse().unwrap())).unwrap();

        let statement = &policy["Statement"][0];
        assert_eq!(
            (&statement["Effect"], &statement["Action"]),
            (&json!("Deny"), &json!("secretsmanager:GetSecretValue"))
        );
        assert_eq!(
            statement["Condition"],
            json!({ "ArnNotEquals": { "aws:PrincipalArn": "arn:aws:iam::111111111111:role/fh-acme--build-runner" } })
        );
    }
}
