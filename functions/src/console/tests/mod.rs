//! Tests of the console as a whole: its pages as documents, hostile texts in them, and its sessions.

mod api;
mod document;
mod examples;
mod hostile_texts;
mod pages;
mod payloads;
mod visits;
mod world;
