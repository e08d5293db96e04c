# Each resource is made anew in each round, after the one before it, and writes two lines into the ledger.

variable "round" {
  type = string
}

locals {
  write = <<-EOT
    at=$${AWS_ENDPOINT_URL#http://}
    write() {
        exec 3<>"/dev/tcp/$${at%:*}/$${at#*:}"
        printf 'POST /__proxy/effect?%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n' "$1" "$at" >&3
        read -r answer <&3
        exec 3>&-
    }
    write "begin%20$STEP%20${var.round}%20$STEP"
    sleep 0.5
    write "end%20$STEP%20${var.round}%20$STEP"
  EOT
}

resource "terraform_data" "one" {
  triggers_replace = [var.round]
  provisioner "local-exec" {
    interpreter = ["bash", "-c"]
    command     = local.write
    environment = { STEP = "one" }
  }
}

resource "terraform_data" "two" {
  triggers_replace = [var.round]
  depends_on       = [terraform_data.one]
  provisioner "local-exec" {
    interpreter = ["bash", "-c"]
    command     = local.write
    environment = { STEP = "two" }
  }
}

resource "terraform_data" "three" {
  triggers_replace = [var.round]
  depends_on       = [terraform_data.two]
  provisioner "local-exec" {
    interpreter = ["bash", "-c"]
    command     = local.write
    environment = { STEP = "three" }
  }
}

resource "terraform_data" "four" {
  triggers_replace = [var.round]
  depends_on       = [terraform_data.three]
  provisioner "local-exec" {
    interpreter = ["bash", "-c"]
    command     = local.write
    environment = { STEP = "four" }
  }
}

resource "terraform_data" "five" {
  triggers_replace = [var.round]
  depends_on       = [terraform_data.four]
  provisioner "local-exec" {
    interpreter = ["bash", "-c"]
    command     = local.write
    environment = { STEP = "five" }
  }
}
