"""Two neighbouring versions understand each other: golden files have every field and variant that this version writes,
and the last version reads them. That this version reads the files of the last one is tested where the types are:
`previous_version.rs` of the protocol, `previous_rows.rs` of the use cases, and the runner's modules.

FREEHOLD_UPDATE=1 tests/compatibility/run      writes the list of this version's types, and no file of the last version
"""

import hashlib
import json
import os
import subprocess
import unittest

import description
import goldens
from description import ROOT
from goldens import LAST, THIS
from reader import Reader, Refused, all_names

TYPES = ROOT / "tests/compatibility/golden/types.json"
MANIFEST = ROOT / "tests/compatibility/golden/previous/manifest.json"

_DEFAULT = "the default, which is not written"
_LATER_EVENT = "an event that only a later version writes"
_PLANNED = "a row has the nodes as they were planned, and their states in `StateRow.progress`"
# Fields, variants and types that no file has, with the reason.
NOT_WRITTEN = {
    "ApprovalOption.approve-all": _DEFAULT,
    "AuditEvent.*": _LATER_EVENT,
    "CancelHead": "a part of `Cancel`, which is read twice",
    "Follows.latest": _DEFAULT,
    "KeyUse.*": "a use that only a later version knows",
    "NewerEvent": _LATER_EVENT,
    "Node.earlier": _PLANNED,
    "Node.retried": _PLANNED,
    "NodeState.active": _PLANNED,
    "NodeState.failed": _PLANNED,
    "NodeState.refused": _PLANNED,
    "NodeState.skipped": _PLANNED,
    "NodeState.skipped_by_request": _PLANNED,
    "NodeState.succeeded": _PLANNED,
    "OrderHead": "a part of `Order`, which is read twice",
    "ProviderSource.packed": _DEFAULT,
    "RollBack.none": _DEFAULT,
    "SecretFormat.plain": _DEFAULT,
}

# What the last version ignores in the messages and rows of this one, with what follows. A runner that must not ignore a
# field of an order or a cancel refuses the message if `must_understand` names the field's feature. While functions of
# both versions run, during the minutes of an upgrade, those of the last one drop these fields from rows that they
# change. This version does not drop unknown fields of workflows, jobs, installs and runs.
IGNORED = {
    "AppRecord.default_labels": "a sync during the upgrade: `install list` shows no default labels until the next sync",
    "AttemptEvent.roles_trusting_strangers": "people are notified after the next job that finds the trust",
    "AuditEvent.sent_at": "a runner of the last version takes a copy of an order for a redelivery of it, as before",
    "BudgetRecord.by": "two claims at one moment may count as one, as in the last version",
    "Cancel.asker": "a runner of the last version records a cancel of a member or a pipeline without who asked for it",
    "GoneInstalls.last": "of two installs that end at one moment one may stay, as in the last version",
    "HealthRecord.by_checks": "a component whose checks pass late is shown as before, until its next check",
    "HealthRecord.known_unchecked": "people may be notified twice that a health check has no result",
    "HealthRecord.known_unhealthy": "people may be notified twice that a component is unhealthy",
    "HealthRecord.last_report": "two reports at one moment may count as one, as in the last version",
    "Hello.roles": "no action starts for a switch that is announced during the upgrade, until the next switch",
    "Install.labels": "labels that were set during the upgrade are lost; the changelog asks to wait with them",
    "Install.licence": "a licence that was set during the upgrade is lost; the changelog asks to wait with it",
    "OpenWorkflow.due_by": "two causes at one moment may count as one, as in the last version",
    "Order.asker": "a runner of the last version records a start of a member or a pipeline without who asked for it",
    "Record.sent_at": "a runner of the last version takes a put-back order for any message with it, as before",
    "Run.after": "no further runbook follows after a run that began by itself during the upgrade",
    "Sending.by": "two deliveries at one moment may both claim an order, as in the last version",
    "StateRow.post_deploy_runbooks": "no runbook follows after a deploy that was planned during the upgrade",
    "Unbelievable.by": "two messages at one moment may count as one, as in the last version",
    "UnknownReports.by": "two receives at one moment may count as one, as in the last version",
}

# What the last version cannot read, with what follows.
REFUSED = {
    "Action: `other_roles` is not known": "functions fail and try again, until the upgrade has replaced them",
    "ActionTerms: `other_roles` is not known": "runners refuse these terms; the changelog asks to update runners first",
    "AppVersion: `default_labels` is not known": "functions fail and try again, until the upgrade has replaced them",
    "Budgeted: `unknown_roles` is not known": "functions of the last version never read this row",
    "DueWhat: `after_deploy` is not known": "the sweep leaves the task to the next sweep, and logs it",
    "DueWhat: `roles` is not known": "the sweep leaves the task to the next sweep, and logs it",
    "ModeRole: `display_name` is not known": "functions fail and try again, until the upgrade has replaced them",
    "NotificationKind: `checks-awaited` is not known": "the sweep leaves the task to the next sweep, and logs it",
    "NotificationKind: `stranger-trusted` is not known": "the sweep leaves the task to the next sweep, and logs it",
    "ProbeTerms: `role` is not known": "runners refuse these terms; the changelog asks to update runners first",
    "Reference: `licence` is not known": "functions fail and try again, until the upgrade has replaced them",
    "RunTrigger: `role` is not known": "functions cannot read such a workflow, until the upgrade has replaced them",
    "`Licence` is not known": "runners of the last version give a licence to templates without a check",
    "`LicenceRecord` is not known": "nothing reads the row; it is removed with its install",
    "`Invitation` is not known": "functions of the last version never read this row",
    "`KnownPrincipal` is not known": "functions of the last version never read this row",
    "`LastChange` is not known": "functions of the last version never read this row",
    "`Member` is not known": "functions of the last version never read this row",
    "`PoliciesRecord` is not known": "functions of the last version never read this row",
    "`KeyedRequest` is not known": "a request with a used key is performed again, as in the last version",
    "`RoleRunsRecord` is not known": "nothing reads the row; it is removed with its install",
    "`RoleSwitchesRecord` is not known": "nothing reads the row; it is removed with its install",
    "`StrangerTrustsRecord` is not known": "nothing reads the row; it is removed with its install",
}


class Types(unittest.TestCase):
    def test_the_types_of_messages_files_and_rows_are_those_of_the_list(self):
        found = json.dumps(description.of_tree(), indent=1) + "\n"

        if os.environ.get("FREEHOLD_UPDATE"):
            TYPES.write_text(found)

        self.assertEqual(TYPES.read_text(), found, "write it anew with FREEHOLD_UPDATE=1, and see CONTRIBUTING.md")

    def test_every_field_and_variant_is_in_a_golden_file(self):
        for version in (THIS, LAST):
            with self.subTest(version or "this"):
                types = goldens.types(version)
                reader = Reader(types)
                for name, _, value in goldens.values(version, types):
                    reader.read(name, value)

                missing = sorted(name for name in all_names(types) - reader.seen if not _is_not_written(name))
                self.assertEqual(missing, [], "add values with these fields and variants to the golden files")
                self.assertEqual(reader.ignored, set())

    def test_every_exception_is_needed(self):
        types = goldens.types(THIS)
        reader = Reader(types)
        for name, _, value in goldens.values(THIS, types):
            reader.read(name, value)

        for name in NOT_WRITTEN:
            found = {one for one in all_names(types) if _begins(one, name)}
            self.assertTrue(found and not found & reader.seen, name)


class LaterVersion(unittest.TestCase):
    def test_this_version_reads_an_event_of_the_audit_that_it_does_not_know(self):
        types = goldens.types(THIS)
        changed = 0
        for name, place, value in goldens.values(THIS, types):
            event = _event(name, value)
            if event is None:
                continue
            for later in [event | {"event": "of_a_later_version"}, event | {"of_a_later_version": 1}]:
                with self.subTest(place, event=later):
                    event.clear()
                    event.update(later)

                    Reader(types).read(name, value)
                    changed += 1

        self.assertGreater(changed, 30)


class LastVersion(unittest.TestCase):
    def test_it_reads_what_this_version_writes(self):
        reader, refused = Reader(goldens.types(LAST)), {}
        for name, place, value in goldens.values(THIS, goldens.types(THIS)):
            try:
                reader.read(name, value)
            except Refused as why:
                refused.setdefault(str(why), []).append(place)

        self.assertEqual(refused.keys(), REFUSED.keys(), refused)
        self.assertEqual(reader.ignored, IGNORED.keys())

    def test_this_version_reads_what_it_wrote(self):
        reader = Reader(goldens.types(THIS))

        for name, _, value in goldens.values(LAST, goldens.types(LAST)):
            reader.read(name, value)

        self.assertEqual(reader.ignored, set())

    def test_its_golden_files_do_not_change(self):
        manifest = json.loads(MANIFEST.read_text())
        found = {
            str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
            for folder in goldens.FOLDERS
            for path in sorted((ROOT / folder / "previous").rglob("*"))
            if path.is_file() and path != MANIFEST
        }

        self.assertEqual(found, manifest["files"], "what a released version wrote does not change: restore these files")

    def test_its_golden_files_are_those_of_its_commit(self):
        commit, files = (json.loads(MANIFEST.read_text())[key] for key in ("commit", "files"))
        if _git("cat-file", "-e", f"{commit}^{{commit}}") is None:
            self.skipTest(f"this clone does not have the commit {commit}")

        found = {path: _git("show", f"{commit}:{path.replace('previous/', '')}") for path in files}
        # The commit does not have files of a kind that was added later.
        found = {path: content for path, content in found.items() if content is not None}

        self.assertGreater(len(found), 80)
        for path, content in found.items():
            self.assertEqual((ROOT / path).read_bytes(), content, path)


def _event(name, value):
    """Returns the event of an audit record, or of a line of the file with the events that wait for their records."""
    holder = value if name == "AuditRecord" else value.get("entry") if name == "Line" and "entry" in value else None
    return holder and holder["event"]


def _git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True)
    return done.stdout if done.returncode == 0 else None


def _is_not_written(name):
    return any(_begins(name, exception) for exception in NOT_WRITTEN)


def _begins(name, with_name):
    return name == with_name or name.startswith(f"{with_name}.")


if __name__ == "__main__":
    unittest.main()
