"""Contract tests of answers: their Content-Type, which MiniStack takes from the model of the service."""

from contract_cloud import Contract, needs


@needs("dynamodb", "lambda")
class ContentTypes(Contract):
    def test_an_answer_has_the_content_type_of_its_services_protocol(self):
        calls = {
            ("dynamodb", "list_tables"): "application/x-amz-json-1.0",
            ("kms", "list_keys"): "application/x-amz-json-1.1",
            ("lambda", "list_functions"): "application/json",
            ("s3", "list_buckets"): "application/xml",
            ("sqs", "list_queues"): "application/x-amz-json-1.0",
            ("stepfunctions", "list_state_machines"): "application/x-amz-json-1.0",
            ("sts", "get_caller_identity"): "text/xml",
        }

        found = {call: self.content_type(*call) for call in calls}

        self.assertEqual(calls, found)

    def content_type(self, service, call):
        answer = getattr(self.account.client(service), call)()
        return answer["ResponseMetadata"]["HTTPHeaders"]["content-type"]
