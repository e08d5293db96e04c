//! `freehold` as a person runs it: the real binary, on files, against prepared answers, or against the local cloud.

#![cfg(test)]

mod access;
mod app;
mod check;
mod contract_propose;
mod cost;
mod customer;
mod empty_lists;
mod hostile_texts;
mod install;
mod lineage;
mod mistakes;
mod policy_test;
mod proxy;
mod sign_in;
mod subscription;
mod support;
mod tenant;
#[cfg(target_os = "linux")]
mod terminal;
mod tools;
mod verify_licence;
mod verify_template;
mod verify_template_contract;
mod watch;
mod webhook;
