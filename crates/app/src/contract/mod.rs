//! Contracts: what a version may do in a customer's account, signed by the tenant and accepted by the customer.

pub mod sign_contract;
pub mod terms;
