# Names of one install. `terraform_data` is part of Terraform: nothing is downloaded.

variable "install_id" {
  type = string
}

variable "environment" {
  type = string
}

resource "terraform_data" "queue_name" {
  input = "${var.install_id}-${var.environment}-jobs"
}

# Other components read outputs; one that is marked `sensitive` stays in the customer's account.
output "queue_name" {
  value = terraform_data.queue_name.output
}
