# The module of `net`.
variable "region" {}
variable "count" { default = 1 }
variable "tags" {
  type    = map(string)
  default = { owner = "é" }
}
variable "name" {}

module "inner" {
  source = "./inner"
  list   = [for k, v in var.tags : "${k}=${upper(v)}" if v != null]
}

resource "aws_sqs_queue" "jobs" {
  name   = "${var.name}-jobs"
  policy = <<-EOT
    %{ for k in keys(var.tags) ~}
    ${k}
    %{ endfor ~}
  EOT
}

output "id" {
  value = aws_sqs_queue.jobs.id
}

output "ids" {
  value = { for k in keys(var.tags) : k => aws_sqs_queue.jobs.id }
}
