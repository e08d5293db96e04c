//! The token of a pipeline, from a variable or from a file that the pipeline keeps new.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use freehold_client::{Error as ClientError, Token, TokenSource};

use crate::error::{Error, Result};

const VARIABLE: &str = "FREEHOLD_PIPELINE_TOKEN";
const FILE: &str = "FREEHOLD_PIPELINE_TOKEN_FILE";
/// The maximum size of the file, in bytes.
const LONGEST: u64 = 64 * 1024;

#[derive(Debug)]
pub(super) enum PipelineToken {
    Given(Token),
    /// The file is read for each request, because a pipeline may replace its token.
    File(PathBuf),
}

impl PipelineToken {
    /// Returns the token that the environment names. An empty variable counts as absent.
    pub(super) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let given = |name: &str| variable(name).filter(|text| !text.is_empty());
        match (given(VARIABLE), given(FILE)) {
            (None, None) => Ok(None),
            (Some(text), None) => match Token::new(&text) {
                Ok(token) => Ok(Some(Self::Given(token))),
                Err(_) => Err(Error::invalid(format!("{VARIABLE} is not a token")).or("set it to the token alone")),
            },
            (None, Some(path)) => {
                let path = PathBuf::from(path);
                // A wrong file is found before the first request.
                read(&path).map_err(|why| {
                    Error::invalid(format!("{FILE} is `{}`, and {why}", path.display()))
                        .or("name the file with the token of the pipeline")
                })?;
                Ok(Some(Self::File(path)))
            }
            (Some(_), Some(_)) => {
                Err(Error::invalid(format!("{VARIABLE} and {FILE} are both set")).or("unset one of them"))
            }
        }
    }
}

#[async_trait]
impl TokenSource for PipelineToken {
    async fn token(&self) -> Result<Token, ClientError> {
        match self {
            Self::Given(token) => Ok(token.clone()),
            Self::File(path) => read(path).map_err(|why| ClientError::Token(format!("`{}`: {why}", path.display()))),
        }
    }
}

/// Returns the token in a file, or why there is none.
fn read(path: &Path) -> Result<Token, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    Token::new(&text).map_err(|_| "it does not have a token alone".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(token: &str, file: &str) -> Result<Option<PipelineToken>> {
        PipelineToken::of_environment(|name| Some((if name == VARIABLE { token } else { file }).to_owned()))
    }

    #[tokio::test]
    async fn a_file_is_read_for_each_request() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "first\n").unwrap();
        let source = of("", file.to_str().unwrap()).unwrap().unwrap();

        source.token().await.unwrap();
        std::fs::write(&file, "").unwrap();
        let empty = source.token().await.unwrap_err();

        assert!(empty.to_string().contains("it does not have a token alone"), "{empty}");
    }

    #[test]
    fn a_wrong_variable_is_named_without_the_token() {
        assert!(of("", "").unwrap().is_none());
        assert!(matches!(of("abc", "").unwrap(), Some(PipelineToken::Given(_))));
        let error = of("abc def", "").unwrap_err().to_string();
        assert_eq!(error, "FREEHOLD_PIPELINE_TOKEN is not a token; set it to the token alone");
        let error = of("", "/absent").unwrap_err().to_string();
        assert!(error.starts_with("FREEHOLD_PIPELINE_TOKEN_FILE is `/absent`, and it cannot be read: "), "{error}");
        assert!(of("abc", "/absent").unwrap_err().to_string().ends_with("are both set; unset one of them"));
    }
}
