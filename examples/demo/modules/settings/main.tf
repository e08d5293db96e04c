# Settings of one install. Holds no provider beyond Terraform's own.

variable "greeting" {
  type = string
}

variable "install_id" {
  type = string
}

resource "terraform_data" "message" {
  input = "${var.greeting} from ${var.install_id}"
}

output "message" {
  value = terraform_data.message.output
}

# Marked sensitive, so that it stays in the customer's account.
output "token" {
  value     = sha256("${var.install_id}/${terraform_data.message.id}")
  sensitive = true
}
