//! Random expressions of each type: texts, numbers, conditions, lists and maps.

use super::{Maker, Type};

impl Maker {
    pub(super) fn text(&mut self, depth: usize) -> String {
        if let Some(name) = self.named(Type::Text) {
            return name;
        }
        if depth == 0 || self.one_in(4) {
            let path = self.pick(&["a", "b", "c.d", "c.e"]).to_owned();
            return if self.one_in(2) { self.path(&path) } else { self.literal() };
        }
        let d = depth - 1;
        match self.below(26) {
            0 => {
                let function = self.pick(&[
                    "upper",
                    "lower",
                    "trim",
                    "quote",
                    "squote",
                    "title",
                    "untitle",
                    "b64enc",
                    "sha256sum",
                    "html",
                    "urlquery",
                    "toString",
                    "toJson",
                    "print",
                    "toRawJson",
                    "regexQuoteMeta",
                ]);
                let text = self.text(d);
                self.call(function, &text)
            }
            1 => {
                let function = self.pick(&["trimPrefix", "trimSuffix", "trimAll", "cat", "print"]);
                let (one, two) = (self.literal(), self.text(d));
                self.call(&format!("{function} {one}"), &two)
            }
            2 => {
                let (old, new, text) = (self.literal(), self.literal(), self.text(d));
                self.call(&format!("replace {old} {new}"), &text)
            }
            3 => {
                let (one, two, three) = (self.text(d), self.whole(d), self.flag(d));
                let format = self.pick(&["%s-%d-%t", "%q|%5d|%v", "%-8s|%05d|%6t", "%v %x %v", "%.3s%+d%v%%"]);
                format!("(printf \"{format}\" {one} {two} {three})")
            }
            4 => {
                let any = self.anything(d);
                let function = self.pick(&["toJson", "toPrettyJson", "toRawJson", "toString", "quote", "squote"]);
                self.call(function, &any)
            }
            5 => {
                let (separator, list) = (self.literal(), self.texts(d));
                self.call(&format!("join {separator}"), &list)
            }
            6 => {
                let (length, text) = (self.below(9) as i64 - 4, self.ascii());
                self.call(&format!("trunc {length}"), &text)
            }
            7 => {
                let (from, text) = (self.below(3), self.text(d));
                let to = from + self.below(4);
                self.call(&format!("substr {from} {to}"), &format!("(sha256sum {text})"))
            }
            8 => {
                let (function, text) = (self.pick(&["indent", "nindent", "repeat"]), self.text(d));
                let width = self.below(4);
                self.call(&format!("{function} {width}"), &text)
            }
            9 | 10 => {
                let (one, two) = (self.text(d), self.text(d));
                self.call(&format!("default {one}"), &two)
            }
            11 => format!("(coalesce {} {} `z`)", self.text(d), self.text(d)),
            12 => {
                let (one, two, flag) = (self.text(d), self.text(d), self.flag(d));
                self.call(&format!("ternary {one} {two}"), &flag)
            }
            13 => {
                let (one, two) = (self.text(d), self.text(d));
                format!("(index (dict \"k\" {one} \"l\" {two}) \"k\")")
            }
            14 => format!("(dict \"k\" {}).k", self.text(d)),
            15 => {
                let list = self.filled(d);
                let function = self.pick(&["first", "last"]);
                self.call(function, &list)
            }
            16 => {
                let (separator, text) = (self.pick(&["\",\"", "`a`"]).to_owned(), self.text(d));
                format!("(split {separator} {text})._0")
            }
            17 => {
                let pattern =
                    self.pick(&["`[a-z]+`", "`\\\\d`", "`(a|b)*`", "`[^a-z]`", "`\\s+$`", "`.`", "`^`", "`(?i)z|é`"]);
                let text = self.text(d);
                match self.below(3) {
                    0 => format!("(regexReplaceAll {pattern} {text} \"<$0>\")"),
                    1 => format!("(regexReplaceAllLiteral {pattern} {text} \"$0\")"),
                    _ => format!("(regexFind {pattern} {text})"),
                }
            }
            18 => format!("(toJson (fromJson (toJson (dict \"v\" {}))).v)", self.text(d)),
            19 => format!("(b64dec (b64enc {}))", self.text(d)),
            20 => format!("(get {} {})", self.map(d), self.literal()),
            21 => format!("(dig \"k\" {} (dict \"k\" {}))", self.literal(), self.text(d)),
            22 => format!("(kindOf {})", if self.one_in(2) { self.texts(d) } else { self.map(d) }),
            23 => format!("(or {} {})", self.text(d), self.text(d)),
            24 => format!("(and {} {})", self.text(d), self.text(d)),
            _ => format!("(println {} {})", self.whole(d), self.text(d)),
        }
    }

    /// Returns a text whose characters are bytes, so that Go cuts no character.
    fn ascii(&mut self) -> String {
        match self.below(4) {
            0 => self.path("b"),
            1 => format!("(nospace {})", self.path("b")),
            2 => format!("(b64enc {})", self.text(0)),
            _ => format!("(sha256sum {})", self.text(0)),
        }
    }

    pub(super) fn whole(&mut self, depth: usize) -> String {
        if let Some(name) = self.named(Type::Whole) {
            return name;
        }
        if depth == 0 || self.one_in(3) {
            let number = self.below(200) as i64 - 100;
            let literals = [number.to_string(), "0x1f".to_owned(), "0b11".to_owned(), "1_0".to_owned()];
            return literals[if self.one_in(5) { self.below(4) } else { 0 }].clone();
        }
        let d = depth - 1;
        match self.below(8) {
            0 => {
                let text = self.text(d);
                self.call("len", &text)
            }
            1 => {
                let list = self.texts(d);
                self.call("len", &list)
            }
            2 => {
                let function = self.pick(&["add", "sub", "mul", "max", "min"]);
                let (one, two) = (self.whole(d), self.whole(d));
                self.call(&format!("{function} {one}"), &two)
            }
            3 => format!("({} {} {})", self.pick(&["div", "mod"]), self.whole(d), 1 + self.below(9)),
            4 => {
                let number = self.path("n");
                let word = self.pick(&["int", "int64"]);
                self.call(word, &number)
            }
            5 => format!("(add1 {})", self.whole(d)),
            6 => format!("(ternary {} {} {})", self.whole(d), self.whole(d), self.flag(d)),
            _ => format!("(len {})", self.map(d)),
        }
    }

    pub(super) fn flag(&mut self, depth: usize) -> String {
        if let Some(name) = self.named(Type::Flag) {
            return name;
        }
        if depth == 0 || self.one_in(4) {
            let path = self.pick(&["on", "off"]).to_owned();
            return if self.one_in(2) { self.path(&path) } else { self.pick(&["true", "false"]).to_owned() };
        }
        let d = depth - 1;
        match self.below(10) {
            0 => format!("({} {} {})", self.pick(&["eq", "ne", "lt", "le", "gt", "ge"]), self.text(d), self.text(d)),
            1 => format!("({} {} {})", self.pick(&["eq", "ne", "lt", "le", "gt", "ge"]), self.whole(d), self.whole(d)),
            2 => format!("({} {} {})", self.pick(&["and", "or"]), self.flag(d), self.flag(d)),
            3 => {
                let value = self.anything(d);
                let function = self.pick(&["not", "empty"]);
                self.call(function, &value)
            }
            4 => {
                let function = self.pick(&["contains", "hasPrefix", "hasSuffix"]);
                let (one, two) = (self.text(d), self.text(d));
                self.call(&format!("{function} {one}"), &two)
            }
            5 => format!("(has {} {})", self.text(d), self.texts(d)),
            6 => format!("(hasKey {} {})", self.map(d), self.literal()),
            7 => format!("(eq {} {} {})", self.text(d), self.text(d), self.text(d)),
            8 => format!("({} {} {})", self.pick(&["all", "any"]), self.anything(d), self.text(d)),
            _ => format!("(regexMatch `^[a-z]+` {})", self.text(d)),
        }
    }

    pub(super) fn texts(&mut self, depth: usize) -> String {
        if let Some(name) = self.named(Type::Texts) {
            return name;
        }
        if depth == 0 || self.one_in(4) {
            let path = self.pick(&["words", "words", "none"]).to_owned();
            return self.path(&path);
        }
        let d = depth - 1;
        match self.below(11) {
            0 => {
                let function = self.pick(&["sortAlpha", "uniq", "reverse", "compact", "toStrings"]);
                let list = self.texts(d);
                self.call(function, &list)
            }
            1 => format!("(without {} {})", self.texts(d), self.text(d)),
            2 => format!("(concat {} {})", self.texts(d), self.texts(d)),
            3 => {
                let (separator, text) = (self.literal(), self.text(d));
                self.call(&format!("splitList {separator}"), &text)
            }
            4 => format!("(keys {} | sortAlpha)", self.map(d)),
            5 => format!("(values {} | sortAlpha)", self.map(d)),
            6 => format!("({} {})", self.pick(&["rest", "initial"]), self.filled(d)),
            7 => format!("(regexFindAll `.*` {} {})", self.text(d), self.pick(&["-1", "1", "2"])),
            8 => format!("(regexSplit `[a-z]+` {} {})", self.text(d), self.pick(&["-1", "1", "2"])),
            9 => format!("(slice {} 1)", self.filled(d)),
            _ => self.filled(d),
        }
    }

    /// Returns a list that is not empty.
    fn filled(&mut self, depth: usize) -> String {
        let d = depth.saturating_sub(1);
        match self.below(4) {
            0 => self.path("words"),
            1 => format!("(list {} {})", self.text(d), self.text(d)),
            2 => format!("(append {} {})", self.texts(d), self.text(d)),
            _ => format!("(prepend {} {})", self.texts(d), self.text(d)),
        }
    }

    pub(super) fn map(&mut self, depth: usize) -> String {
        if let Some(name) = self.named(Type::Map) {
            return name;
        }
        if depth == 0 || self.one_in(4) {
            let path = self.pick(&["map", "c"]).to_owned();
            return self.path(&path);
        }
        let d = depth - 1;
        match self.below(5) {
            0 => format!("(dict {} {} \"b\" {})", self.literal(), self.text(d), self.text(d)),
            1 => format!("(pick {} {} \"d\")", self.map(d), self.literal()),
            2 => format!("(omit {} {} \"e\")", self.map(d), self.literal()),
            3 => {
                let function = self.pick(&["merge", "mergeOverwrite"]);
                // Go changes the first argument; here it is one that nothing else sees.
                format!("({function} (dict \"d\" {}) {})", self.text(d), self.map(d))
            }
            _ => format!("(fromJson (toJson {}))", self.map(d)),
        }
    }

    fn anything(&mut self, depth: usize) -> String {
        match self.below(6) {
            0 => self.path("any"),
            1 => self.whole(depth),
            2 => self.flag(depth),
            3 => self.texts(depth),
            4 => self.map(depth),
            _ => self.text(depth),
        }
    }
}
