"""Writes the section `as-rendered` of infra/install.guard: what install stacks hold, and what an app may vary."""

import re
import sys

import templates
from guard_clauses import Clauses, short
from guard_forms import BOOL, in_regions, inputs, of_secret, secrets
from guard_golden import marked, of_app
from guard_text import (
    APP,
    BREAK_GLASS,
    CUSTOM,
    INPUT,
    INSTALL,
    NAMES,
    PARTITION,
    REGION,
    SECRET,
    SHARD,
    TENANT,
    VERSION,
    WORDS,
    class_of,
    key,
    literal,
    marks_in,
    wrapped,
)

COMMAND = "tests/infra/guard_rules"
PARTITIONS = templates.ROOT / "crates/protocol/src/ids/partition.rs"
# The domains of AWS's endpoints, of all partitions.
DOMAINS = "|".join(map(re.escape, sorted(set(re.findall(r'dns_suffix: "([a-z0-9.-]+)" }', PARTITIONS.read_text())))))
FILE = templates.INFRA / "install.guard"
BEGIN = "# ---- as-rendered: the template is the one that Freehold renders ----"
# The resource that an app with secrets adds.
KEY_OF_DIGESTS = "SecretsKey"
SWITCH = {"Type": "String", "Description": WORDS, "Default": WORDS, "AllowedValues": BOOL}


class Section(Clauses):
    """The clauses of the section, from a stack without and a stack with what an app adds."""

    def __init__(self):
        super().__init__()
        self.plain = marked(templates.install())
        self.full = of_app(marked(templates.install_with_inputs()))
        self.network = marked(templates.install_with_network())
        # An app with a network has something else in some places.
        for section in ("Parameters", "Conditions", "Resources"):
            for name, value in self.plain[section].items():
                if (other := self.network[section][name]) != value:
                    self.variants[f"{section}.{key(name)}"] = other

    def text(self):
        self.top()
        self.metadata()
        self.mapping()
        self.parameters()
        self.added_to(
            "Rules",
            {
                f"/^{class_of(BREAK_GLASS)}NeedsItsEnd$/": [self.full["Rules"][f"{BREAK_GLASS}NeedsItsEnd"]],
                **self.of_network("Rules"),
            },
        )
        self.conditions()
        self.optional()
        self.resources()
        self.outputs()
        lets = [f'let {name} = regex_replace(Description, "{NAMES}", {value})' for value, name in self.names.items()]
        rule = "\n".join(clause if "<<" in clause[:10] else wrapped(clause, 4) for clause in self.clauses)
        return "\n".join([*lets, "", "rule as_rendered {", rule, "}", ""])

    def top(self):
        sections = sorted({*self.plain, *self.full})
        self.only("this", sections, "This section is not part of an install stack")
        for section in ("AWSTemplateFormatVersion", "Description"):
            self.same(section, self.plain[section], section)
        for name, mark in (("Tenant", TENANT), ("App", APP), ("Install", INSTALL), ("Version", VERSION)):
            self.leaf(f"Metadata.Freehold.{name}", [mark], "This name is another than the description has")
        # The app of a tenant `fh-acme` could make roles with the names of those in the install stacks of tenant `acme`.
        slug = "[a-z][a-z0-9]*(-[a-z0-9]+)*"
        for name, pattern in (("Tenant", f"(?!fh(-|$)){slug}"), ("Install", slug)):
            self.say(f"Metadata.Freehold.{name} == /^{pattern}$/", "Others have names that begin in this way")

    def metadata(self):
        meta, full = self.plain["Metadata"], self.full["Metadata"]
        self.only("Metadata", list(meta), "This metadata is not Freehold's")
        self.only("Metadata.Freehold", list(meta["Freehold"]), "This metadata is not Freehold's")
        self.same("Metadata.'cfn-lint'", meta["cfn-lint"], "What the linter ignores")
        path = "Metadata.'AWS::CloudFormation::Interface'"
        interface = meta["AWS::CloudFormation::Interface"]
        self.only(path, list(interface), "This metadata is not Freehold's")
        labels = full["AWS::CloudFormation::Interface"]["ParameterLabels"]
        own = {name: label for name, label in labels.items() if not marks_in(name) and name != "BreakGlassUntil"}
        assert own == interface["ParameterLabels"], "the labels of parameters differ"
        self.added(
            f"{path}.ParameterLabels",
            own,
            {
                f"/^({class_of(INPUT)}|{class_of(SECRET)}|Enable{class_of(CUSTOM)}|Enable{class_of(BREAK_GLASS)})$/": [
                    {"default": WORDS}
                ],
                "'BreakGlassUntil'": [labels["BreakGlassUntil"]],
            },
        )
        groups = f"{path}.ParameterGroups[*]"
        self.flat(f"{groups}.Parameters")
        known = ", ".join(literal(group["Label"]) for group in interface["ParameterGroups"])
        self.only(groups, ["Label", "Parameters"], "This group of parameters is not one of an install stack")
        of_app = f"^({class_of(INPUT)}|{class_of(SECRET)})$"
        of_freehold = f"{groups}[ some Parameters[*] != /{of_app}/ ].Label in [{known}]"
        self.say(of_freehold, "This group of parameters is not one of an install stack")

    def mapping(self):
        self.only("Mappings", ["BoundTo"], "This mapping is not part of an install stack")
        self.leaf("Mappings.BoundTo.*.*", [INSTALL], "The stack is bound to another install")
        self.say(f"Mappings.BoundTo[ keys != /^{class_of(REGION)}$/ ] empty", "The stack is not bound to a region")
        self.say("Mappings.BoundTo.*[ keys != /^[0-9]{12}$/ ] empty", "The stack is not bound to an account")
        self.clauses.append("let places = count(Mappings.BoundTo.*.*)")
        self.say("%places == 1", "The stack is bound to more than one place")

    def parameters(self):
        own = {name: value for name, value in self.plain["Parameters"].items()}
        until = self.full["Parameters"]["BreakGlassUntil"]
        either = {"AllowedValues": (literal(["true", "false"]), literal(["false"]))}
        self.added(
            "Parameters",
            own,
            {
                f"/^Enable{class_of(CUSTOM)}$/": [{**SWITCH, "Default": word} for word in BOOL],
                f"/^Enable{class_of(BREAK_GLASS)}$/": [{**SWITCH, "Default": "false"}],
                f"/^{class_of(INPUT)}$/": inputs(),
                f"/^{class_of(SECRET)}$/": secrets(),
                "'BreakGlassUntil'": [until],
                **self.of_network("Parameters"),
            },
            vary={
                "RunnerUrl": {"Default": (r"/^(https:\/\/[A-Za-z0-9._~:\/&=%+-]+)?$/",)},
                "RunnerSha256": {"Default": ("/^([0-9a-f]{64})?$/",)},
                "InstanceType": {"Default": (r"/^[a-z]+[0-9]+g[a-z]*\.[a-z0-9]+$/",)},
                **dict.fromkeys(("PrivateEndpoints", "DnsFirewall"), either),
            },
        )

    def conditions(self):
        condition = self.full["Conditions"]
        self.added_to(
            "Conditions",
            {
                f"/^{class_of(CUSTOM)}Enabled$/": [condition[f"{CUSTOM}Enabled"]],
                f"/^{class_of(BREAK_GLASS)}Enabled$/": [condition[f"{BREAK_GLASS}Enabled"]],
                f"/^Has{class_of(INPUT)}$/": [condition[f"Has{INPUT}"]],
                f"/^Has{class_of(SECRET)}$/": [condition[f"Has{SECRET}"]],
            },
        )

    def optional(self):
        """What may be left empty: as many parameters have a default as there are conditions, and secrets with one."""
        for of, what in ((INPUT, "inputs"), (SECRET, "secrets")):
            of = class_of(of)
            # The engine does not take a filter after a filter of keys.
            self.clauses.append(f"let all_{what} = some Parameters[ keys == /^{of}$/ ]")
            self.counted(f"parameters_of_{what}", f"%all_{what}[ NoEcho == true ].Default")
            self.counted(f"conditions_of_{what}", f"Conditions[ keys == /^Has{of}$/ ]")
            self.counted(f"uses_of_{what}", f"Resources[ keys == /^Secret{of}$/ ].Condition")
            for kind in ("conditions", "uses"):
                self.say(
                    f"%count_of_{kind}_of_{what} == %count_of_parameters_of_{what}",
                    f"Optional {what} without a condition, or a condition without its parameter",
                )
        self.counted("plain_inputs", "%all_inputs[ NoEcho not exists ].Type")
        self.counted("answers", f"Outputs[ keys == /^{class_of(INPUT)}$/ ].Value")
        self.say(
            "%count_of_answers == %count_of_plain_inputs", "An input without its output, or an output without its input"
        )

    def outputs(self):
        output = self.full["Outputs"]
        hosts = (
            rf"/^(https:\/\/sqs\.[a-z0-9-]+\.({DOMAINS})|http:\/\/(localhost|127\.0\.0\.1):[0-9]+)\/[^\/]+\/[^\/]+$/"
        )
        urls = {}
        for name, end in (("OrdersQueueUrl", ".*)"), ("ReportsQueueUrl", f".*?){class_of(SHARD)}")):
            urls[name] = {"Value": (hosts,)}
            self.clauses.append(
                f'let path_of_{name} = regex_replace(Outputs.{name}.Value, "^https?://[^/]+(/{end}$", "${{1}}")'
            )
            path = re.sub("^https?://[^/]+", "", self.plain["Outputs"][name]["Value"])
            self.leaf(f"%path_of_{name}", [path], "This is not the queue of the install and the vendor")
        self.added(
            "Outputs",
            self.plain["Outputs"],
            {
                f"/^{class_of(CUSTOM)}RoleArn$/": [output[f"{CUSTOM}RoleArn"]],
                f"/^{class_of(BREAK_GLASS)}RoleArn$/": [output[f"{BREAK_GLASS}RoleArn"]],
                f"/^{class_of(INPUT)}$/": [output[INPUT]],
                "'AppSecrets'": [output["AppSecrets"]],
                **self.of_network("Outputs"),
            },
            vary={
                **urls,
                "TenantKey": {"Value": (r"/^[A-Za-z0-9+\/]{43}=$/",)},
                "TenantSecondKey": {"Value": (r"/^(none|[A-Za-z0-9+\/]{43}=)$/",)},
            },
        )

    def resources(self):
        full, plain = self.full["Resources"], self.plain["Resources"]
        dynamic = {f"/^{class_of(mark)}Role$/": f"{mark}Role" for mark in (CUSTOM, BREAK_GLASS)}
        answers, secrets = f"/^Secret{class_of(INPUT)}$/", f"/^Secret{class_of(SECRET)}$/"
        network = self.of_network("Resources")
        names = ", ".join([*map(literal, [*plain, KEY_OF_DIGESTS]), *dynamic, answers, secrets, *network])
        self.say(f"Resources[ keys not in [{names}] ] empty", "No install stack has this resource")
        tags = {
            "freehold:tenant": TENANT,
            "freehold:app": APP,
            "freehold:install": INSTALL,
            "install.nuon.co/id": INSTALL,
        }
        for tag, mark in tags.items():
            for place in (
                "Properties",
                "Properties.TagSpecifications[*]",
                "Properties.LaunchTemplateData.TagSpecifications[*]",
            ):
                found = f"tag_{len(self.clauses)}"
                self.clauses.append(f"let {found} = some Resources.*.{place}.Tags[ Key == '{tag}' ].Value")
                self.leaf(f"%{found}", [mark], "This tag names another install than the description")
        for name, resource in plain.items():
            self.resource(f"Resources.{name}", resource, full[name])
        for matched, name in dynamic.items():
            self.resource(f"Resources[ keys == {matched} ]", full[name], full[name])
        answer = {name: value for name, value in full[f"Secret{INPUT}"].items() if name != "Condition"}
        self.kept(answers, [answer, {**answer, "Condition": f"Has{INPUT}"}], "This secret is not one of an input")
        self.kept(secrets, of_secret(full[f"Secret{SECRET}"]), "This secret is not one of the app")
        self.kept(f"'{KEY_OF_DIGESTS}'", [full[KEY_OF_DIGESTS]], "This is not the key of the digests of secrets")
        for matched, forms in network.items():
            self.is_one_of(f"Resources[ keys == {matched} ]", forms, "This is not a part of an app's network")

    def kept(self, matched, forms, what):
        """Compares the secrets with these names, which an app adds."""
        found = f"secrets_{len(self.clauses)}"
        self.clauses.append(f"let {found} = Resources[ keys == {matched} ]")
        self.is_one_of(f"%{found}", forms, what)
        self.leaves(f"%{found}", forms[0])

    def of_network(self, section):
        """Returns what the network of an app adds to a section, by the pattern of its name."""
        added = {name: value for name, value in self.network[section].items() if name not in self.plain[section]}
        return {literal(name): in_regions(value) for name, value in added.items()}

    def resource(self, path, plain, full):
        """Compares a resource with the golden one; what an app adds to it has clauses of its own."""
        name = _kind(path)
        special = {}
        if name in ("ModeRole", "AppRole"):
            special = {("Properties", "ManagedPolicyArns"): self.managed, ("Properties", "Policies"): self.policies}
        elif path == "Resources.RunnerRole":
            special = {("Properties", "Policies", 0, "PolicyDocument", "Statement"): self.statements}
        elif path == "Resources.Limits":
            statement = ("Properties", "PolicyDocument", "Statement")
            special = {("Properties", "Roles"): self.limited, statement: self.limits}
        elif path == "Resources.Base":
            special = {("Properties", "Roles"): self.items}
        elif path == "Resources.Boundary":
            special = {("Properties", "PolicyDocument", "Statement"): self.boundary}
        self.value(path, plain, full, (), special)

    def value(self, path, plain, full, place, special):
        if place in special:
            return special[place](path, plain, full)
        inside = [way for way in special if way[: len(place)] == place]
        if not inside:
            assert plain == full, (
                f"{path} differs between the golden stacks: teach {COMMAND} what an app may vary there"
            )
            return self.same(path, plain, "What stands here")
        if isinstance(plain, dict):
            self.only(path, list(full), "Freehold does not render this property")
            for name in plain:
                self.value(f"{path}.{key(name)}", plain[name], full[name], (*place, name), special)
        else:
            self.say(f"{path}[{len(plain)}] not exists", "Freehold renders fewer items")
            for at, item in enumerate(plain):
                self.value(f"{path}[{at}]", item, full[at], (*place, at), special)

    def limited(self, path, plain, full):
        """The roles that the limits are attached to: each of the app's too."""
        self.items(path, plain, full)
        self.as_many(f"{path}[ Ref == /^({class_of(CUSTOM)}|{class_of(BREAK_GLASS)})Role$/ ]", (CUSTOM, BREAK_GLASS))

    def limits(self, path, plain, full):
        """The statements of the limits: one for each role of the app, and one for all that end."""
        [over] = [item for item in full if item.get("Sid") == "BreakGlassIsOver"]
        roles = over["Condition"]["ArnEquals"]["aws:PrincipalArn"]
        others = f"{path}[ Sid not exists or Sid != 'BreakGlassIsOver' ]"
        items = [item for item in full if item is not over]
        self.flat(path)
        self.is_one_of(others, [*plain, *items], "Freehold does not render this item")
        for item in plain:
            self.is_one_of(f"some {path}[*]", [item], "An item that Freehold renders is missing")
        off = f"/^({class_of(CUSTOM)}|{class_of(BREAK_GLASS)})IsOff$/"
        # The engine does not take a filter after an index.
        denials = f"denials_{len(self.clauses)}"
        self.clauses.append(f"let {denials} = some {path}[*].'Fn::If'[2]")
        self.as_many(f"%{denials}[ Sid == {off} ]", (CUSTOM, BREAK_GLASS))
        found = f"over_{len(self.clauses)}"
        self.clauses.append(f"let {found} = some {path}[ Sid == 'BreakGlassIsOver' ]")
        what = "Freehold renders another statement"
        self.only(f"%{found}", list(over), what)
        for part in ("Effect", "Action", "Resource"):
            self.say(f"%{found} {{ {part} == {literal(over[part])}", what)
            self.clauses.append("}")
        self.only(f"%{found}.Condition", list(over["Condition"]), what)
        self.only(f"%{found}.Condition.ArnEquals", ["aws:PrincipalArn"], what)
        later = literal(over["Condition"]["DateGreaterThanEquals"])
        self.say(f"%{found} {{ Condition.DateGreaterThanEquals == {later}", what)
        self.clauses.append("}")
        forms = ", ".join([literal(roles[0]), literal(short(roles[0]))])
        self.say(f"%{found} {{ Condition.ArnEquals.'aws:PrincipalArn'[*] in [{forms}]", what)
        self.clauses.append("}")
        self.as_many(f"%{found}.Condition.ArnEquals.'aws:PrincipalArn'[*]", (BREAK_GLASS,))

    def boundary(self, path, plain, full):
        """The statements of the boundary: the last one is there when the app has secrets."""
        *own, last = full
        assert own == plain, "the boundary's statements differ"
        for at, item in enumerate(plain):
            self.value(f"{path}[{at}]", item, item, (), {})
        self.say(f"{path}[{len(full)}] not exists", "Freehold renders fewer items")
        self.is_one_of(f"{path}[*]", full, "Freehold does not render this item")
        number = len(self.clauses)
        self.clauses.append(f"let reads_{number} = some {path}[ Sid == '{last['Sid']}' ]")
        self.leaves(f"%reads_{number}", last)
        self.clauses.append(f"let keys_{number} = some Resources[ keys == /^Secret{class_of(SECRET)}$/ ]")
        self.clauses.append(f"let reads_count_{number} = count(%reads_{number})")
        self.say(
            f"when %keys_{number} !empty {{ %reads_count_{number} == 1",
            "Secrets of the app could be changed by its roles",
        )
        self.clauses.append("}")

    def statements(self, path, plain, full):
        """The statements of the runner's role."""
        roles = [item for statement in full if statement["Sid"] == "TakeModeRoles" for item in statement["Resource"]]
        secrets = [
            item for statement in full if statement["Sid"] == "ReadSensitiveAnswers" for item in statement["Resource"]
        ]
        lists = {"TakeModeRoles": roles, "ReadSensitiveAnswers": secrets}
        fixed = [statement for statement in plain if statement["Sid"] not in lists]
        added = [*lists, "ReadSecretsOfTheApp"]
        assert fixed == [statement for statement in full if statement["Sid"] not in added], (
            "the runner's statements differ"
        )
        sids = ", ".join(literal(statement["Sid"]) for statement in full)
        self.say(f"{path}[*].Sid in [{sids}]", "Freehold does not render this statement")
        for statement in full:
            sid = statement["Sid"]
            chosen = f"{path}[ Sid == '{sid}' ]"
            if sid not in lists:
                self.is_one_of(chosen, [statement], "Freehold renders another statement")
                self.leaves(chosen, statement)
                continue
            self.only(chosen, list(statement), "Freehold does not render this part of a statement")
            self.say(f"{chosen}.Effect == 'Allow'", "Freehold renders another statement")
            self.say(f"{chosen}.Action == {literal(statement['Action'])}", "Freehold renders another statement")
            forms = {literal(item): None for item in lists[sid]}
            self.flat(f"{chosen}.Resource")
            self.say(
                f"{chosen}.Resource[*] in [{', '.join(forms)}]", "The runner may use this beyond what is the install's"
            )
            self.leaf(f"{chosen}.Resource[*].'Fn::Sub'", [item["Fn::Sub"] for item in lists[sid]])

    def managed(self, path, plain, full):
        """The managed policies of a role: the boundary in its case, and policies of AWS."""
        boundary = literal(full[0])
        self.flat(path)
        self.say(f"{path}[0] == {boundary}", "The boundary is not attached as Freehold attaches it")
        # Each part of its path, and its name. None begins with a dot: `..` could lead out of the place of the ARN.
        part = "[A-Za-z0-9+=,@_-][A-Za-z0-9+=,.@_-]*"
        of_aws = f"/^arn:{class_of(PARTITION)}:iam::aws:policy(?:\\/{part})+$/"
        self.say(f"{path}[*] in [{boundary}, {of_aws}]", "This is not a managed policy of AWS")

    def policies(self, path, _plain, _full):
        """The inline policies of a role, which the app chooses: their form, and no other account."""
        self.say(f"{path} is_list", "These policies cannot be read")
        number = len(self.clauses)
        policies, documents, statements = (f"{what}_{number}" for what in ("policies", "documents", "statements"))
        self.clauses.append(f"let {policies} = some {path}[*]")
        self.clauses.append(f"let {documents} = some %{policies}.PolicyDocument")
        self.clauses.append(f"let {statements} = some %{documents}.Statement[*]")
        self.only(f"%{policies}", ["PolicyName", "PolicyDocument"], "A policy does not have this")
        self.only(f"%{documents}", ["Version", "Id", "Statement"], "A policy does not have this")
        keys = ["Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"]
        self.only(f"%{statements}", keys, "A statement of a role does not have this")
        self.clauses.append(f"written_out(%{policies})")
        self.clauses.append(f"only_own_accounts(%{statements})")
        self.say(f"%{statements} {{ Effect in ['Allow', 'Deny']", "This statement cannot be read")
        self.clauses.append("}")

    def added_to(self, section, classes):
        self.added(section, self.plain[section], classes)


def _kind(path):
    if re.fullmatch(r"Resources\.(Provision|Maintenance|Deprovision)Role", path):
        return "ModeRole"
    return "AppRole" if path.endswith("Role$/ ]") else ""


def section():
    return Section().text()


def file():
    """Returns install.guard with the section written anew."""
    before, _, rest = FILE.read_text().partition(BEGIN)
    head, _, _ = rest.partition("\nlet name_1")
    return f"{before}{BEGIN}{head}\n{section()}"


def main():
    if "--check" in sys.argv[1:]:
        return 0 if FILE.read_text() == file() else f"infra/install.guard is old; run {COMMAND}"
    FILE.write_text(file())
    return 0


if __name__ == "__main__":
    sys.exit(main())
