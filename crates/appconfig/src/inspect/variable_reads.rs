//! Finds the input variables that a Terraform file reads.

use std::ops::Range;

use hcl_edit::Span as _;
use hcl_edit::expr::{Expression, ForExpr, Traversal, TraversalOperator};
use hcl_edit::structure::{Block, Body};
use hcl_edit::template::ForTemplateExpr;
use hcl_edit::visit::{Visit, visit_block, visit_for_expr, visit_for_template_expr, visit_traversal};

/// The object that holds the input variables of a module.
const OBJECT: &str = "var";

/// A variable that is read, and the bytes of the expression that reads it.
pub(super) type Read = (String, Option<Range<usize>>);

/// Returns the variables that the expressions of a file read, such as `region` of `var.region`.
pub(super) fn read(body: &Body) -> Vec<Read> {
    let mut visitor = Visitor::default();
    visitor.visit_body(body);
    visitor.found
}

#[derive(Default)]
struct Visitor {
    found: Vec<Read>,
}

impl Visit for Visitor {
    fn visit_traversal(&mut self, node: &Traversal) {
        if let Expression::Variable(object) = &node.expr
            && object.as_str() == OBJECT
            && let Some(TraversalOperator::GetAttr(name)) = node.operators.first().map(|operator| operator.value())
        {
            self.found.push((name.as_str().to_owned(), object.span()));
        }
        visit_traversal(self, node);
    }

    // In the expressions and blocks of the next three methods, `var` can be the name of a loop variable.
    fn visit_for_expr(&mut self, node: &ForExpr) {
        let key = node.intro.key_var.as_ref().map(|key| key.as_str());
        if [key, Some(node.intro.value_var.as_str())].contains(&Some(OBJECT)) {
            self.visit_expr(&node.intro.collection_expr);
        } else {
            visit_for_expr(self, node);
        }
    }

    fn visit_for_template_expr(&mut self, node: &ForTemplateExpr) {
        // The visitor of the `hcl` library does not visit the collection of a `for` in a template.
        self.visit_expr(&node.collection_expr);
        let key = node.key_var.as_ref().map(|key| key.as_str());
        if ![key, Some(node.value_var.as_str())].contains(&Some(OBJECT)) {
            visit_for_template_expr(self, node);
        }
    }

    fn visit_block(&mut self, node: &Block) {
        let is_iterator = || {
            let iterator = node.body.get_attribute("iterator").map(|one| &one.value);
            let named = iterator.and_then(|value| value.as_variable()).map(|name| name.as_str() == OBJECT);
            named.unwrap_or_else(|| node.labels.first().is_some_and(|label| label.as_str() == OBJECT))
        };
        if node.ident.as_str() != "dynamic" || !is_iterator() {
            visit_block(self, node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let body: Body = hcl_edit::parser::parse_body(text).unwrap();
        read(&body).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn variables_are_found_in_every_kind_of_expression() {
        let text = "locals {\n  a = var.plain\n  b = \"x-${var.text}-%{ if var.flag }y%{ endif }\"\n  c = <<EOT\n${var.heredoc}\nEOT\n  \
                    d = [for k, v in var.map : upper(v) if var.filter]\n  e = { (var.key) = var.objects[0].name, f = var.list[*].id }\n}\n\
                    module \"m\" {\n  source = \"./m\"\n  x = var.argument\n}\n";

        assert_eq!(
            names(text),
            ["plain", "text", "flag", "heredoc", "map", "filter", "key", "objects", "list", "argument"]
        );
    }

    #[test]
    fn another_thing_of_the_name_is_not_a_variable_of_the_module() {
        let text = "locals {\n  a = [for var in var.list : var.name]\n  b = local.var.name\n  c = \"%{ for var in var.all }${var.id}%{ endfor }\"\n}\n\
                    resource \"r\" \"n\" {\n  dynamic \"var\" {\n    for_each = []\n    content {\n      x = var.value\n    }\n  }\n  \
                    dynamic \"one\" {\n    for_each = var.ones\n    iterator = one\n    content {}\n  }\n}\n";

        assert_eq!(names(text), ["list", "all", "ones"]);
    }
}
