//! Every decision page has the same title in three places, and the lists are in the order of the numbers.

use std::fs;

use crate::top;

#[test]
fn each_decision_has_one_title_in_its_page_and_in_both_lists() {
    let folder = top().join("docs/decisions");
    let mut pages: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    pages.sort();
    assert!(pages.len() > 50, "there are {} pages of decisions", pages.len());
    let titles: Vec<(String, String, String)> = pages
        .into_iter()
        .map(|page| {
            let text = fs::read_to_string(folder.join(&page)).unwrap();
            let heading = text.lines().next().unwrap_or_default().trim_start_matches("# ");
            let (number, title) = heading.split_once(": ").unwrap_or_default();
            (page, number.to_owned(), title.to_owned())
        })
        .collect();

    for (page, number, _) in &titles {
        assert_eq!(page.get(..4), Some(number.as_str()), "the heading of {page} is `# NUMBER: title`");
    }
    for pair in titles.windows(2) {
        assert_ne!(pair[0].1, pair[1].1, "{} and {} have one number", pair[0].0, pair[1].0);
    }
    let rows = titles.iter().map(|(page, number, title)| format!("| [{number}]({page}) | {title} |"));
    same("docs/decisions/README.md", "| [0", rows.collect());
    let entries = titles.iter().map(|(page, number, title)| format!("    - [{number}: {title}](decisions/{page})"));
    same("docs/SUMMARY.md", "    - [0", entries.collect());
}

/// Fails when the lines of `list` that begin with `start` are not `wanted`, and names the first difference.
fn same(list: &str, start: &str, wanted: Vec<String>) {
    let text = fs::read_to_string(top().join(list)).unwrap();
    let mut found = text.lines().filter(|line| line.starts_with(start));
    for line in wanted {
        assert_eq!(found.next(), Some(line.as_str()), "{list}");
    }
    assert_eq!(found.next(), None, "{list} names a page that is not there");
}
