# One line about what the other components made.

variable "bucket" {
  type = string
}

variable "queue" {
  type = string
}

variable "image" {
  type = string
}

resource "terraform_data" "summary" {
  input = "bucket ${var.bucket}, queue ${var.queue}, image ${var.image}"
}

output "summary" {
  value = terraform_data.summary.output
}
