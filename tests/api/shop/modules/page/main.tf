resource "terraform_data" "page" {
  input = "as deployed"
}
