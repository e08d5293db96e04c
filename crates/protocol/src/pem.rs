//! Public keys in PEM form (RFC 7468, "Textual Encoding of Subject Public Key Info"), of any key type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// The longest text that is accepted, in bytes. An RSA key of 8192 bits has about 1,500 bytes.
const MAX_BYTES: usize = 8 * 1024;

/// The reason why a text is not exactly one public key in PEM form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    #[error("the public key is not in PEM form: it does not begin with `-----BEGIN PUBLIC KEY-----`")]
    NotPem,
    #[error("this is a private key, which must not be in a config")]
    Private,
    #[error("the public key is a `{0}`, not a `PUBLIC KEY`")]
    OtherLabel(String),
    #[error("the public key is cut off: it does not end with `-----END PUBLIC KEY-----`")]
    CutOff,
    #[error("there is more text after the public key")]
    More,
    #[error("the contents of the public key are not base64")]
    NotBase64,
    #[error("the public key is larger than {MAX_BYTES} bytes")]
    Large,
}

/// Returns the decoded bytes of the one public key in `text`. They should be a DER `SubjectPublicKeyInfo`, which this
/// function does not check.
///
/// # Errors
/// [`PemError`].
pub fn public_key(text: &str) -> Result<Vec<u8>, PemError> {
    let text = text.trim();
    let (label, rest) = text.strip_prefix(BEGIN).and_then(|rest| rest.split_once("-----")).ok_or(PemError::NotPem)?;
    if label.contains("PRIVATE KEY") {
        return Err(PemError::Private);
    }
    if text.len() > MAX_BYTES {
        return Err(PemError::Large);
    }
    if label != "PUBLIC KEY" {
        return Err(PemError::OtherLabel(label.to_owned()));
    }
    let (body, end) = rest.split_once(END).ok_or(PemError::CutOff)?;
    let more = end.strip_prefix("PUBLIC KEY-----").ok_or(PemError::CutOff)?;
    if !more.is_empty() {
        return Err(PemError::More);
    }
    let body: String = body.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(body).map_err(|_| PemError::NotBase64)?;
    if bytes.is_empty() { Err(PemError::NotBase64) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn one_public_key_is_read_however_its_lines_are_broken() {
        assert_eq!(public_key(&pem("PUBLIC KEY", "QUJD\nREVG")), Ok(b"ABCDEF".to_vec()));
        assert_eq!(public_key(&pem("PUBLIC KEY", "  QUJD\n  RA==").replace('\n', "\r\n")), Ok(b"ABCD".to_vec()));
    }

    #[test]
    fn an_invalid_public_key_is_named() {
        let one = pem("PUBLIC KEY", "QUJD");
        let found = [
            "KEY".to_owned(),
            String::new(),
            pem("EC PRIVATE KEY", "QUJD"),
            pem("RSA PUBLIC KEY", "QUJD"),
            pem("PUBLIC KEY", "QU*D"),
            pem("PUBLIC KEY", "QUJDR"),
            pem("PUBLIC KEY", ""),
            one.replace("-----END PUBLIC KEY-----", ""),
            one.replace("END PUBLIC KEY", "END CERTIFICATE"),
            format!("{one}{one}"),
            pem("PUBLIC KEY", &"QUJD".repeat(2048)),
        ]
        .map(|text| public_key(&text).unwrap_err().to_string());

        insta::assert_snapshot!(found.join("\n"), @r"
        the public key is not in PEM form: it does not begin with `-----BEGIN PUBLIC KEY-----`
        the public key is not in PEM form: it does not begin with `-----BEGIN PUBLIC KEY-----`
        this is a private key, which must not be in a config
        the public key is a `RSA PUBLIC KEY`, not a `PUBLIC KEY`
        the contents of the public key are not base64
        the contents of the public key are not base64
        the contents of the public key are not base64
        the public key is cut off: it does not end with `-----END PUBLIC KEY-----`
        the public key is cut off: it does not end with `-----END PUBLIC KEY-----`
        there is more text after the public key
        the public key is larger than 8192 bytes
        ");
    }
}
