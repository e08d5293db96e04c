"""Evaluates CloudFormation's intrinsic functions, those that the templates here use; any other is an error."""

import re

from templates import REGION

NO_VALUE = {"Ref": "AWS::NoValue"}
# What `Ref` returns for these types of resources: the first of these properties that is there.
NAME_PROPERTIES = (
    "RoleName",
    "RepositoryName",
    "BucketName",
    "TableName",
    "QueueName",
    "LogGroupName",
    "FunctionName",
)
# What `Fn::GetAtt` returns for an ARN: `{account}` is the stack's account and `{name}` is what `Ref` returns.
ARNS = {
    "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{REGION}:{{account}}:table/{{name}}",
    "AWS::ECR::Repository": f"arn:aws:ecr:{REGION}:{{account}}:repository/{{name}}",
    "AWS::IAM::Role": "arn:aws:iam::{account}:role/{name}",
    "AWS::KMS::Key": f"arn:aws:kms:{REGION}:{{account}}:key/{{name}}",
    "AWS::Lambda::Function": f"arn:aws:lambda:{REGION}:{{account}}:function:{{name}}",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{REGION}:{{account}}:log-group:{{name}}:*",
    "AWS::S3::Bucket": "arn:aws:s3:::{name}",
    "AWS::SQS::Queue": f"arn:aws:sqs:{REGION}:{{account}}:{{name}}",
    "AWS::SecretsManager::Secret": f"arn:aws:secretsmanager:{REGION}:{{account}}:secret:{{name}}-AbCdEf",
}


class Evaluator:
    """Evaluates the functions of a template for one stack: its name, its account and its parameters."""

    def __init__(self, template, stack_name, account, parameters):
        self.template, self.account = template, account
        defaults = {name: declared.get("Default", "") for name, declared in template.get("Parameters", {}).items()}
        self.values = {
            **defaults,
            **parameters,
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": account,
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": stack_name,
            "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{account}:stack/{stack_name}/id",
        }

    def resolve(self, node):
        """Returns a part of the template as plain values; what is `AWS::NoValue` is left out."""
        if isinstance(node, list):
            return [value for value in map(self.resolve, node) if value is not None]
        if not isinstance(node, dict):
            return node
        name, argument = _function(node)
        if name is None:
            resolved = {key: self.resolve(value) for key, value in node.items()}
            return {key: value for key, value in resolved.items() if value is not None}
        if name == "Ref":
            return None if node == NO_VALUE else self.reference(argument)
        if name == "Fn::GetAtt":
            return self.attribute(*argument)
        if name == "Fn::Sub":
            return self._sub(argument)
        if name == "Fn::If":
            condition, then, otherwise = argument
            return self.resolve(then if self.holds(condition) else otherwise)
        if name == "Fn::FindInMap":
            mapping, first, second = self.resolve(argument)
            return self.template["Mappings"][mapping][first][second]
        if name == "Fn::Select":
            at, items = argument
            return self.resolve(items)[int(at)]
        if name == "Fn::Split":
            separator, text = argument
            return self.resolve(text).split(separator)
        if name == "Fn::Join":
            separator, parts = argument
            parts = self.resolve(parts)
            # A parameter that is a list has its items in one text.
            return separator.join([parts] if isinstance(parts, str) else parts)
        raise ValueError(f"unknown function {name}")

    def _sub(self, argument):
        text, own = sub_parts(argument)

        def value(name):
            if name in own:
                return str(self.resolve(own[name]))
            return str(self.attribute(*name.split(".", 1)) if "." in name else self.reference(name))

        return substitute(text, value)

    def reference(self, name):
        """Returns what `Ref` returns: the value of a parameter, or the name or ARN of a resource."""
        if name in self.values:
            return self.values[name]
        resource = self.template["Resources"][name]
        own = resource["Properties"]
        if resource["Type"] == "AWS::IAM::ManagedPolicy":
            return f"arn:aws:iam::{self.account}:policy/{self.resolve(own['ManagedPolicyName'])}"
        if resource["Type"] == "AWS::SNS::Topic":
            return f"arn:aws:sns:{REGION}:{self.account}:{self.resolve(own['TopicName'])}"
        named = [own[key] for key in NAME_PROPERTIES if key in own]
        return self.resolve(named[0]) if named else f"{name}-{self.values['AWS::StackName']}"

    def attribute(self, resource, attribute):
        """Returns what `Fn::GetAtt` returns: an ARN, whichever attribute is asked for."""
        declared = self.template["Resources"][resource]
        name = self.reference(resource)
        if declared["Type"] == "AWS::SecretsManager::Secret":
            name = self.resolve(declared["Properties"].get("Name", name))
        arn = ARNS.get(declared["Type"], f"arn:aws:other:{REGION}:{{account}}:{{name}}")
        return arn.format(account=self.account, name=name)

    def holds(self, condition):
        """Returns whether a condition of the template, given by its name, is true."""
        return self._is_true(self.template["Conditions"][condition])

    def _is_true(self, node):
        if list(node) == ["Condition"]:
            return self.holds(node["Condition"])
        name, argument = _function(node)
        if name == "Fn::Not":
            return not self._is_true(argument[0])
        if name == "Fn::And":
            return all([self._is_true(each) for each in argument])
        if name == "Fn::Or":
            return any([self._is_true(each) for each in argument])
        if name == "Fn::Equals":
            left, right = map(self.resolve, argument)
            return left == right
        raise ValueError(f"unknown condition {name}")


def _function(node):
    """Returns the name and the argument of the function that a node is; nothing when it is a plain mapping."""
    if len(node) == 1:
        [(name, argument)] = node.items()
        if name == "Ref" or name.startswith("Fn::"):
            return name, argument
    return None, None


# ---- conditions ------------------------------------------------------------------------------------------------------


def decide_conditions(template, stack_name, account, parameters):
    """Returns the template as CloudFormation makes it of the parameters, without `Conditions` and `Fn::If`.

    Only the resources and outputs that are made remain. References stay as they are.
    """
    evaluator = Evaluator(template, stack_name, account, parameters)
    holds = {name: evaluator.holds(name) for name in template["Conditions"]}
    made = {
        section: _choose(content, holds)
        for section, content in template.items()
        if section not in ("Conditions", "Metadata")
    }
    for section in ("Resources", "Outputs"):
        made[section] = {
            name: {key: value for key, value in entry.items() if key != "Condition"}
            for name, entry in made[section].items()
            if holds.get(entry.get("Condition"), True)
        }
    return made


def _choose(node, holds):
    """Replaces every `Fn::If` by the side that its condition chooses, and leaves out what is `AWS::NoValue`."""
    if isinstance(node, list):
        return [chosen for item in node if (chosen := _choose(item, holds)) != NO_VALUE]
    if not isinstance(node, dict):
        return node
    if list(node) == ["Fn::If"]:
        condition, then, otherwise = node["Fn::If"]
        return _choose(then if holds[condition] else otherwise, holds)
    return {key: chosen for key, value in node.items() if (chosen := _choose(value, holds)) != NO_VALUE}


def branches(values):
    """Yields each item of a list (or a single value) with the conditions that it depends on: `if X`, `unless X`."""
    for item in values if isinstance(values, list) else [values]:
        if not isinstance(item, dict) or "Fn::If" not in item:
            yield item, []
            continue
        condition, then, otherwise = item["Fn::If"]
        for side, word in ((then, "if"), (otherwise, "unless")):
            if side != NO_VALUE:
                yield from ((inner, [f"{word} `{condition}`", *deeper]) for inner, deeper in branches(side))


def statements(holder):
    """Returns the statements of a role's inline policies, or of a managed policy, on every side of each condition."""
    documents = [policy["PolicyDocument"] for policy in holder["Properties"].get("Policies", [holder["Properties"]])]
    return [statement for document in documents for statement, _ in branches(document["Statement"])]


# ---- references ------------------------------------------------------------------------------------------------------


def sub_parts(argument):
    """Returns the text of an `Fn::Sub` and the values that it brings itself."""
    return (argument, {}) if isinstance(argument, str) else argument


def substitute(text, value):
    """Replaces each `${Name}` by `value(Name)`; `${!Name}` is a literal."""
    return re.sub(r"\$\{([^!}][^}]*)\}", lambda found: value(found[1]), text)


def references(node):
    """Yields every name that `Ref`, `Fn::GetAtt`, `Fn::Sub` or `DependsOn` refers to."""
    if isinstance(node, list):
        for item in node:
            yield from references(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "Ref":
                yield value
            elif key == "Fn::GetAtt":
                yield value[0]
            elif key == "Fn::Sub":
                text, own = sub_parts(value)
                names = set()
                substitute(text, lambda name, names=names: names.add(name.split(".")[0]) or "")
                yield from names - set(own)
                yield from references(own)
            elif key == "DependsOn":
                yield from value if isinstance(value, list) else [value]
            else:
                yield from references(value)
