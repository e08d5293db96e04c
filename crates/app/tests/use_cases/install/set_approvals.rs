//! Setting the approval option: orders follow it from then on, except where the policies decide.

use freehold_app::{Kind, read};
use freehold_protocol::api::{ApprovalOption, SetApprovalsRequest};

use crate::support::{World, globex};

#[tokio::test]
async fn the_option_of_an_install_is_shown_and_set_again_without_a_write() {
    let world = World::with_install().await;
    let set = |approval_option| SetApprovalsRequest { approval_option };

    let before = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    world.set_approvals().set(&globex(), &set(ApprovalOption::Prompt)).await.unwrap();
    let rows = world.memory.rows();
    world.set_approvals().set(&globex(), &set(ApprovalOption::Prompt)).await.unwrap();
    let after = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let unknown =
        world.set_approvals().set(&"nobody".parse().unwrap(), &set(ApprovalOption::Prompt)).await.unwrap_err();

    assert_eq!((before.approval_option, after.approval_option), (ApprovalOption::ApproveAll, ApprovalOption::Prompt));
    assert_eq!(world.memory.rows(), rows);
    assert_eq!(unknown.kind, Kind::NotFound);
}
