"""Types are read from Rust sources as serde sees them. A reader refuses and ignores what an earlier version does."""

import unittest

from description import describe
from reader import Reader, Refused, all_names

NOTE = """
//! A file.
use freehold_protocol::JobId;

/// A note.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// The job, or "none".
    pub first_job: JobId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    #[serde(flatten)]
    pub place: Place,
    pub counts: BTreeMap<String, Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "state", content = "of", rename_all = "snake_case")]
pub(crate) enum State { NotBegun, Ended(Box<End>) }

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End { pub at: u32, #[serde(default)] why: String }

#[derive(Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Place { FarAway { miles: u8 }, Here }

id!(
    /// The id of a job.
    JobId, "a job id", Shape::Hex { prefix: "job_", digits: 20 }
);

#[cfg(test)]
mod tests {
    #[derive(Serialize)]
    struct Note { other: u8 }
}
"""


EVENT = """
#[derive(Serialize, Deserialize)]
pub struct Note { pub event: Event }

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Begun { at: u32 },
    /// An event of a later version.
    #[serde(untagged)]
    Later(LaterEvent),
}

#[derive(Serialize, Deserialize)]
pub struct LaterEvent {
    pub event: String,
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}
"""


def reader(source=NOTE):
    return Reader(describe({"crates/protocol/src/note.rs": source}, {"files": {"Note": "crates/protocol/"}}))


def note(**others):
    return {"firstJob": "job_1", "is": "far-away", "miles": 7, "counts": {"a": [1]}} | others


class ReaderOfRustTypes(unittest.TestCase):
    def test_a_value_with_each_field_and_variant_is_read_and_nothing_is_missing(self):
        one = reader()

        one.read("Note", note(state={"state": "ended", "of": {"at": 1, "why": "x"}}))
        one.read("Note", {"firstJob": "job_1", "is": "here", "counts": {}, "state": {"state": "not_begun"}})

        self.assertEqual(all_names({"types": one.types}) - one.seen, set())
        self.assertEqual(one.ignored, set())

    def test_what_serde_refuses_is_refused(self):
        end = {"state": "ended", "of": {"at": 1}}
        for value, reason in [
            (note(miles=256), "u8: 256 is of another type"),
            (note(firstJob=1), "text: 1 is of another type"),
            ({"is": "here", "counts": {}}, "Note: `firstJob` is missing"),
            (note(**{"is": "near"}), "Place: `near` is not known"),
            (note(state={**end, "of": {"at": 1, "later": 2}}), "End: `later` is not known"),
            (note(state={"state": "ended", "of": {}}), "End: `at` is missing"),
            (note(counts={"a": 1}), "list<u8>: 1 is of another type"),
        ]:
            with self.subTest(reason):
                with self.assertRaises(Refused) as refused:
                    reader().read("Note", value)

                self.assertEqual(str(refused.exception).replace("'", ""), reason)

    def test_a_type_of_a_later_version_is_refused_by_its_name(self):
        with self.assertRaises(Refused) as refused:
            reader().read("Later", {"at": 1})

        self.assertEqual(str(refused.exception), "`Later` is not known")

    def test_a_field_of_a_later_version_is_ignored_and_named(self):
        one = reader()

        one.read("Note", note(later=1))

        self.assertEqual(one.ignored, {"Note.later"})

    def test_the_untagged_variant_reads_what_no_other_variant_reads(self):
        read = {}
        for word, event in [
            ("Event.begun", {"event": "begun", "at": 1, "later": 2}),
            ("Event.*", {"event": "ended"}),
            ("Event.*", {"event": "begun", "at": {"secs": 1}}),
        ]:
            one = reader(EVENT)
            one.read("Note", {"event": event})
            read.setdefault(word, []).append(word in one.seen and one.ignored)

        self.assertEqual(read, {"Event.begun": [{"Event.later"}], "Event.*": [set(), set()]})
        with self.assertRaises(Refused):
            reader(EVENT).read("Note", {"event": {"at": 1}})

    def test_a_change_of_a_type_is_a_change_of_the_description(self):
        for before, after in [
            ("pub first_job: JobId", "pub first_job: Option<JobId>"),
            ("Option<State>", "Vec<State>"),
            ("at: u32", "at: u64"),
            ("Here }", "Here, There }"),
            ("#[serde(deny_unknown_fields)]\n", ""),
            ("camelCase", "snake_case"),
            ('content = "of", ', ""),
            ("#[serde(default)] why", "why"),
            ("pub at: u32", "pub when: u32"),
        ]:
            with self.subTest(after or before):
                self.assertNotEqual(reader(NOTE.replace(before, after)).types, reader().types)


if __name__ == "__main__":
    unittest.main()
