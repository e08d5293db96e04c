//! A service for tests that accepts connections and never answers.

use std::net::TcpListener;

use aws_config::{Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;

use crate::config::sdk_config;

/// The service, which exists until it is dropped.
pub(crate) struct Silence(TcpListener);

impl Silence {
    pub(crate) fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// Returns the settings of a function whose calls all go to this service.
    pub(crate) fn config(&self) -> SdkConfig {
        let keys = Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
        let port = self.0.local_addr().unwrap().port();
        sdk_config()
            .into_builder()
            .region(Region::new("eu-west-1"))
            .endpoint_url(format!("http://127.0.0.1:{port}"))
            .credentials_provider(SharedCredentialsProvider::new(keys))
            .build()
    }
}
