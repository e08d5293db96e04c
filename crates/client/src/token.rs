//! Tokens, with which a person or a pipeline calls the API instead of with AWS credentials.

use std::fmt;

use async_trait::async_trait;

use crate::error::Error;

/// The maximum length of a token, in bytes. API Gateway refuses headers of more than 10 kB together.
const LONGEST: usize = 9 * 1024;

/// A bearer token: whoever has it can call the API until it expires. Its debug text does not contain it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Returns the token that `text` has between spaces and line ends.
    ///
    /// # Errors
    /// Token, when it is empty, too long for a request, or not visible ASCII.
    pub fn new(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let is_token = (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::Token("it does not have the form of one".to_owned()))
        }
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Where the token of each request comes from.
#[async_trait]
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// Returns a token that is valid now. The client asks before each try, so a source may renew its token.
    ///
    /// # Errors
    /// Token, when there is none.
    async fn token(&self) -> Result<Token, Error>;
}

/// The same token for each request.
#[async_trait]
impl TokenSource for Token {
    async fn token(&self) -> Result<Token, Error> {
        Ok(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_visible_word() {
        let long = "t".repeat(LONGEST + 1);

        assert_eq!(Token::new(" abc.def\n").unwrap().expose(), "abc.def");
        assert_eq!(format!("{:?}", Token::new("abc").unwrap()), "Token");
        for wrong in ["", " \n", "a b", "a\nb", "\u{e9}", long.as_str()] {
            assert!(matches!(Token::new(wrong), Err(Error::Token(_))), "{wrong}");
        }
    }
}
