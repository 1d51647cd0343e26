terraform {
  # mock_provider, which the tests use, came with 1.7; validations that look at two variables with 1.9.
  required_version = ">= 1.9"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 7.17, < 9"
    }
  }
}

provider "google" {
  project = var.project_id
  region  = local.region
  zone    = var.zone

  default_labels = var.labels
}

# The budget's API answers only when told which project's quota a person's own credentials use.
# An alias, because every other API must first be enabled before such a project can be charged.
provider "google" {
  alias                 = "billing"
  project               = var.project_id
  billing_project       = var.project_id
  user_project_override = true
}
