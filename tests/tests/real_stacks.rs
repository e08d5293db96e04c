//! The install stacks of real apps keep every rule of `freehold install verify-template`, and are the same bytes each time.

use freehold_stackcheck::check;
use freehold_tests::harness::cloud::skip;
use freehold_tests::stacks::{generated, real_apps, real_apps_are_here};

#[test]
fn the_stacks_of_real_apps_keep_every_rule() {
    if !real_apps_are_here() {
        skip("real_stacks", "no real app configs beside the project").unwrap();
        return;
    }
    let (mut stacks, mut refused) = (0, Vec::new());

    for case in real_apps().unwrap() {
        match case.rendered().unwrap() {
            Ok(text) => {
                assert_eq!(check(&text).unwrap(), [], "{}", case.name);
                stacks += 1;
            }
            Err(error) => refused.push(format!("{}: {error}", case.name)),
        }
    }

    println!("{stacks} stacks; refused: {refused:#?}");
    assert!(stacks >= 20, "{refused:#?}");
}

#[test]
fn the_stacks_of_generated_apps_keep_every_rule() {
    for number in 0..50 {
        let case = generated(1, number).unwrap();

        let text = case.rendered().unwrap().unwrap();

        assert_eq!(check(&text).unwrap(), [], "{}", case.name);
    }
}
