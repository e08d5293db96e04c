//! The contract that a customer accepts by a launch: the contract of the template, and the contract that the stack has
//! accepted.

use std::collections::BTreeMap;

use super::Launch;
use crate::cloudformation::{ACCEPTED_CONTRACT, Stack};
use crate::error::{Error, Result};

impl Launch {
    /// Adds the contract of the template to `parameters` if this launch accepts the contract: in a stack that has not
    /// accepted any contract yet, and with `--accept-contract`. Refuses a template with another contract than the stack
    /// has accepted, unless the user accepts the template's contract, because a launch gives the roles the permissions
    /// of the template. A rule of the template refuses such a launch in the console.
    pub(super) fn add_consent(
        &self,
        offered: Option<&str>,
        former: Option<&Stack>,
        parameters: &mut BTreeMap<String, String>,
    ) -> Result<()> {
        if self.accept_contract && parameters.contains_key(ACCEPTED_CONTRACT) {
            let twice = format!(
                "`--accept-contract` and parameter `{ACCEPTED_CONTRACT}` both name a contract; pass one of them"
            );
            return Err(Error::invalid(twice));
        }
        let (file, was) = (self.template.display(), former.and_then(accepted));
        let Some(offered) = offered else { return self.without_contract(was) };
        let (digest, agreed) = match (parameters.get(ACCEPTED_CONTRACT), was) {
            (Some(named), _) => (named.as_str(), format!("parameter `{ACCEPTED_CONTRACT}` names {named}")),
            (None, Some(was)) if !self.accept_contract => (was, format!("the stack has accepted {was}")),
            (None, _) => {
                parameters.insert(ACCEPTED_CONTRACT.to_owned(), offered.to_owned());
                return Ok(());
            }
        };
        if digest == offered {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "template `{file}` offers the contract {offered}, but {agreed}: a launch would give the roles the permissions of \
             the template, so nothing was changed"
        ))
        .or("read the contract of the template and accept it with `--accept-contract`, or pass the template whose contract you \
             accepted"))
    }

    /// Decides about a template that names no contract. `was` is the contract that the stack has accepted.
    fn without_contract(&self, was: Option<&str>) -> Result<()> {
        let file = self.template.display();
        match was {
            _ if self.accept_contract => {
                Err(Error::invalid(format!("template `{file}` names no contract, so there is nothing to accept"))
                    .or("leave out `--accept-contract`"))
            }
            None => Ok(()),
            Some(was) => Err(Error::conflict(format!(
                "template `{file}` names no contract, but the stack has accepted {was}: with this template, the runner \
                 would carry out any release without your consent; ask the vendor for a template that names its contract"
            ))),
        }
    }
}

/// Returns the sentence about the contract after a launch in which the customer agreed to another contract.
pub(super) fn about_consent(former: Option<&Stack>, now: &Stack) -> Option<String> {
    let accepted_now = accepted(now)?;
    (former.and_then(accepted) != Some(accepted_now)).then(|| format!("you agreed to the contract {accepted_now}"))
}

fn accepted(stack: &Stack) -> Option<&str> {
    stack.parameters.get(ACCEPTED_CONTRACT).map(String::as_str).filter(|digest| !digest.is_empty())
}

/// Returns the contract that a template asks the customer to accept: the default of the parameter [`ACCEPTED_CONTRACT`].
pub(super) fn offered(template: &str) -> Option<String> {
    let mut lines = template.lines().skip_while(|line| line.trim_end() != format!("  {ACCEPTED_CONTRACT}:")).skip(1);
    let default = lines
        .by_ref()
        .take_while(|line| line.starts_with("    "))
        .find_map(|line| line.strip_prefix("    Default: "))?;
    Some(default.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudformation::types::StackStatus;

    use super::*;

    const NEW: &str = "sha256:new";

    fn launch(accept_contract: bool) -> Launch {
        Launch {
            install: "globex".parse().unwrap(),
            template: "globex.yaml".into(),
            digest: None,
            template_bucket: None,
            unverified: false,
            own: crate::install::OwnParts::default(),
            accept_contract,
            parameters: Vec::new(),
        }
    }

    fn stack(contract: Option<&str>) -> Stack {
        Stack {
            id: "arn".into(),
            name: "freehold-acme--globex".into(),
            status: StackStatus::UpdateComplete,
            reason: String::new(),
            parameters: contract.map(|digest| (ACCEPTED_CONTRACT.to_owned(), digest.to_owned())).into_iter().collect(),
            outputs: BTreeMap::new(),
            changed_at: String::new(),
        }
    }

    /// Returns the contract that a launch sets in a stack that has accepted `former`.
    fn set(accept: bool, former: Option<&Stack>, given: Option<&str>) -> Result<Option<String>> {
        let mut parameters =
            given.map(|digest| (ACCEPTED_CONTRACT.to_owned(), digest.to_owned())).into_iter().collect();
        launch(accept).add_consent(Some(NEW), former, &mut parameters)?;
        Ok(parameters.remove(ACCEPTED_CONTRACT))
    }

    #[test]
    fn only_the_first_launch_and_an_explicit_yes_accept_what_a_template_offers() {
        let (old, none) = (stack(Some("sha256:old")), stack(None));

        assert_eq!(set(false, None, None).unwrap().as_deref(), Some(NEW));
        assert_eq!(set(false, Some(&none), None).unwrap().as_deref(), Some(NEW));
        assert_eq!(set(false, Some(&stack(Some(NEW))), None).unwrap(), None);
        assert_eq!(set(true, Some(&old), None).unwrap().as_deref(), Some(NEW));
        assert_eq!(set(false, Some(&old), Some(NEW)).unwrap().as_deref(), Some(NEW));
    }

    #[test]
    fn a_template_with_another_contract_or_none_is_refused_unless_the_contract_to_accept_is_named() {
        let old = stack(Some("sha256:old"));

        let other = set(false, Some(&old), None).unwrap_err();
        let none = launch(false).add_consent(None, Some(&old), &mut BTreeMap::new()).unwrap_err();
        let mine = set(false, Some(&old), Some("sha256:mine")).unwrap_err();
        let first = set(false, None, Some("sha256:mine")).unwrap_err();

        insta::assert_snapshot!(other, @"template `globex.yaml` offers the contract sha256:new, but the stack has accepted sha256:old: a launch would give the roles the permissions of the template, so nothing was changed; read the contract of the template and accept it with `--accept-contract`, or pass the template whose contract you accepted");
        insta::assert_snapshot!(none, @"template `globex.yaml` names no contract, but the stack has accepted sha256:old: with this template, the runner would carry out any release without your consent; ask the vendor for a template that names its contract");
        insta::assert_snapshot!(mine, @"template `globex.yaml` offers the contract sha256:new, but parameter `AcceptedContract` names sha256:mine: a launch would give the roles the permissions of the template, so nothing was changed; read the contract of the template and accept it with `--accept-contract`, or pass the template whose contract you accepted");
        assert_eq!(first.to_string(), mine.to_string());
        assert_eq!(set(false, Some(&old), Some("sha256:old")).unwrap_err().kind().exit_code(), 4);
        assert_eq!((other.kind().exit_code(), none.kind().exit_code(), mine.kind().exit_code()), (4, 4, 4));
    }

    #[test]
    fn a_consent_that_is_given_twice_or_to_nothing_is_refused() {
        let twice = set(true, None, Some("sha256:mine")).unwrap_err().to_string();
        let nothing = launch(true).add_consent(None, None, &mut BTreeMap::new()).unwrap_err().to_string();

        assert_eq!(
            twice,
            "`--accept-contract` and parameter `AcceptedContract` both name a contract; pass one of them"
        );
        assert!(nothing.starts_with("template `globex.yaml` names no contract"), "{nothing}");
        assert_eq!(launch(false).add_consent(None, None, &mut BTreeMap::new()), Ok(()));
    }

    #[test]
    fn a_launch_says_what_was_accepted() {
        let (old, new) = (stack(Some("sha256:old")), stack(Some(NEW)));

        assert_eq!(about_consent(None, &new).unwrap(), "you agreed to the contract sha256:new");
        assert_eq!(about_consent(Some(&old), &new).unwrap(), "you agreed to the contract sha256:new");
        assert_eq!(about_consent(Some(&new), &new), None);
        assert_eq!(about_consent(Some(&stack(None)), &stack(None)), None);
    }

    #[test]
    fn the_contract_of_a_template_is_its_parameters_default() {
        let template = "Parameters:\n  RunnerPrincipal:\n    Default: no\n  AcceptedContract:\n    Type: String\n    \
                        Description: >-\n      which\n    Default: sha256:abc\n  Other:\n    Default: x\n";

        assert_eq!(offered(template).as_deref(), Some("sha256:abc"));
        assert_eq!(offered(&template.replace("    Default: sha256:abc\n", "")), None);
        assert_eq!(offered("Parameters: {}\n"), None);
    }
}
