//! A client for the Kubernetes API of a cluster: reads, applies (server-side) and deletes objects of any kind.
//!
//! Objects stay JSON. A typed client would have a Rust type for each kind of one version of Kubernetes, and the runner
//! does not need these types (decision 0043).

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::{Certificate, Client, Method};
use serde_json::{Value, json};
use url::Url;

use super::change::Change;
use super::cluster::Cluster;
use super::discovery::{Discovered, Resource, ResourceList, group_path, of_kind};
use super::error::ClusterError;
use super::object::{Id, Object};
use super::retry::Retries;
use super::token::Tokens;

/// The name of the runner's field manager.
pub(crate) const MANAGER: &str = "freehold";
/// The time limit of one call.
const CALL: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);
/// The maximum numbers of lines and bytes that are read of a program's log.
const LOG_LINES: &str = "1000";
const LOG_BYTES: &str = "1048576";
const JSON: &str = "application/json";
const ACCESS_REVIEWS: &str = "authorization.k8s.io/v1";
/// The content type that requests only metadata, because the data of a Helm release can have a megabyte.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// The content type of a server-side apply. The body is JSON, which is also valid YAML.
const APPLY: &str = "application/apply-patch+yaml";
/// The content types of Helm's patches: the first for built-in kinds, the second for custom resources.
const MERGES: [&str; 2] = ["application/strategic-merge-patch+json", "application/merge-patch+json"];

/// The metadata that a replaced object keeps: its version, and the fields by which others hold it or remove it.
const OF_CLUSTER: [&str; 4] = ["resourceVersion", "uid", "finalizers", "ownerReferences"];

/// The query of a dry run of a change that Helm would make.
const HELM_DRY_RUN: [(&str, &str); 2] = [("fieldManager", "helm"), ("dryRun", "All")];

/// Whether an apply changes the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied {
    /// The API server changes the object.
    Done,
    /// The API server changes the object, and takes over fields of other managers.
    TakenBack,
    /// A dry run: the API server only returns the object as it would become.
    Planned,
    /// A dry run that takes over fields of other managers, to see what they changed.
    Compared,
}

/// One request to the API server.
struct Call<'a> {
    method: Method,
    url: Url,
    /// The purpose of the request, worded as the end of the messages "the cluster refuses ..." and "the request was:
    /// ...".
    what: &'a str,
    accept: &'a str,
    /// The content type and the body.
    body: Option<(&'a str, &'a Value)>,
}

/// A client for the API of one cluster, with the tokens of one job.
#[derive(Debug)]
pub(crate) struct Api {
    cluster: String,
    base: Url,
    http: Client,
    tokens: Tokens,
    discovered: Discovered,
}

impl Api {
    pub(super) fn new(cluster: &Cluster, tokens: Tokens) -> Result<Self, ClusterError> {
        let name = cluster.name.clone();
        let unusable = |why: String| ClusterError::NotDescribed { cluster: name.clone(), why };
        let pem = STANDARD.decode(&cluster.authority).map_err(|error| unusable(error.to_string()))?;
        let authorities = Certificate::from_pem_bundle(&pem).map_err(|error| unusable(error.to_string()))?;
        // The call fails only if a crypto provider is already installed, and that can only be the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder().user_agent(concat!("freehold/", env!("CARGO_PKG_VERSION")));
        let builder = builder.connect_timeout(CONNECT).timeout(CALL).redirect(reqwest::redirect::Policy::none());
        // The client trusts only the cluster's own certificate authority, and none of the public ones.
        let builder = authorities
            .into_iter()
            .fold(builder.tls_built_in_root_certs(false), |builder, authority| builder.add_root_certificate(authority));
        let http = builder.build().map_err(|error| unusable(crate::aws::explain(&error)))?;
        Ok(Self { cluster: name, base: cluster.endpoint.clone(), http, tokens, discovered: Discovered::default() })
    }

    /// Returns the resource of a kind, or `None` when the cluster does not know the kind.
    pub(crate) async fn resource(&self, api_version: &str, kind: &str) -> Result<Option<Resource>, ClusterError> {
        let mut discovered = self.discovered.lock().await;
        if let Some(known) = discovered.get(api_version).and_then(|known| of_kind(known, kind)) {
            return Ok(Some(known));
        }
        // An unknown kind is not cached, because its definition may have been applied since the last discovery.
        let url = self.url(&group_path(api_version), &[]);
        let what = format!("the discovery of `{api_version}`");
        let found = match self.send(Method::GET, url, &what, None).await {
            Ok(body) => body,
            Err(error) if error.status() == Some(404) => return Ok(None),
            Err(error) => return Err(error),
        };
        let list: ResourceList = serde_json::from_value(found).map_err(|_| self.malformed(&what))?;
        let resource = of_kind(&list.resources, kind);
        discovered.insert(api_version.to_owned(), list.resources);
        Ok(resource)
    }

    /// Returns the version of the cluster, and a list of each `apiVersion` and each `apiVersion/Kind` that it serves.
    /// Charts read both as `.Capabilities`.
    pub(crate) async fn capabilities(&self) -> Result<(String, Vec<String>), ClusterError> {
        let version = self.get_path(&["version"]).await?;
        let version = version.get("gitVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut all = vec!["v1".to_owned()];
        let groups = self.get_path(&["apis"]).await?;
        let groups = groups.get("groups").and_then(Value::as_array).cloned().unwrap_or_default();
        let versions = groups.iter().filter_map(|group| group.get("versions")?.as_array()).flatten();
        all.extend(versions.filter_map(|version| Some(version.get("groupVersion")?.as_str()?.to_owned())));
        let mut kinds = Vec::new();
        for api_version in &all {
            // When an aggregated API is down, releases that do not use it must still work.
            let Ok(list) = self.get_path(&group_path(api_version)).await else { continue };
            let Ok(list) = serde_json::from_value::<ResourceList>(list) else { continue };
            let own = list.resources.iter().filter(|one| !one.name.contains('/'));
            kinds.extend(own.map(|one| format!("{api_version}/{}", one.kind)));
        }
        all.extend(kinds);
        Ok((version, all))
    }

    /// Returns the live object, or `None` when the object or its kind does not exist.
    pub(crate) async fn get(&self, id: &Id) -> Result<Option<Value>, ClusterError> {
        let Some(url) = self.object_url(id, &[]).await? else { return Ok(None) };
        match self.send(Method::GET, url, &format!("to read {id}"), None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies an object (server-side apply) under the runner's field manager, and returns the resulting object. When
    /// another manager owns one of the fields, the call fails with a conflict, unless `how` takes the field over.
    pub(crate) async fn apply(&self, object: &Object, how: Applied) -> Result<Value, ClusterError> {
        let query: &[(&str, &str)] = match how {
            Applied::Done => &[("fieldManager", MANAGER)],
            Applied::TakenBack => &[("fieldManager", MANAGER), ("force", "true")],
            Applied::Planned => &[("fieldManager", MANAGER), ("dryRun", "All")],
            Applied::Compared => &[("fieldManager", MANAGER), ("dryRun", "All"), ("force", "true")],
        };
        let id = &object.id;
        let url = self.object_url(id, query).await?.ok_or_else(|| self.unknown_kind(id))?;
        self.send(Method::PATCH, url, &id.to_string(), Some((APPLY, &object.value))).await
    }

    /// Adds labels to an object, which must exist.
    pub(crate) async fn label(&self, id: &Id, labels: &BTreeMap<&'static str, String>) -> Result<(), ClusterError> {
        let url = self.object_url(id, &[("fieldManager", MANAGER)]).await?.ok_or_else(|| self.unknown_kind(id))?;
        let [_, merge] = MERGES;
        let patch = json!({ "metadata": { "labels": labels } });
        self.send(Method::PATCH, url, &id.to_string(), Some((merge, &patch))).await.map(drop)
    }

    /// Creates an object, which must not exist. The API server drops fields that it does not know.
    pub(crate) async fn create(&self, object: &Object) -> Result<Value, ClusterError> {
        let id = &object.id;
        let mut url = self.object_url(id, &[("fieldManager", MANAGER)]).await?.ok_or_else(|| self.unknown_kind(id))?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop();
        }
        self.send(Method::POST, url, &id.to_string(), Some((JSON, &object.value))).await
    }

    /// Replaces the whole object `live`, if nobody has changed it since. The API server drops fields that it does not know.
    pub(crate) async fn replace(&self, object: &Object, live: &Value, is_planned: bool) -> Result<Value, ClusterError> {
        let query: &[(&str, &str)] =
            if is_planned { &[("fieldManager", MANAGER), ("dryRun", "All")] } else { &[("fieldManager", MANAGER)] };
        let id = &object.id;
        let url = self.object_url(id, query).await?.ok_or_else(|| self.unknown_kind(id))?;
        let mut value = object.value.clone();
        let of_cluster = live.get("metadata").and_then(Value::as_object).into_iter().flatten();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            let kept = of_cluster.filter(|(key, _)| OF_CLUSTER.contains(&key.as_str()));
            metadata.extend(kept.map(|(key, value)| (key.clone(), value.clone())));
        }
        self.send(Method::PUT, url, &id.to_string(), Some((JSON, &value))).await
    }

    /// Returns the change that applying `object` would make. If its kind or namespace does not exist yet, the change is
    /// `Create`.
    pub(crate) async fn change(&self, object: &Object, live: Option<&Value>) -> Result<Change, ClusterError> {
        match self.apply(object, Applied::Planned).await {
            Ok(planned) => Ok(Change::between(live, &planned)),
            Err(error) if error.status() == Some(404) => Ok(Change::Create),
            Err(error) => Err(error),
        }
    }

    /// Returns the change that Helm would make: Helm creates `object`, or merges it into the live object.
    pub(crate) async fn merge_change(&self, object: &Object, live: Option<&Value>) -> Result<Change, ClusterError> {
        let (id, value) = (&object.id, &object.value);
        let Some(live) = live else {
            let Some(url) = self.object_url(id, &HELM_DRY_RUN).await? else { return Ok(Change::Create) };
            let what = id.to_string();
            let mut collection = url;
            if let Ok(mut segments) = collection.path_segments_mut() {
                segments.pop();
            }
            return match self.send(Method::POST, collection, &what, Some((JSON, value))).await {
                Err(error) if error.status() != Some(404) => Err(error),
                // A 404 means that the namespace does not exist yet.
                Ok(_) | Err(_) => Ok(Change::Create),
            };
        };
        match self.dry_run_merge(object).await? {
            Some(merged) => Ok(Change::between(Some(live), &merged)),
            None => Ok(Change::Create),
        }
    }

    /// Returns the live object as Helm's merge of `object` would make it, by a dry run; `None` if the cluster does not know
    /// the kind.
    pub(crate) async fn dry_run_merge(&self, object: &Object) -> Result<Option<Value>, ClusterError> {
        let (id, value) = (&object.id, &object.value);
        let Some(url) = self.object_url(id, &HELM_DRY_RUN).await? else { return Ok(None) };
        let what = id.to_string();
        let [strategic, plain] = MERGES;
        match self.send(Method::PATCH, url.clone(), &what, Some((strategic, value))).await {
            Err(error) if error.status() == Some(415) => {
                self.send(Method::PATCH, url, &what, Some((plain, value))).await.map(Some)
            }
            merged => merged.map(Some),
        }
    }

    fn unknown_kind(&self, id: &Id) -> ClusterError {
        ClusterError::Refused {
            cluster: self.cluster.clone(),
            what: id.to_string(),
            status: 404,
            message: format!("it has no kind `{}` of `{}`", id.kind, id.api_version),
            owners: Vec::new(),
        }
    }

    /// Starts the deletion of an object and its dependents, and does not wait for the end. An absent object is not an
    /// error.
    pub(crate) async fn delete(&self, id: &Id) -> Result<(), ClusterError> {
        self.delete_by(id, "Background").await
    }

    /// Starts the deletion of an object, which stays until all of its dependents are gone. An absent object is not an
    /// error.
    pub(crate) async fn delete_after_dependents(&self, id: &Id) -> Result<(), ClusterError> {
        self.delete_by(id, "Foreground").await
    }

    async fn delete_by(&self, id: &Id, policy: &str) -> Result<(), ClusterError> {
        let Some(url) = self.object_url(id, &[]).await? else { return Ok(()) };
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy });
        match self.send(Method::DELETE, url, &format!("to delete {id}"), Some((JSON, &options))).await {
            Err(error) if error.status() != Some(404) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Returns the metadata of the objects in `namespace` that match the label selector `labels`. `plural` names their
    /// kind.
    pub(crate) async fn list_metadata(
        &self,
        plural: &str,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<Value>, ClusterError> {
        self.list_as(METADATA, plural, namespace, labels).await
    }

    /// Returns the objects in `namespace` that match the label selector `labels`. `plural` names their kind.
    pub(crate) async fn list(&self, plural: &str, namespace: &str, labels: &str) -> Result<Vec<Value>, ClusterError> {
        self.list_as(JSON, plural, namespace, labels).await
    }

    async fn list_as(
        &self,
        accept: &str,
        plural: &str,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<Value>, ClusterError> {
        let url = self.url(&["api", "v1", "namespaces", namespace, plural], &[("labelSelector", labels)]);
        let what = format!("to list {plural} of namespace `{namespace}`");
        let list = self.repeat(&Call { method: Method::GET, url, what: &what, accept, body: None }).await?;
        Ok(list.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    /// Returns the last lines of the log of a pod with one container.
    pub(crate) async fn log(&self, namespace: &str, pod: &str) -> Result<String, ClusterError> {
        let path = ["api", "v1", "namespaces", namespace, "pods", pod, "log"];
        let url = self.url(&path, &[("tailLines", LOG_LINES), ("limitBytes", LOG_BYTES)]);
        let what = format!("to show the log of pod `{pod}`");
        let (status, bytes) =
            self.answer(&Call { method: Method::GET, url, what: &what, accept: "*/*", body: None }).await?;
        if (200..300).contains(&status) {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Err(ClusterError::of_answer(&self.cluster, &what, status, &body))
    }

    /// Returns whether the job may do `verb` to objects of a resource in `namespace` (Kubernetes API,
    /// `SelfSubjectAccessReview`). `group` is the API group, empty for the core group.
    pub(crate) async fn may(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: &str,
    ) -> Result<bool, ClusterError> {
        let attributes = json!({ "verb": verb, "group": group, "resource": resource, "namespace": namespace });
        let review = json!({ "apiVersion": ACCESS_REVIEWS, "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": attributes } });
        let mut path = group_path(ACCESS_REVIEWS);
        path.push("selfsubjectaccessreviews");
        let answer = self.send(Method::POST, self.url(&path, &[]), "a review of access", Some((JSON, &review))).await?;
        let allowed = answer.pointer("/status/allowed").and_then(Value::as_bool);
        allowed.ok_or_else(|| self.malformed("a review of access"))
    }

    async fn get_path(&self, path: &[&str]) -> Result<Value, ClusterError> {
        self.send(Method::GET, self.url(path, &[]), "to list the APIs that it serves", None).await
    }

    async fn object_url(&self, id: &Id, query: &[(&str, &str)]) -> Result<Option<Url>, ClusterError> {
        let Some(resource) = self.resource(&id.api_version, &id.kind).await? else { return Ok(None) };
        let mut path = group_path(&id.api_version);
        if let (true, Some(namespace)) = (resource.namespaced, &id.namespace) {
            path.extend(["namespaces", namespace]);
        }
        path.extend([resource.name.as_str(), &id.name]);
        Ok(Some(self.url(&path, query)))
    }

    fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        // `extend` escapes the segments, so a name cannot change the path. An `https` URL always has segments.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    async fn send(
        &self,
        method: Method,
        url: Url,
        what: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, ClusterError> {
        self.repeat(&Call { method, url, what, accept: JSON, body }).await
    }

    /// Makes a call, and retries it while the API server is unavailable. Every call of this client is idempotent.
    async fn repeat(&self, call: &Call<'_>) -> Result<Value, ClusterError> {
        let mut retries = Retries::new();
        loop {
            let ended = self.once(call).await;
            match ended.as_ref().err().and_then(|error| retries.wait_after(error)) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return ended,
            }
        }
    }

    async fn once(&self, call: &Call<'_>) -> Result<Value, ClusterError> {
        let (status, bytes) = self.answer(call).await?;
        let parsed = serde_json::from_slice::<Value>(&bytes);
        if (200..300).contains(&status) {
            return parsed.map_err(|_| self.malformed(call.what));
        }
        Err(ClusterError::of_answer(&self.cluster, call.what, status, &parsed.unwrap_or_default()))
    }

    /// Makes a call once, and returns the status and the body of the response.
    async fn answer(&self, call: &Call<'_>) -> Result<(u16, Bytes), ClusterError> {
        let silent = |error: reqwest::Error| {
            let (endpoint, why) = (self.base.to_string(), crate::aws::explain(&error.without_url()));
            ClusterError::Silent { cluster: self.cluster.clone(), endpoint, why }
        };
        let token = self.tokens.current().await?;
        let mut request = self.http.request(call.method.clone(), call.url.clone()).bearer_auth(token);
        if let Some((kind, body)) = call.body {
            request = request.header("content-type", kind).body(body.to_string());
        }
        let answer = request.header("accept", call.accept).send().await.map_err(silent)?;
        let status = answer.status().as_u16();
        Ok((status, answer.bytes().await.map_err(silent)?))
    }

    fn malformed(&self, what: &str) -> ClusterError {
        ClusterError::Malformed { cluster: self.cluster.clone(), what: what.to_owned() }
    }
}
