//! The twelve questions that a customer may ask, and the evidence for each answer.

/// A question of a customer about one install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    MayDo,
    Changed,
    Asked,
    Approved,
    Ran,
    Origin,
    Sent,
    Outside,
    Whole,
    CanStop,
    IsStopped,
    IsGone,
}

impl Question {
    pub(super) const ALL: [Self; 12] = [
        Self::MayDo,
        Self::Changed,
        Self::Asked,
        Self::Approved,
        Self::Ran,
        Self::Origin,
        Self::Sent,
        Self::Outside,
        Self::Whole,
        Self::CanStop,
        Self::IsStopped,
        Self::IsGone,
    ];

    /// Returns the question in the customer's words.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::MayDo => "What may the vendor do here?",
            Self::Changed => "What changed since I agreed?",
            Self::Asked => "Who asked for this?",
            Self::Approved => "Who approved it, on which plan?",
            Self::Ran => "What exactly ran?",
            Self::Origin => "Where did this image come from?",
            Self::Sent => "What left my account?",
            Self::Outside => "Did anything happen outside the log?",
            Self::Whole => "Is the log whole?",
            Self::CanStop => "Can I stop it now?",
            Self::IsStopped => "Is it really stopped?",
            Self::IsGone => "Is everything gone?",
        }
    }

    /// Returns the command that answers the question.
    pub(super) const fn command(self) -> &'static str {
        match self {
            Self::MayDo => "freehold customer permissions",
            Self::Changed => "freehold customer changes",
            Self::Asked => "freehold customer asked",
            Self::Approved => "freehold customer approvals",
            Self::Ran => "freehold customer ran",
            Self::Origin => "freehold customer origin",
            Self::Sent => "freehold customer sent",
            Self::Outside => "freehold customer outside",
            Self::Whole => "freehold customer audit verify",
            Self::CanStop => "freehold customer pause",
            Self::IsStopped => "freehold customer stopped",
            Self::IsGone => "freehold customer gone",
        }
    }

    /// Returns the evidence for the answer, and the limits of this evidence.
    pub(crate) const fn rests_on(self) -> &'static str {
        match self {
            Self::MayDo => {
                "The template of the launched stack, compared with the template that this program contains; the switches \
                 of the stack; with `--contract`, the signed contract. Policies that you attached to the roles yourself \
                 are not read."
            }
            Self::Changed => {
                "The contract that you agreed to and the new one, each with the vendor's signature; the template of the \
                 launched stack and the new template, line by line. The terms have only a digest of an action's steps, so the \
                 comparison shows that steps changed, but not how."
            }
            Self::Asked => {
                "The record of each start, and of each job that ended before it started, and the signed order that \
                 each record names by digest. The vendor's control plane signs who asked: nobody outside the vendor's \
                 account can check this name."
            }
            Self::Approved => {
                "The records of plans that waited and of plans that were applied with an approval, each with the \
                 digests of the plan and of its bytes. Only the vendor states, in the signed order, who approved for \
                 the vendor. Your own object below `approvals/` names who approved for you; no role of the install can \
                 write this object."
            }
            Self::Ran => {
                "The record of each start and end, and the signed order with the artifacts, images and steps by digest; \
                 the job's full log, whose digest is in the record of the end. Plans are in the bucket, below `plans/`, \
                 and no record names them."
            }
            Self::Origin => {
                "The statement of the build in the signed order, under the vendor's root key. The statement names what \
                 the vendor's build runner used. `freehold lineage verify` checks the rest of the chain in a bundle of \
                 the vendor."
            }
            Self::Sent => {
                "The records that name each report by digest before it is sent, and the texts of the reports in the \
                 bucket. Neither contains what the programs of jobs send to the hosts of the contract."
            }
            Self::Outside => {
                "CloudTrail's events of the last 90 days, from one region, compared with the records. CloudTrail shows \
                 an event after about 15 minutes, and does not show reads and writes of objects and messages. A job may \
                 have one session for each attempt, for each renewal and for each failure. The records name what a job \
                 changed in IAM, and no other resources of a job, so every other call of its sessions counts as its own. \
                 Of the runner's own role, only changes are compared: the call, and the resource if CloudTrail names one. \
                 For a key, CloudTrail shows only the account."
            }
            Self::Whole => {
                "The signatures, numbers and digests of the chain; the records that reports and the control plane's \
                 receipts name; with `--seen`, records that you noted. A cut is found if a report, a receipt or \
                 `--seen` names a record that was cut off."
            }
            Self::CanStop => {
                "A change of one parameter of the stack, with the template that is launched. The change takes effect \
                 at the next request, also for live sessions, and needs nothing from the vendor."
            }
            Self::IsStopped => {
                "The policies that IAM has at this moment, which IAM itself evaluates for the runner and each mode \
                 (`iam:SimulatePrincipalPolicy`); the trust of each role; the machines of the stack's group. The policy \
                 of the vendor's queue is in the vendor's account, and is not read."
            }
            Self::IsGone => {
                "A search for the tags and names that the install's resources have: resources of one region by tag, \
                 roles, the stacks, the bucket with Terraform's states, the registry, the keys. Resources without tags \
                 are not found. The proof that such an install existed is its deleted stack, which AWS lists for 90 \
                 days, or its key that waits for deletion."
            }
        }
    }

    /// Returns the end of the help of the command that answers the question.
    pub(crate) fn help(self, examples: &str) -> String {
        format!("{examples}\n\nQuestion: {}\n\nThe answer rests on: {}", self.text(), self.rests_on())
    }
}

/// Returns the end of the help of `freehold customer`: the questions, each with the command that answers it.
pub(crate) fn questions() -> String {
    let rows = Question::ALL.map(|question| format!("  {:<38}  {}", question.text(), question.command()));
    format!(
        "Questions, and the command that answers each:\n{}\n\nAll of them use your own AWS credentials or a copy of your bucket \
         (`--copy DIR`), and none calls a service of the vendor. `freehold customer ui` shows the answers as pages in a browser, and `freehold \
         customer man` prints a page about them.",
        rows.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn the_command_of_each_question_has_the_question_in_its_help() {
        for question in Question::ALL {
            let mut command = Cli::command();
            for word in question.command().split(' ').skip(1) {
                command = command.find_subcommand(word).unwrap().clone();
            }

            assert!(command.get_after_help().unwrap().to_string().contains(question.text()), "{question:?}");
        }
    }
}
