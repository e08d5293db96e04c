variable "list" { default = [] }
