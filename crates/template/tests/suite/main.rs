//! The template language: what it renders, what it refers to, what it refuses, and how it compares with Go's.

#![cfg(test)]

mod go;
mod normal_form;
mod references;
mod render;
mod robustness;
