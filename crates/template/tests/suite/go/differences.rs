//! Where this engine differs from Go's on purpose; each with what both do, nothing for a refusal.

/// One difference.
pub(crate) struct Difference {
    pub(crate) text: &'static str,
    pub(crate) go: Option<&'static str>,
    pub(crate) ours: Option<&'static str>,
}

const fn differs(text: &'static str, go: Option<&'static str>, ours: Option<&'static str>) -> Difference {
    Difference { text, go, ours }
}

/// Both refuse.
const fn refused(text: &'static str) -> Difference {
    differs(text, None, None)
}

pub(crate) const ALL: &[Difference] = &[
    // A missing key is an error here, unless the template asks.
    differs("[{{ .nuon.gone }}]", Some("[]"), None),
    differs("[{{ index .nuon.install \"gone\" }}]", Some("[]"), None),
    differs("[{{ .nuon.sandbox.outputs.none }}]", Some("[]"), None),
    differs("{{ range .nuon.gone }}{{ end }}", Some(""), None),
    differs("{{ .nuon.gone.further | default 1 }}", None, Some("1")),
    // Whole numbers have no exponent, and a number is a number.
    differs("{{ 3000000.0 }} {{ 1e6 }}", Some("3e+06 1e+06"), Some("3000000 1000000")),
    differs("{{ 0.00001 }}", Some("1e-05"), Some("0.00001")),
    differs("{{ eq 1 1.0 }}", None, Some("true")),
    differs("{{ kindOf .nuon.inputs.inputs.n }}", Some("float64"), Some("int")),
    differs("{{ range .nuon.inputs.inputs.n }}.{{ end }}", None, Some("............")),
    differs("{{ kindOf (add 1 2) }}", Some("int64"), Some("int")),
    differs("{{ coalesce \"\" nil }}", Some(""), None),
    differs("{{ regexFindAll \"a\" \"b\" -1 | toJson }}", Some("null"), Some("[]")),
    differs("{{ nospace \"a é\" }}", Some("a\u{c3}\u{a9}"), Some("aé")),
    differs("{{ substr 2 4 \"a\" }}", None, Some("")),
    differs("{{ trunc 1 \"é\" }}", Some("\u{fffd}"), Some("")),
    // Paths as real configs write them.
    differs("{{ nuon.install.id }}", None, Some("acme")),
    differs("{{ .freehold.install.id }}", None, Some("acme")),
    // An error names what Go hides.
    differs("{{ int \"abc\" }}", Some("0"), None),
    differs("{{ b64dec \"!\" }}", Some("illegal base64 data at input byte 0"), None),
    differs("{{ add 9223372036854775807 1 }}", Some("-9223372036854775808"), None),
    differs("{{ dict \"a\" }}", Some("map[a:]"), None),
    differs("{{ printf \"%d\" \"x\" }}", Some("%!d(string=x)"), None),
    differs("{{ printf \"%s\" 5 }}", Some("%!s(int=5)"), Some("5")),
    differs("{{ fromJson \"[\" }}", Some("map[Error:unexpected end of JSON input]"), None),
    differs("{{ regexMatch \"(\" \"a\" }}", Some("false"), None),
    // Go counts since 1.24; the engine in `helm` is older.
    differs("{{ range 3 }}{{ . }}{{ end }}{{ range $i := 2 }}{{ $i }}{{ end }}", None, Some("01201")),
    differs("{{ range 0 }}x{{ else }}none{{ end }}", None, Some("none")),
    // Go's builtin cuts strings; Sprig's function of the same name does not.
    differs("{{ slice \"abc\" 1 2 }}", None, Some("b")),
    // A condition need not be a boolean.
    differs("{{ ternary 1 2 \"x\" }}", None, Some("1")),
    // A text can be compared with a boolean: the answer to an input of type `bool` is one.
    differs("{{ eq \"true\" .nuon.inputs.inputs.on }}{{ eq true \"True\" }}", None, Some("truefalse")),
    differs("{{ ternary 3 0 (eq \"false\" .nuon.inputs.inputs.on) }}", None, Some("0")),
    differs("{{ ne .nuon.inputs.inputs.off \"true\" }}", None, Some("true")),
    refused("{{ eq \"12\" .nuon.inputs.inputs.n }}"),
    // A comment may have more space before it.
    differs("{{   /* x */ }}", None, Some("")),
    // Left out.
    differs("{{ define \"x\" }}{{ end }}", Some(""), None),
    differs("{{ 'a' }}", Some("97"), None),
    differs("{{ $d := dict }}{{ $_ := set $d \"a\" 1 }}{{ $d.a }}", Some("1"), None),
    // What Go refuses is refused.
    refused("{{ index .nuon.sandbox.outputs.ids 7 }}"),
    refused("{{ index .nuon.sandbox.outputs.ids \"a\" }}"),
    refused("{{ div 1 0 }}"),
    refused("{{ required \"set it\" .nuon.install.empty }}"),
    refused("{{ required \"set it\" .nuon.gone }}"),
    refused("{{ fail \"no\" }}"),
    refused("{{ eq \"1\" 1 }}"),
    refused("{{ lt 1 \"a\" }}"),
    refused("{{ .nuon.install.id.deep }}"),
    refused("{{ len 3 }}"),
    refused("{{ range true }}{{ end }}"),
    refused("{{ range $i, $v := 3 }}{{ end }}"),
    refused("{{ upper 1 }}"),
    refused("{{ join \",\" }}"),
    refused("{{ nope }}"),
    refused("{{ $x }}"),
    refused("{{ \"a }}"),
    refused("{{ if true }}"),
    refused("{{ end }}"),
    refused("{{ \"\\q\" }}"),
    refused("{{ 08 }}"),
    refused("{{ 1__0 }}"),
    refused("{{ 9223372036854775808 }}"),
    refused("{{ .nuon.install \"x\" }}"),
    refused("{{ break }}"),
    refused("{{ range list 1 }}{{ else }}{{ break }}{{ end }}"),
    refused("{{ nil }}"),
    refused("{{ if true }}{{ $y := 1 }}{{ end }}{{ $y }}"),
    refused("{{ \u{a0}1 }}"),
    refused("{{ and }}"),
];
