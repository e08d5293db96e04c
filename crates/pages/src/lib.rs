//! The parts of an HTML page that a person reads: the layout, the stylesheet, tables, forms, graphs and the headers of
//! the response. A page needs no script, and everything that comes from outside is escaped.
//!
//! ```
//! use freehold_pages::{Facts, Link, Page, Site};
//! use maud::html;
//!
//! let site = Site { name: "Freehold", links: vec![Link::new("Installs", "/installs")], account: html! { "ana" } };
//! let content = Facts::new().with("Region", html! { "eu-west-1" }).render();
//! let page = Page::new("Install globex", content).render(&site);
//!
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! ```

mod badge;
mod facts;
mod form;
mod graph;
mod headers;
mod notice;
mod page;
mod style;
mod table;
mod text;

pub use badge::{Tone, badge, tone_of};
pub use facts::Facts;
pub use form::{Field, Form};
pub use graph::{Graph, LARGEST_GRAPH, Node};
pub use headers::{html_headers, origin_of, security_headers};
pub use notice::{empty, notice};
pub use page::{Link, Page, Site};
pub use style::{STYLE, STYLE_TYPE, style_path};
pub use table::{Table, pagination};
pub use text::{code, encoded, lines, time};
