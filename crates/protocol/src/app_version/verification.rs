//! The signatures that an image must have, and the recipe with which a build checks them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::build::{Recipe, Signer};

/// The signatures that an image must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Verification {
    #[serde(default)]
    pub require_signature: bool,
    /// The accepted signers, unchanged from the config. The signature of any one of them is enough.
    #[serde(default)]
    pub authorities: Vec<Value>,
}

impl Verification {
    /// Returns the accepted signers of the image, in the order of the config.
    pub fn signers(&self) -> Vec<Signer> {
        self.authorities.iter().map(signer).collect()
    }

    /// Returns the recipe that makes a build check the signature, or `None` when the config does not require a
    /// signature.
    pub(super) fn recipe(&self) -> Option<Recipe> {
        self.require_signature.then(|| Recipe::SignedImage { signers: self.signers() })
    }
}

/// Converts an authority to a signer. An invalid authority becomes a signer that cannot have signed any image.
fn signer(authority: &Value) -> Signer {
    let text = |key: &str| authority.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match authority.get("public_key") {
        Some(_) => Signer::Key { public_key: text("public_key") },
        None => {
            Signer::Keyless { issuer: text("issuer"), subject: text("subject"), subject_regexp: text("subject_regexp") }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_build_gets_every_authority_in_its_place() {
        let authorities = json!([
            { "issuer": "https://accounts.example", "subject_regexp": ".*", "type": "sigstore_keyless" },
            { "public_key": "KEY", "type": "cosign_key" },
            {},
        ]);
        let asked = |require_signature: bool| {
            let verification = json!({ "require_signature": require_signature, "authorities": authorities });
            serde_json::from_value::<Verification>(verification).unwrap().recipe()
        };

        let json = serde_json::to_value(asked(true)).unwrap();

        assert_eq!(
            json,
            json!({ "kind": "signed_image", "signers": [
                { "by": "keyless", "issuer": "https://accounts.example", "subject_regexp": ".*" },
                { "by": "key", "public_key": "KEY" },
                { "by": "keyless", "issuer": "" },
            ] })
        );
        assert_eq!(asked(false), None);
    }

    #[test]
    fn a_signature_by_nobody_is_still_asked_for() {
        let verification = Verification { require_signature: true, authorities: Vec::new() };

        assert_eq!(verification.recipe(), Some(Recipe::SignedImage { signers: Vec::new() }));
    }
}
