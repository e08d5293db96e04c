//! The rules for each action of IAM: whether it is passed on, and under which conditions.

/// The rule for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The action changes nothing and is passed on.
    Read,
    /// The action changes a resource of the install. A request may have only these parameters.
    Write(Target, &'static [&'static str]),
    /// The action is never passed on; the text gives the reason, and states what to do instead.
    Refused(&'static str),
}

/// The kind of resource that a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    NewRole,
    NewPolicy,
    NewProfile,
    NewProvider,
    LinkedRole,
    Role,
    /// The trust policy of a role.
    Trust,
    /// The list of managed policies that are attached to a role.
    Attachment,
    Boundary,
    Policy,
    Profile,
    /// The role in an instance profile.
    ProfileRole,
    Provider,
}

const KEYS: &str = "a job must not make users or long-lived keys; let the program assume a role";
const FEDERATION: &str =
    "a job must not give access to identities from outside of the account; the customer decides who signs in to it";
const ACCOUNT: &str = "it changes the whole account; ask the customer to do it";
const LINKED: &str =
    "a service-linked role belongs to the account, and others may use it; ask the customer to delete it";

/// Returns the rule for an action.
pub(crate) fn rule(action: &str) -> Rule {
    use Target::*;
    match action {
        "CreateRole" => Rule::Write(
            NewRole,
            &[
                "RoleName",
                "Path",
                "AssumeRolePolicyDocument",
                "Description",
                "MaxSessionDuration",
                "PermissionsBoundary",
                "Tags",
            ],
        ),
        "UpdateRole" => Rule::Write(Role, &["RoleName", "Description", "MaxSessionDuration"]),
        "UpdateRoleDescription" => Rule::Write(Role, &["RoleName", "Description"]),
        "UpdateAssumeRolePolicy" => Rule::Write(Trust, &["RoleName", "PolicyDocument"]),
        "DeleteRole" => Rule::Write(Role, &["RoleName"]),
        "PutRolePolicy" => Rule::Write(Role, &["RoleName", "PolicyName", "PolicyDocument"]),
        "DeleteRolePolicy" => Rule::Write(Role, &["RoleName", "PolicyName"]),
        "AttachRolePolicy" | "DetachRolePolicy" => Rule::Write(Attachment, &["RoleName", "PolicyArn"]),
        "TagRole" => Rule::Write(Role, &["RoleName", "Tags"]),
        "UntagRole" => Rule::Write(Role, &["RoleName", "TagKeys"]),
        "PutRolePermissionsBoundary" => Rule::Write(Boundary, &["RoleName", "PermissionsBoundary"]),
        "DeleteRolePermissionsBoundary" => Rule::Write(Boundary, &["RoleName"]),
        "CreatePolicy" => Rule::Write(NewPolicy, &["PolicyName", "Path", "PolicyDocument", "Description", "Tags"]),
        "CreatePolicyVersion" => Rule::Write(Policy, &["PolicyArn", "PolicyDocument", "SetAsDefault"]),
        "SetDefaultPolicyVersion" | "DeletePolicyVersion" => Rule::Write(Policy, &["PolicyArn", "VersionId"]),
        "DeletePolicy" => Rule::Write(Policy, &["PolicyArn"]),
        "TagPolicy" => Rule::Write(Policy, &["PolicyArn", "Tags"]),
        "UntagPolicy" => Rule::Write(Policy, &["PolicyArn", "TagKeys"]),
        "CreateInstanceProfile" => Rule::Write(NewProfile, &["InstanceProfileName", "Path", "Tags"]),
        "DeleteInstanceProfile" => Rule::Write(Profile, &["InstanceProfileName"]),
        "AddRoleToInstanceProfile" | "RemoveRoleFromInstanceProfile" => {
            Rule::Write(ProfileRole, &["InstanceProfileName", "RoleName"])
        }
        "TagInstanceProfile" => Rule::Write(Profile, &["InstanceProfileName", "Tags"]),
        "UntagInstanceProfile" => Rule::Write(Profile, &["InstanceProfileName", "TagKeys"]),
        "CreateOpenIDConnectProvider" => Rule::Write(NewProvider, &["Url", "ClientIDList", "ThumbprintList", "Tags"]),
        "DeleteOpenIDConnectProvider" => Rule::Write(Provider, &["OpenIDConnectProviderArn"]),
        "AddClientIDToOpenIDConnectProvider" | "RemoveClientIDFromOpenIDConnectProvider" => {
            Rule::Write(Provider, &["OpenIDConnectProviderArn", "ClientID"])
        }
        "UpdateOpenIDConnectProviderThumbprint" => {
            Rule::Write(Provider, &["OpenIDConnectProviderArn", "ThumbprintList"])
        }
        "TagOpenIDConnectProvider" => Rule::Write(Provider, &["OpenIDConnectProviderArn", "Tags"]),
        "UntagOpenIDConnectProvider" => Rule::Write(Provider, &["OpenIDConnectProviderArn", "TagKeys"]),
        "CreateServiceLinkedRole" => Rule::Write(LinkedRole, &["AWSServiceName", "Description", "CustomSuffix"]),
        "DeleteServiceLinkedRole" => Rule::Refused(LINKED),
        other => rule_by_name(other),
    }
}

/// Returns the rule for an action that [`rule`] does not list. An action that begins with the verb of a read is passed
/// on; every other action is refused.
fn rule_by_name(action: &str) -> Rule {
    let starts = |verbs: &[&str]| verbs.iter().any(|verb| action.starts_with(verb));
    let names = |words: &[&str]| words.iter().any(|word| action.contains(word));
    if starts(&["Get", "List", "Simulate", "GenerateServiceLastAccessedDetails", "GenerateCredentialReport"]) {
        return Rule::Read;
    }
    if names(&["SAML", "Federation", "OutboundWebIdentity"]) {
        return Rule::Refused(FEDERATION);
    }
    let of_people = [
        "User",
        "Group",
        "AccessKey",
        "LoginProfile",
        "Password",
        "MFA",
        "SSH",
        "SigningCertificate",
        "ServiceSpecificCredential",
    ];
    if names(&of_people) && !names(&["AccountPasswordPolicy"]) {
        return Rule::Refused(KEYS);
    }
    Rule::Refused(ACCOUNT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn actions_that_give_keys_or_let_others_in_are_refused() {
        for action in [
            "CreateUser",
            "CreateAccessKey",
            "CreateLoginProfile",
            "CreateServiceSpecificCredential",
            "CreateSAMLProvider",
            "UpdateSAMLProvider",
            "CreateVirtualMFADevice",
            "UploadSSHPublicKey",
            "UploadSigningCertificate",
            "UploadServerCertificate",
            "AttachUserPolicy",
            "AddUserToGroup",
            "UpdateAccountPasswordPolicy",
            "CreateAccountAlias",
            "SetSecurityTokenServicePreferences",
            "EnableOutboundWebIdentityFederation",
            "EnableOrganizationsRootSessions",
            "DeleteServiceLinkedRole",
            "PutUserPermissionsBoundary",
            "GenerateOrganizationsAccessReport",
            "AnActionOfTomorrow",
        ] {
            assert!(matches!(rule(action), Rule::Refused(_)), "{action}");
        }
    }

    #[test]
    fn every_write_names_what_it_changes() {
        assert_eq!(rule("DeleteRole"), Rule::Write(Target::Role, &["RoleName"]));
        assert_eq!(rule("GetRole"), Rule::Read);
        assert_eq!(rule("GetAccountAuthorizationDetails"), Rule::Read);
    }

    proptest! {
        #[test]
        fn an_action_that_is_not_known_never_writes(action in "(Create|Put|Update|Delete|Attach|Set|Enable)[A-Z][a-z]{1,20}") {
            prop_assert!(matches!(rule(&action), Rule::Refused(_)));
        }
    }
}
