//! The kubeconfig for the programs of a job. It names a file with a token (`tokenFile`). The runner replaces the token
//! while the job runs, and Kubernetes clients read the file again every minute (client-go). So the box does not need a
//! program that makes tokens, and a token is never in an argument or in the environment.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use super::cluster::Cluster;
use super::token::Tokens;
use crate::files;

const CONFIG: &str = "config";
const TOKEN: &str = "token";

/// The directory with the kubeconfig and its token. Programs may only read it. Dropping this value removes the
/// directory.
#[derive(Debug)]
pub(super) struct Kubeconfig {
    directory: PathBuf,
    /// The task that replaces the token.
    renewal: Option<AbortOnDropHandle<()>>,
}

impl Kubeconfig {
    /// Writes the kubeconfig beside the workspace of an attempt, and starts the task that replaces its token.
    pub(super) fn write(workspace: &Path, cluster: &Cluster, token: &str, tokens: Tokens) -> io::Result<Self> {
        let mut name = workspace.file_name().unwrap_or_default().to_owned();
        name.push(".kube");
        let directory = workspace.with_file_name(name);
        // An earlier runner process may have left the directory of the same attempt.
        let _ = files::remove_tree(&directory);
        std::fs::create_dir(&directory)?;
        let mut made = Self { directory, renewal: None };
        std::fs::set_permissions(&made.directory, Permissions::from_mode(0o755))?;
        files::write_readable(&made.directory.join(TOKEN), token.as_bytes())?;
        let config = text(cluster, &made.directory.join(TOKEN));
        files::write_readable(&made.file(), config.as_bytes())?;
        made.renewal = Some(AbortOnDropHandle::new(tokio::spawn(renew(made.directory.clone(), tokens))));
        Ok(made)
    }

    /// Returns the path of the directory with the kubeconfig.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the path for the variable `KUBECONFIG`.
    pub(super) fn file(&self) -> PathBuf {
        self.directory.join(CONFIG)
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        drop(self.renewal.take());
        let _ = files::remove_tree(&self.directory);
    }
}

/// Replaces the token whenever it must be renewed. A failure is only logged: the old token works for some more minutes,
/// and the next try may succeed.
async fn renew(directory: PathBuf, tokens: Tokens) {
    loop {
        tokens.until_renewal().await;
        let renewed = match tokens.current().await {
            Ok(token) => {
                files::write_readable(&directory.join(TOKEN), token.as_bytes()).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = renewed {
            tokens.log.line(&format!("[freehold: the token of the kubeconfig was not renewed: {why}]"));
        }
    }
}

/// Returns the kubeconfig as JSON, which is also valid YAML.
fn text(cluster: &Cluster, token: &Path) -> String {
    let Cluster { name, endpoint, authority, .. } = cluster;
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{ "name": name, "cluster": {
            "server": endpoint.as_str().trim_end_matches('/'),
            "certificate-authority-data": authority,
        } }],
        "users": [{ "name": "job", "user": { "tokenFile": token } }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": "job" } }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aws_credential_types::Credentials;
    use aws_credential_types::provider::SharedCredentialsProvider;
    use serde_json::Value;

    use super::*;
    use crate::record::log::JobLog;

    fn cluster() -> Cluster {
        Cluster {
            name: "one".into(),
            region: "eu-west-1".into(),
            arn: "arn:x".into(),
            endpoint: "https://a.gr7.eu-west-1.eks.amazonaws.com".parse().unwrap(),
            authority: "QQ==".into(),
        }
    }

    fn tokens() -> Tokens {
        Tokens {
            cluster: "one".into(),
            region: "eu-west-1".into(),
            sts: "sts.eu-west-1.amazonaws.com".into(),
            credentials: SharedCredentialsProvider::new(Credentials::new("AKID", "SECRET", None, None, "test")),
            log: JobLog::default(),
            held: Arc::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_token_is_in_a_file_of_its_own_and_is_renewed() {
        let state = tempfile::tempdir().unwrap();
        let workspace = state.path().join("job.1.1");

        let kubeconfig = Kubeconfig::write(&workspace, &cluster(), "first", tokens()).unwrap();
        let config: Value = serde_json::from_slice(&std::fs::read(kubeconfig.file()).unwrap()).unwrap();
        let token = PathBuf::from(config["users"][0]["user"]["tokenFile"].as_str().unwrap());
        assert_eq!(std::fs::read_to_string(&token).unwrap(), "first");
        tokio::time::sleep(crate::kubernetes::token::RENEW * 2).await;
        let second = std::fs::read_to_string(&token).unwrap();
        drop(kubeconfig);

        assert!(second.starts_with("k8s-aws-v1."), "{second}");
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://a.gr7.eu-west-1.eks.amazonaws.com");
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "it is gone with the job");
    }
}
