"""Alarms and saved queries of the tenant stack: what they watch and read, and that the functions write it."""

import re
import unittest

import templates
from templates import of_type, properties, resource_text

EMBEDDED = (templates.ROOT / "functions/src/embedded_metrics.rs").read_text()
METRICS = re.findall(r'Self::\w+ => "(\w+)",', (templates.ROOT / "crates/app/src/metrics.rs").read_text())
# The names at the top of each log line (functions/src/log_line.rs), and the fields of Lambda and Step Functions.
NAMES = {"tenant", "app", "install", "workflow", "job"}
OTHERS = {"level", "fields.message", "type", "execution_arn"}
# The fields that record values of metrics only if a parameter says so.
BY_INSTALL = "FREEHOLD_INSTALL_METRICS"
WORDS = {
    *("fields", "filter", "stats", "sort", "limit", "by", "as", "in", "or", "and", "not", "like", "asc", "desc"),
    *("ispresent", "coalesce", "sum", "avg", "max"),
}


def watched(template):
    """Returns each alarm's metric and the value of its dimension."""
    for name, alarm in of_type(template, "AWS::CloudWatch::Alarm").items():
        have = alarm["Properties"]
        values = [str(resource_text(d["Value"])) for d in have.get("Dimensions", [])]
        yield name, (have["Namespace"], have["MetricName"], *values)


class Alarms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = templates.tenant()
        cls.alarms = of_type(cls.template, "AWS::CloudWatch::Alarm")

    def test_they_watch_functions_queues_sweeps_and_workflows(self):
        found = {metric for name, metric in watched(self.template) if name != "StuckWorkflowsAlarm"}

        visible, errors = "ApproximateNumberOfMessagesVisible", "Errors"
        self.assertEqual(
            found,
            {("AWS/Lambda", errors, name) for name in templates.FUNCTIONS.values()}
            | {("AWS/Lambda", "Throttles", name) for name in ("Api", "DispatchJob", "AcceptReport")}
            | {("AWS/SQS", visible, f"{queue}DeadLetters.QueueName") for queue in ("", "Orders", "Notifications")}
            | {
                ("AWS/SQS", "ApproximateAgeOfOldestMessage", "ReportsQueue.QueueName"),
                ("AWS/Lambda", "Invocations", "Sweep"),
                ("Freehold", "WorkflowsFailed", "TenantName"),
            },
        )

    def test_each_one_reaches_the_topic_and_only_missing_sweeps_are_a_fault_by_their_absence(self):
        for name, alarm in self.alarms.items():
            have = alarm["Properties"]
            self.assertEqual(have["AlarmActions"], [{"Ref": "AlarmsTopic"}], name)
            missing = "breaching" if name == "MissingSweepsAlarm" else "notBreaching"
            self.assertEqual(have["TreatMissingData"], missing, name)

    def test_a_metric_of_freehold_is_one_that_functions_write(self):
        stuck = self.alarms["StuckWorkflowsAlarm"]["Properties"]
        [metric] = properties(self.template, "StuckWorkflowsMetric")["MetricTransformations"]
        own = {metric[1] for _, metric in watched(self.template) if metric[0] == "Freehold"}

        self.assertEqual((stuck["Namespace"], stuck["MetricName"]), (metric["MetricNamespace"], metric["MetricName"]))
        self.assertTrue(METRICS)
        self.assertEqual(own - set(METRICS), set())

    def test_an_alarm_of_freehold_has_the_namespace_and_the_dimension_that_functions_write_with_each_value(self):
        [namespace] = re.findall(r'const NAMESPACE: &str = "(\w+)";', EMBEDDED)
        [dimension] = re.findall(r'let mut sets = vec!\[vec!\["(\w+)"\]\];', EMBEDDED)
        functions = of_type(self.template, "AWS::Lambda::Function").values()
        tenants = [one["Properties"]["Environment"]["Variables"]["FREEHOLD_TENANT"] for one in functions]

        own = {name for name, metric in watched(self.template) if metric[0] == namespace}

        self.assertEqual(own, {"FailedWorkflowsAlarm"})
        [have] = [self.alarms[name]["Properties"]["Dimensions"] for name in own]
        self.assertEqual(have, [{"Name": dimension, "Value": {"Ref": "TenantName"}}])
        self.assertEqual(tenants, [{"Ref": "TenantName"}] * len(tenants))

    def test_they_are_on_after_the_time_that_their_page_names(self):
        on = {}
        for name, alarm in self.alarms.items():
            have = alarm["Properties"]
            on[name] = (have["Statistic"], have["Period"] * have["EvaluationPeriods"], have["Threshold"])

        self.assertEqual(on.pop("MissingSweepsAlarm"), ("Sum", 15 * 60, 1))
        self.assertEqual(on.pop("OldReportsAlarm"), ("Maximum", 60, 15 * 60))
        for name in ("Api", "DispatchJob", "AcceptReport"):
            self.assertEqual(on.pop(f"{name}ThrottlesAlarm"), ("Sum", 5 * 60, 0))
        # The others are on at the first value above 0, within five minutes.
        self.assertEqual({name for name, (_, secs, threshold) in on.items() if secs > 300 or threshold > 1}, set())

    def test_they_cost_two_dollars_a_month_at_most(self):
        # An alarm on one metric costs 0.10 US dollars a month; one on an expression costs that for each of its metrics.
        self.assertEqual([name for name, alarm in self.alarms.items() if "Metrics" in alarm["Properties"]], [])
        self.assertLessEqual(len(self.alarms), 20)

    def test_installs_have_metrics_of_their_own_only_on_request(self):
        functions = of_type(self.template, "AWS::Lambda::Function")
        switched = {
            name: one["Properties"]["Environment"]["Variables"][BY_INSTALL]
            for name, one in functions.items()
            if BY_INSTALL in one["Properties"]["Environment"]["Variables"]
        }

        self.assertEqual(set(switched), {"Api", "DispatchJob", "AcceptReport", "FinishWorkflow", "Sweep"})
        self.assertEqual(list(switched.values()), [{"Ref": "InstallMetrics"}] * len(switched))
        self.assertEqual(self.template["Parameters"]["InstallMetrics"]["Default"], "off")


class Queries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = templates.tenant()
        cls.queries = {
            resource["Properties"]["Name"]["Fn::Sub"].rpartition("/")[2]: resource["Properties"]
            for resource in of_type(cls.template, "AWS::Logs::QueryDefinition").values()
        }

    def test_there_is_one_for_each_name_and_for_failures_and_metrics(self):
        self.assertEqual(set(self.queries), {"failures", "by-app", "by-install", "by-workflow", "metrics-by-install"})
        for name in ("app", "install", "workflow"):
            self.assertIn(f'{name} = "{name.upper()}"', self.queries[f"by-{name}"]["QueryString"])

    def test_they_read_the_logs_of_all_functions(self):
        logs = {f"{name}Logs" for name in templates.FUNCTIONS.values()}

        for name, query in self.queries.items():
            more = {"MachineLogs"} if name == "by-workflow" else set()
            self.assertEqual({one["Ref"] for one in query["LogGroupNames"]}, logs | more, name)

    def test_they_name_only_fields_that_a_line_can_have(self):
        for name, query in self.queries.items():
            text = re.sub(r'"[^"]*"', "", query["QueryString"])
            own = set(re.findall(r"as (\w+)", text))
            fields = set(re.findall(r"@?[A-Za-z_][\w.]*", text)) - {"@timestamp"}

            self.assertEqual(fields - own - WORDS - NAMES - OTHERS - set(METRICS), set(), name)


if __name__ == "__main__":
    unittest.main()
