terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

variable "cluster_name" {
  type = string
}

variable "subnets" {
  type = string
}

resource "aws_eks_cluster" "this" {
  name     = var.cluster_name
  role_arn = "arn:aws:iam::222222222222:role/cluster"

  vpc_config {
    subnet_ids = split(",", var.subnets)
  }
}

output "cluster" {
  value = {
    name                       = aws_eks_cluster.this.name
    arn                        = aws_eks_cluster.this.arn
    endpoint                   = aws_eks_cluster.this.endpoint
    certificate_authority_data = aws_eks_cluster.this.certificate_authority[0].data
  }
}
