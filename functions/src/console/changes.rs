//! The changes that a form asks for. Each is one call of the API with the idempotency key of the form, and leads to a
//! page that shows its result.

use freehold_app::AppError;
use freehold_client::{Client, calls};
use freehold_pages::encoded;
use freehold_protocol::api::{
    AcceptInvitationRequest, ApproveJobRequest, CancelJobRequest, CancelWorkflowRequest, DeployComponentsRequest,
    InviteMemberRequest, MemberInvited, RejectJobRequest, ResumeWorkflowRequest, RetryJobRequest, SetMemberRequest,
    SetPoliciesRequest,
};
use freehold_protocol::{InstallId, JobId, MemberName, WorkflowId};

use super::failure::Failure;
use super::reads::parsed;
use super::request::{Fields, Request};
use super::response::Response;

/// Performs a change and returns the redirect to the page of its result.
pub(crate) async fn change(client: &Client, parts: &[&str], request: &Request) -> Result<Response, Failure> {
    let page = match parts {
        ["installs", id, act] => install(client, &parsed(id)?, act, request).await?,
        ["workflows", id, act] => workflow(client, &parsed(id)?, act, request).await?,
        ["jobs", id, act] => job(client, &parsed(id)?, act, request).await?,
        ["members", id, act] => member(client, &parsed(id)?, act, request).await?,
        ["policies"] => policies(client, request).await?,
        ["invitation"] => {
            let accept = AcceptInvitationRequest { code: request.form.get("code").to_owned() };
            client.send(&calls::accept_invitation(&accept).with_key(key(request))).await?;
            "/account".to_owned()
        }
        _ => return Err(unknown()),
    };
    Ok(Response::redirect(page))
}

/// Invites a member. The answer has the code, which no address may contain, so it is shown without a redirect.
pub(crate) async fn invite(client: &Client, request: &Request) -> Result<MemberInvited, Failure> {
    let form = &request.form;
    let invite = InviteMemberRequest {
        member: form.parsed("member")?,
        groups: form.list("groups")?,
        apps: form.list("apps")?,
        installs: form.list("installs")?,
        iam: None,
    };
    Ok(client.send(&calls::invite_member(&invite).with_key(key(request))).await?)
}

/// Refuses a form whose box was not ticked. Browsers that know `required` do not send it.
///
/// # Errors
/// Invalid.
pub(crate) fn check_confirmation(request: &Request) -> Result<(), AppError> {
    if request.form.get("confirmed") == "yes" {
        return Ok(());
    }
    Err(AppError::invalid("nothing was changed, because the box of the confirmation is not ticked; tick it"))
}

async fn install(client: &Client, id: &InstallId, act: &str, request: &Request) -> Result<String, Failure> {
    check_confirmation(request)?;
    let release = match act {
        "deploy" => None,
        "deploy-release" => Some(request.form.parsed("release")?),
        _ => return Err(unknown()),
    };
    let deploy = DeployComponentsRequest { release, ..DeployComponentsRequest::default() };
    let started = client.send(&calls::deploy_components(id, &deploy).with_key(key(request))).await?;
    Ok(format!("/workflows/{}", started.workflow))
}

async fn workflow(client: &Client, id: &WorkflowId, act: &str, request: &Request) -> Result<String, Failure> {
    let reason = reason(&request.form);
    let workflow = match act {
        "cancel" => {
            check_confirmation(request)?;
            let cancel = CancelWorkflowRequest { reason };
            client.send(&calls::cancel_workflow(id, &cancel).with_key(key(request))).await?
        }
        "resume" => {
            let resume = ResumeWorkflowRequest { reason };
            client.send(&calls::resume_workflow(id, &resume).with_key(key(request))).await?
        }
        _ => return Err(unknown()),
    };
    Ok(format!("/workflows/{}", workflow.workflow))
}

async fn job(client: &Client, id: &JobId, act: &str, request: &Request) -> Result<String, Failure> {
    let (form, key) = (&request.form, key(request));
    match act {
        "approve" => {
            let approve = ApproveJobRequest { plan: form.parsed("plan")? };
            client.send(&calls::approve_job(id, &approve).with_key(key)).await?;
        }
        "reject" => {
            check_confirmation(request)?;
            let reject = RejectJobRequest { plan: form.parsed("plan")?, reason: form.get("reason").to_owned() };
            client.send(&calls::reject_job(id, &reject).with_key(key)).await?;
        }
        "cancel" => {
            check_confirmation(request)?;
            client.send(&calls::cancel_job(id, &CancelJobRequest { reason: reason(form) }).with_key(key)).await?;
        }
        "retry" => {
            let retry = RetryJobRequest { reason: reason(form) };
            let workflow = client.send(&calls::retry_job(id, &retry).with_key(key)).await?.workflow;
            return Ok(format!("/workflows/{workflow}"));
        }
        _ => return Err(unknown()),
    }
    Ok(format!("/jobs/{id}"))
}

async fn member(client: &Client, id: &MemberName, act: &str, request: &Request) -> Result<String, Failure> {
    let form = &request.form;
    match act {
        "groups" => {
            let (groups, apps, installs) = (form.list("groups")?, form.list("apps")?, form.list("installs")?);
            let set = SetMemberRequest { groups, apps, installs };
            client.send(&calls::set_member(id, &set).with_key(key(request))).await?;
            Ok(format!("/members/{}", encoded(id.as_str())))
        }
        "remove" => {
            check_confirmation(request)?;
            client.send(&calls::remove_member(id).with_key(key(request))).await?;
            Ok("/members".to_owned())
        }
        _ => Err(unknown()),
    }
}

async fn policies(client: &Client, request: &Request) -> Result<String, Failure> {
    check_confirmation(request)?;
    // Browsers send the line breaks of a text as CR LF.
    let policies = request.form.get("policies").replace("\r\n", "\n");
    let set = SetPoliciesRequest { policies, expected: Some(request.form.parsed("expected")?) };
    client.send(&calls::set_policies(&set).with_key(key(request))).await?;
    Ok("/policies".to_owned())
}

/// Returns the idempotency key of the form: a form that is sent twice does its work once.
fn key(request: &Request) -> String {
    request.form.get("key").to_owned()
}

fn reason(form: &Fields) -> Option<String> {
    form.given("reason").map(str::to_owned)
}

fn unknown() -> Failure {
    AppError::not_found("the console has no form with this address").into()
}
