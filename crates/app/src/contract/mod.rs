//! Contracts: what a version may do at a customer, signed by the tenant and accepted by the customer.

pub mod sign_contract;
pub mod terms;
