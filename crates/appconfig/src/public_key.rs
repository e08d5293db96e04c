//! The form of a public key in a config (RFC 7468, "Textual Encoding of Subject Public Key Info"); which key it is shows
//! at build.

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// What to do about a text that is none.
pub(crate) const WAY_OUT: &str = "give the text of `cosign.pub`, as `cosign public-key --key cosign.key` writes it";

/// Says what is wrong with a text that is to be one public key in PEM form.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let text = text.trim();
    let Some((label, rest)) = text.strip_prefix(BEGIN).and_then(|rest| rest.split_once("-----")) else {
        return Err(format!("the public key is not in PEM form: it does not begin with `{BEGIN}PUBLIC KEY-----`"));
    };
    if label.contains("PRIVATE KEY") {
        return Err("this is a private key, which must not be in a config".to_owned());
    }
    if label != "PUBLIC KEY" {
        return Err(format!("the public key is a `{label}`, not a `PUBLIC KEY`"));
    }
    let Some((body, end)) = rest.split_once(END) else {
        return Err(format!("the public key is cut off: it does not end with `{END}PUBLIC KEY-----`"));
    };
    if end != "PUBLIC KEY-----" {
        return Err("there is more text after the public key".to_owned());
    }
    let body: String = body.split_ascii_whitespace().collect();
    let bare = body.trim_end_matches('=');
    let filled = body.len() - bare.len();
    let is_base64 = !bare.is_empty()
        && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
        && body.len() % 4 == 0
        && filled <= 2;
    if is_base64 { Ok(()) } else { Err("what the public key holds is not base64".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn one_public_key_is_taken() {
        assert_eq!(check(&pem("PUBLIC KEY", "QUJD\nREVG")), Ok(()));
        assert_eq!(check(&pem("PUBLIC KEY", "QUJDRA==").replace('\n', "\r\n")), Ok(()));
    }

    #[test]
    fn what_is_no_public_key_is_named() {
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
            format!("{one}{one}"),
        ]
        .map(|text| check(&text).unwrap_err());

        insta::assert_snapshot!(found.join("\n"), @r"
        the public key is not in PEM form: it does not begin with `-----BEGIN PUBLIC KEY-----`
        the public key is not in PEM form: it does not begin with `-----BEGIN PUBLIC KEY-----`
        this is a private key, which must not be in a config
        the public key is a `RSA PUBLIC KEY`, not a `PUBLIC KEY`
        what the public key holds is not base64
        what the public key holds is not base64
        what the public key holds is not base64
        the public key is cut off: it does not end with `-----END PUBLIC KEY-----`
        there is more text after the public key
        ");
    }
}
