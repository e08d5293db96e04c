variable "region" {}
