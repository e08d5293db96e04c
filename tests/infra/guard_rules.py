"""Writes the section `as-rendered` of infra/install.guard: what install stacks hold, and what an app may vary."""

import json
import re
import sys

import guard_text
import templates
from guard_golden import marked, of_app
from guard_text import (
    APP,
    BREAK_GLASS,
    CUSTOM,
    INPUT,
    INSTALL,
    NAMES,
    REGION,
    SECRET,
    TENANT,
    VERSION,
    WORDS,
    key,
    literal,
    marks_in,
    wrapped,
)

COMMAND = "tests/infra/guard_rules"
FILE = templates.INFRA / "install.guard"
BEGIN = "# ---- as-rendered: the template is the one that Freehold renders ----"
FIX = "Fix: ask the vendor for the template that this version of Freehold renders."
# Maps and lists to which an app adds: the names of what it adds, and what each may be.
OPTIONAL_NUMBER = r"^([-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?)?$"
BOOL = ["true", "false"]
# The resource that an app with secrets adds.
KEY_OF_DIGESTS = "SecretsKey"
SWITCH = {"Type": "String", "Description": WORDS, "Default": WORDS, "AllowedValues": BOOL}


def inputs():
    """Returns every form that the parameter of an input can have."""
    text = {"Type": "String", "Description": WORDS}
    number = {"ConstraintDescription": "must be a number"}
    may_be_empty = {"AllowedPattern": OPTIONAL_NUMBER, "ConstraintDescription": "must be a number, or empty"}
    a_bool = {"ConstraintDescription": "must be true or false"}
    secret = {**text, "NoEcho": True}
    forms = [
        {**text, "Type": "Number", **number},
        {**text, "Type": "Number", **number, "Default": WORDS},
        {**text, **may_be_empty, "Default": ""},
        {**secret, **may_be_empty, "Default": ""},
        {**secret, **may_be_empty},
        {**text, "Default": WORDS},
        {**secret, "Default": ""},
    ]
    for start in (text, secret):
        forms.append({**start, "MinLength": 1, "ConstraintDescription": "must not be empty"})
        forms.append({**start, **a_bool, "AllowedValues": BOOL})
        forms.append({**start, **a_bool, "AllowedValues": [*BOOL, ""], "Default": ""})
    forms += [{**text, **a_bool, "AllowedValues": BOOL, "Default": word} for word in BOOL]
    return forms


def secrets():
    """Returns every form that the parameter of a secret of the app can have."""
    secret = {"Type": "String", "Description": WORDS, "NoEcho": True}
    return [
        {**secret, "MinLength": 1, "ConstraintDescription": "must not be empty"},
        {**secret, "Default": ""},
    ]


class Section:
    """The clauses of the section, from a stack without and a stack with what an app adds."""

    def __init__(self):
        self.plain = marked(templates.install())
        self.full = of_app(marked(templates.install_with_inputs()))
        self.network = marked(templates.install_with_network())
        # What stands in the same place in the stack of an app with a network.
        self.variants = {}
        for section in ("Parameters", "Conditions", "Resources"):
            for name, value in self.plain[section].items():
                if (other := self.network[section][name]) != value:
                    self.variants[f"{section}.{key(name)}"] = other
        self.clauses, self.names, self.wanted = [], {}, []

    def text(self):
        self.top()
        self.metadata()
        self.mapping()
        self.parameters()
        self.added_to(
            "Rules",
            {
                f"/^{_class(BREAK_GLASS)}NeedsItsEnd$/": [self.full["Rules"][f"{BREAK_GLASS}NeedsItsEnd"]],
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

    def say(self, clause, what):
        self.clauses.append(clause)
        self.clauses.append(f"        <<{what}. {FIX}>>")

    def top(self):
        sections = sorted({*self.plain, *self.full})
        self.only("this", sections, "This section is not part of an install stack")
        for section in ("AWSTemplateFormatVersion", "Description"):
            self.same(section, self.plain[section], section)
        for name, mark in (("Tenant", TENANT), ("App", APP), ("Install", INSTALL), ("Version", VERSION)):
            self.leaf(f"Metadata.Freehold.{name}", [mark], "This name is another than the description has")

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
                f"/^({_class(INPUT)}|{_class(SECRET)}|Enable{_class(CUSTOM)}|Enable{_class(BREAK_GLASS)})$/": [
                    {"default": WORDS}
                ],
                "'BreakGlassUntil'": [labels["BreakGlassUntil"]],
            },
        )
        groups = f"{path}.ParameterGroups[*]"
        known = [literal(group["Label"]) for group in interface["ParameterGroups"]]
        self.only(groups, ["Label", "Parameters"], "This group of parameters is not one of an install stack")
        of_freehold = (
            f"{groups}[ some Parameters[*] != /^({_class(INPUT)}|{_class(SECRET)})$/ ].Label in [{', '.join(known)}]"
        )
        self.say(of_freehold, "This group of parameters is not one of an install stack")

    def mapping(self):
        self.only("Mappings", ["BoundTo"], "This mapping is not part of an install stack")
        self.leaf("Mappings.BoundTo.*.*", [INSTALL], "The stack is bound to another install")
        self.say(f"Mappings.BoundTo[ keys != /^{_class(REGION)}$/ ] empty", "The stack is not bound to a region")
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
                f"/^Enable{_class(CUSTOM)}$/": [{**SWITCH, "Default": word} for word in BOOL],
                f"/^Enable{_class(BREAK_GLASS)}$/": [{**SWITCH, "Default": "false"}],
                f"/^{_class(INPUT)}$/": inputs(),
                f"/^{_class(SECRET)}$/": secrets(),
                "'BreakGlassUntil'": [until],
                **self.of_network("Parameters"),
            },
            vary={
                "RunnerUrl": {"Default": (r"/^(https:\/\/[A-Za-z0-9._~:\/?&=%+-]+)?$/",)},
                "RunnerSha256": {"Default": ("/^([0-9a-f]{64})?$/",)},
                **dict.fromkeys(("PrivateEndpoints", "DnsFirewall"), either),
            },
        )

    def conditions(self):
        condition = self.full["Conditions"]
        self.added_to(
            "Conditions",
            {
                f"/^{_class(CUSTOM)}Enabled$/": [condition[f"{CUSTOM}Enabled"]],
                f"/^{_class(BREAK_GLASS)}Enabled$/": [condition[f"{BREAK_GLASS}Enabled"]],
                f"/^Has{_class(INPUT)}$/": [condition[f"Has{INPUT}"]],
                f"/^Has{_class(SECRET)}$/": [condition[f"Has{SECRET}"]],
            },
        )

    def optional(self):
        """What may be left empty: as many parameters have a default as there are conditions, and secrets with one."""
        for of, what in ((INPUT, "inputs"), (SECRET, "secrets")):
            of = _class(of)
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

    def counted(self, name, path):
        self.clauses.append(f"let {name} = some {path}")
        self.clauses.append(f"let count_of_{name} = count(%{name})")

    def outputs(self):
        output = self.full["Outputs"]
        hosts = (
            r"/^(https:\/\/sqs\.[a-z0-9-]+\.amazonaws\.com|http:\/\/(localhost|127\.0\.0\.1):[0-9]+)\/[^\/]+\/[^\/]+$/"
        )
        urls = {}
        for name in ("OrdersQueueUrl", "ReportsQueueUrl"):
            urls[name] = {"Value": (hosts,)}
            self.clauses.append(
                f'let path_of_{name} = regex_replace(Outputs.{name}.Value, "^https?://[^/]+(/.*)$", "${{1}}")'
            )
            path = re.sub("^https?://[^/]+", "", self.plain["Outputs"][name]["Value"])
            self.leaf(f"%path_of_{name}", [path], "This is not the queue of the install and the vendor")
        self.added(
            "Outputs",
            self.plain["Outputs"],
            {
                f"/^{_class(CUSTOM)}RoleArn$/": [output[f"{CUSTOM}RoleArn"]],
                f"/^{_class(BREAK_GLASS)}RoleArn$/": [output[f"{BREAK_GLASS}RoleArn"]],
                f"/^{_class(INPUT)}$/": [output[INPUT]],
                "'AppSecrets'": [output["AppSecrets"]],
                **self.of_network("Outputs"),
            },
            vary={**urls, "TenantKey": {"Value": (r"/^[A-Za-z0-9+\/]{43}=$/",)}},
        )

    def resources(self):
        full, plain = self.full["Resources"], self.plain["Resources"]
        dynamic = {f"/^{_class(mark)}Role$/": f"{mark}Role" for mark in (CUSTOM, BREAK_GLASS)}
        answers, secrets = f"/^Secret{_class(INPUT)}$/", f"/^Secret{_class(SECRET)}$/"
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
        self.kept(secrets, _forms_of_secret(full[f"Secret{SECRET}"]), "This secret is not one of the app")
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
        return {literal(name): _in_regions(value) for name, value in added.items()}

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

    def same(self, path, value, what):
        forms = [value, *([self.variants[path]] if path in self.variants else [])]
        self.is_one_of(path, forms, f"{what} is not what Freehold renders")
        self.leaves(path, value)

    def is_one_of(self, path, values, what):
        """Compares with values in both forms: Guard reads `!GetAtt A.B` as a text, and the long form as a list."""
        forms = [form for value in values for form in (literal(value), literal(_short(value)))]
        forms = list(dict.fromkeys(forms))
        self.say(f"{path} == {forms[0]}" if len(forms) == 1 else f"{path} in [{', '.join(forms)}]", what)

    def leaves(self, path, value):
        for place, leaf in _leaves(value):
            # The tags of all resources are compared together.
            if not re.search(r"\.Tags\[\d+\]\.Value$", "".join(place)):
                self.leaf(path + "".join(place), [leaf])

    def leaf(self, path, leaves, what="This names another install than the description"):
        """Compares a text that names the tenant or the install with the names in the description."""
        if not any(map(guard_text.is_named, leaves)):
            return
        replacement = guard_text.named(leaves[0]) if len(leaves) == 1 else None
        if replacement is not None:
            self.say(f"{path} == %{self.name(replacement)}", what)
            return
        found = f"found_{len(self.clauses)}"
        pattern = self.name(guard_text.named_pattern(leaves))
        self.clauses.append(f'let {found} = regex_replace({path}, %{pattern}, "as rendered")')
        self.say(f'%{found} == "as rendered"', what)

    def name(self, replacement):
        """Returns the variable with the names of the description in a text."""
        return self.names.setdefault(guard_text.text(replacement), f"name_{len(self.names) + 1}")

    def items(self, path, plain, full):
        """A list to which an app adds: nothing else may be in it, and nothing of Freehold's may lack."""
        self.is_one_of(f"{path}[*]", [*plain, *full], "Freehold does not render this item")
        for item in plain:
            self.is_one_of(f"some {path}[*]", [item], "An item that Freehold renders is missing")

    def limited(self, path, plain, full):
        """The roles that the limits are attached to: each of the app's too."""
        self.items(path, plain, full)
        self.as_many(f"{path}[ Ref == /^({_class(CUSTOM)}|{_class(BREAK_GLASS)})Role$/ ]", (CUSTOM, BREAK_GLASS))

    def limits(self, path, plain, full):
        """The statements of the limits: one for each role of the app, and one for all that end."""
        [over] = [item for item in full if item.get("Sid") == "BreakGlassIsOver"]
        roles = over["Condition"]["ArnEquals"]["aws:PrincipalArn"]
        others = f"{path}[ Sid not exists or Sid != 'BreakGlassIsOver' ]"
        items = [item for item in full if item is not over]
        self.is_one_of(others, [*plain, *items], "Freehold does not render this item")
        for item in plain:
            self.is_one_of(f"some {path}[*]", [item], "An item that Freehold renders is missing")
        off = f"/^({_class(CUSTOM)}|{_class(BREAK_GLASS)})IsOff$/"
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
        forms = ", ".join([literal(roles[0]), literal(_short(roles[0]))])
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
        self.clauses.append(f"let keys_{number} = some Resources[ keys == /^Secret{_class(SECRET)}$/ ]")
        self.clauses.append(f"let reads_count_{number} = count(%reads_{number})")
        self.say(
            f"when %keys_{number} !empty {{ %reads_count_{number} == 1",
            "Secrets of the app could be changed by its roles",
        )
        self.clauses.append("}")

    def as_many(self, path, kinds):
        """Compares how many values there are with how many roles of the app."""
        number = len(self.clauses)
        names = "|".join(map(_class, kinds))
        self.clauses.append(f"let values_{number} = some {path}")
        self.clauses.append(f"let roles_{number} = some Resources[ keys == /^({names})Role$/ ]")
        self.clauses.append(f"let values_count_{number} = count(%values_{number})")
        self.clauses.append(f"let roles_count_{number} = count(%roles_{number})")
        self.say(
            f"%values_count_{number} == %roles_count_{number}", "A role of the app is missing here, or one is too many"
        )

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
            self.say(
                f"{chosen}.Resource[*] in [{', '.join(forms)}]", "The runner may use this beyond what is the install's"
            )
            self.leaf(f"{chosen}.Resource[*].'Fn::Sub'", [item["Fn::Sub"] for item in lists[sid]])

    def managed(self, path, plain, full):
        """The managed policies of a role: the boundary in its case, and policies of AWS."""
        boundary = literal(full[0])
        self.say(f"{path}[0] == {boundary}", "The boundary is not attached as Freehold attaches it")
        self.say(
            f"{path}[*] in [{boundary}, /^arn:aws:iam::aws:policy\\/[A-Za-z0-9+=,.@_\\/-]+$/]",
            "This is not a managed policy of AWS",
        )

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
        self.clauses.append(f"only_own_accounts(%{statements})")
        self.say(f"%{statements} {{ Effect in ['Allow', 'Deny']", "This statement cannot be read")
        self.clauses.append("}")

    def added(self, section, own, classes, vary=None):
        """Compares a section to which an app adds: Freehold's own entries, and the forms of what an app adds."""
        names = ", ".join([*map(literal, own), *classes])
        self.say(f"{section}[ keys not in [{names}] ] empty", "No install stack has this")
        for name, value in own.items():
            path = f"{section}.{key(name)}"
            varied = (vary or {}).get(name)
            if not varied:
                self.same(path, value, f"`{name}`")
                continue
            self.only(path, list(value), "Freehold does not render this")
            for part, each in value.items():
                if part in varied:
                    self.say(f"{path}.{part} in [{', '.join(varied[part])}]", f"`{name}` is not what Freehold renders")
                else:
                    self.same(f"{path}.{part}", each, f"`{name}`")
        for matched, forms in classes.items():
            self.is_one_of(f"{section}[ keys == {matched} ]", forms, "An app cannot add this")

    def added_to(self, section, classes):
        self.added(section, self.plain[section], classes)

    def only(self, path, names, what):
        self.say(f"{path}[ keys not in [{', '.join(map(literal, names))}] ] empty", what)


def _forms_of_secret(secret):
    """Returns every form of a secret of the app, the one with all its names first."""
    plain = {name: value for name, value in secret.items() if name != "Condition"}
    changing = ("SecretString", "GenerateSecretString", "KmsKeyId")
    rest = {name: value for name, value in plain["Properties"].items() if name not in changing}
    entered = {"SecretString": {"Ref": SECRET}}
    generated = {"GenerateSecretString": {"PasswordLength": 32, "ExcludePunctuation": True}}
    forms = []
    for value, condition in ((entered, {}), (entered, {"Condition": f"Has{SECRET}"}), (generated, {})):
        for key_of in ({"Ref": "Key"}, "alias/aws/secretsmanager"):
            forms.append({**plain, **condition, "Properties": {**rest, **value, "KmsKeyId": key_of}})
    return forms


def _kind(path):
    if re.fullmatch(r"Resources\.(Provision|Maintenance|Deprovision)Role", path):
        return "ModeRole"
    return "AppRole" if path.endswith("Role$/ ]") else ""


def _class(mark):
    return guard_text.MARKS[mark][0]


def _in_regions(value):
    """Returns a part of a network with three zones, and as it is in a region with two."""
    fewer = json.loads(json.dumps(value), object_hook=_without_third_zone)
    return [value] if fewer == value else [value, fewer]


def _without_third_zone(node):
    third = [{"Ref": f"{kind}Subnet2"} for kind in ("Public", "Private")]
    if list(node) != ["Fn::Join"]:
        return node
    comma, items = node["Fn::Join"]
    return {"Fn::Join": [comma, [item for item in items if item not in third]]}


def _short(node):
    """Returns a value with `Fn::GetAtt` as its short form has it."""
    if isinstance(node, dict):
        if list(node) == ["Fn::GetAtt"]:
            return {"Fn::GetAtt": ".".join(node["Fn::GetAtt"])}
        return {name: _short(value) for name, value in node.items()}
    return [_short(value) for value in node] if isinstance(node, list) else node


def _leaves(node, place=()):
    """Yields each text below a value with the way to it, as Guard writes it."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from _leaves(value, (*place, f".{key(name)}"))
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from _leaves(value, (*place, f"[{at}]"))
    elif isinstance(node, str):
        yield place, node


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
