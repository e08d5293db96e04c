//! The layout of every page: its title and language, a link over the navigation, the landmarks, and the stylesheet.

use maud::{DOCTYPE, Markup, html};

use crate::style::style_path;

/// What is the same on all pages of a site.
#[derive(Debug)]
pub struct Site<'a> {
    pub name: &'a str,
    /// The navigation.
    pub links: Vec<Link<'a>>,
    /// At the end of the header, such as who is signed in.
    pub account: Markup,
}

/// A link to a page of the site.
#[derive(Debug, Clone)]
pub struct Link<'a> {
    text: &'a str,
    href: &'a str,
}

impl<'a> Link<'a> {
    /// Returns a link with a text to a path that begins with `/`.
    pub const fn new(text: &'a str, href: &'a str) -> Self {
        Self { text, href }
    }

    /// Returns whether `path` is the page of the link or below it.
    fn is_above(&self, path: &str) -> bool {
        path.strip_prefix(self.href).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// One page.
#[derive(Debug)]
pub struct Page<'a> {
    title: &'a str,
    content: Markup,
    path: &'a str,
    trail: Vec<(String, String)>,
    script: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// Returns a page whose title is its one heading of the first level. `content` has no other `h1`.
    pub const fn new(title: &'a str, content: Markup) -> Self {
        Self { title, content, path: "", trail: Vec::new(), script: None }
    }

    /// Sets the path of the page, by which the navigation marks its link.
    #[must_use]
    pub const fn at(mut self, path: &'a str) -> Self {
        self.path = path;
        self
    }

    /// Adds a page above this one: its text and its path.
    #[must_use]
    pub fn below(mut self, text: impl Into<String>, href: impl Into<String>) -> Self {
        self.trail.push((text.into(), href.into()));
        self
    }

    /// Loads the script at a path of the own origin, after the page.
    #[must_use]
    pub const fn with_script(mut self, path: &'a str) -> Self {
        self.script = Some(path);
        self
    }

    /// Returns the document.
    pub fn render(&self, site: &Site<'_>) -> String {
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="robots" content="noindex";
                    title { (self.title) " · " (site.name) }
                    link rel="stylesheet" href=(style_path());
                    @if let Some(script) = self.script { script src=(script) defer {} }
                }
                body {
                    a .skip href="#main" { "Skip to the content" }
                    (self.header(site))
                    main #main tabindex="-1" {
                        (self.trail())
                        h1 { (self.title) }
                        (self.content)
                    }
                    footer { "Times are in UTC." }
                }
            }
        };
        document.into_string()
    }

    fn header(&self, site: &Site<'_>) -> Markup {
        html! {
            header .site {
                strong { (site.name) }
                @if !site.links.is_empty() {
                    nav aria-label="Site" {
                        ul {
                            @for link in &site.links {
                                li {
                                    a href=(link.href) aria-current=[link.is_above(self.path).then_some("page")] {
                                        (link.text)
                                    }
                                }
                            }
                        }
                    }
                }
                (site.account)
            }
        }
    }

    fn trail(&self) -> Markup {
        html! {
            @if !self.trail.is_empty() {
                nav aria-label="Pages above" {
                    @for (text, href) in &self.trail { a href=(href) { (text) } " / " }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site<'static> {
        let links = vec![Link::new("Installs", "/installs"), Link::new("Apps", "/apps")];
        Site { name: "Freehold", links, account: html! { "ana" } }
    }

    #[test]
    fn a_page_has_a_title_a_language_landmarks_and_a_skip_link() {
        let page = Page::new("Install <globex>", html! { p { "x" } }).at("/installs/globex").render(&site());

        for part in [
            "<!DOCTYPE html><html lang=\"en\">",
            "<title>Install &lt;globex&gt; · Freehold</title>",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
            "<a class=\"skip\" href=\"#main\">",
            "<header class=\"site\">",
            "<main id=\"main\" tabindex=\"-1\">",
            "<a href=\"/installs\" aria-current=\"page\">Installs</a>",
            "<a href=\"/apps\">Apps</a>",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert_eq!(page.matches("<h1>").count(), 1);
        assert!(!page.contains("<script"), "{page}");
    }

    #[test]
    fn a_script_and_the_pages_above_are_there_on_request() {
        let page = Page::new("Job", Markup::default()).below("Installs", "/installs").with_script("/assets/live.js");

        let page = page.render(&site());

        assert!(page.contains("<script src=\"/assets/live.js\" defer></script>"), "{page}");
        assert!(page.contains("<nav aria-label=\"Pages above\"><a href=\"/installs\">Installs</a> / </nav>"), "{page}");
    }
}
