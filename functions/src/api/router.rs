//! Finds the operation of a request by its method and path.

use freehold_app::AppError;
use matchit::Router;

use super::routes::{Operation, ROUTES};

/// Finds the operation for a method and a path.
#[derive(Debug)]
pub(super) struct Routes {
    get: Router<Operation>,
    post: Router<Operation>,
}

impl Routes {
    /// Returns a matcher for all routes.
    ///
    /// # Errors
    /// When two routes conflict. A test checks that no two routes do.
    pub(super) fn new() -> Result<Self, matchit::InsertError> {
        let mut routes = Self { get: Router::new(), post: Router::new() };
        for route in ROUTES {
            let router = if route.method == "GET" { &mut routes.get } else { &mut routes.post };
            router.insert(route.path, route.operation)?;
        }
        Ok(routes)
    }

    /// Returns the operation for a method and path, and the values of the path's placeholders.
    ///
    /// # Errors
    /// NotFound when no route matches.
    pub(super) fn find(&self, method: &str, path: &str) -> Result<(Operation, Vec<(String, String)>), AppError> {
        let path = path.trim_end_matches('/');
        let router = match method {
            "GET" => Some(&self.get),
            "POST" => Some(&self.post),
            _ => None,
        };
        let found = router.and_then(|router| router.at(path).ok()).ok_or_else(|| {
            let shown: String = path.chars().take(120).collect();
            AppError::not_found(format!(
                "there is no route `{method} {shown}`; docs/openapi.json lists the routes, and `freehold tenant deploy` adds \
                 those of its release"
            ))
        })?;
        let parameters = found.params.iter().map(|(name, value)| (name.to_owned(), decoded(value))).collect();
        Ok((*found.value, parameters))
    }
}

/// The characters of ids, names and digests that clients may percent-encode in a path: the colon of a digest, and `@` and
/// `+` in the name of a member.
const ENCODED: [(&str, &str); 5] = [("%3A", ":"), ("%3a", ":"), ("%40", "@"), ("%2B", "+"), ("%2b", "+")];

fn decoded(value: &str) -> String {
    ENCODED.iter().fold(value.to_owned(), |text, (code, character)| text.replace(code, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_by_its_own_path() {
        let routes = Routes::new().unwrap();

        for route in ROUTES {
            let path = route.path.replace(['{', '}'], "");
            assert_eq!(routes.find(route.method, &path).unwrap().0, route.operation, "{}", route.path);
        }
    }

    #[test]
    fn a_members_name_may_be_percent_encoded_in_a_path() {
        let routes = Routes::new().unwrap();

        for written in ["ana+ops@example.com", "ana%2Bops%40example.com", "ana%2bops%40example.com"] {
            let (operation, path) = routes.find("POST", &format!("/v1/members/{written}/remove")).unwrap();

            assert_eq!(operation, Operation::RemoveMember, "{written}");
            assert_eq!(path, [("member".to_owned(), "ana+ops@example.com".to_owned())], "{written}");
        }
    }

    #[test]
    fn an_unknown_path_is_named() {
        let error = Routes::new().unwrap().find("DELETE", "/v1/apps").unwrap_err();

        assert_eq!(
            error.to_string(),
            "there is no route `DELETE /v1/apps`; docs/openapi.json lists the routes, and `freehold tenant deploy` adds those of \
             its release"
        );
    }
}
