variable "subnet" {
  type = string
}

variable "zone" {
  type = string
}

variable "greeting" {
  type = string
}

variable "domain" {
  type = string
}

variable "contact" {
  type = string
}

resource "terraform_data" "page" {
  input = "${var.greeting} at ${var.domain}, in ${var.subnet} and ${var.zone}; ${var.contact}"
}

output "page" {
  value = terraform_data.page.output
}
