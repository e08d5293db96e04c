terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

variable "region" {
  type = string
}

variable "tags" {
  type    = map(string)
  default = {}
}

resource "aws_vpc" "this" {
  cidr_block = "10.0.0.0/16"
  tags       = var.tags
}

output "subnets" {
  value = aws_vpc.this.id
}

output "dns" {
  value = aws_vpc.this
}
