//! The check of a template: what it finds, what it lets pass, and what it answers.

#![cfg(test)]

mod agreed_terms;
mod answer;
mod as_rendered;
mod policy_values;
mod rules;
