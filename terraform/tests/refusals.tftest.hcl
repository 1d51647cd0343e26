# Each validation refuses what it is for. A run counts only if every variable it lists is refused.

mock_provider "google" {}
mock_provider "google" {
  alias = "billing"
}

variables {
  project_id = "course-project-1"
}

run "names_and_places" {
  command = plan
  variables {
    project_id      = "Course Project"
    zone            = "us-central1"
    machine_type    = "n1-standard-8"
    cluster_name    = "a-name-that-is-longer-than-24"
    reservation     = "Class of May"
    labels          = { Team = "ML" }
    billing_account = "My Billing Account"
  }
  expect_failures = [
    var.project_id,
    var.zone,
    var.machine_type,
    var.cluster_name,
    var.reservation,
    var.labels,
    var.billing_account,
  ]
}

run "numbers_and_ranges" {
  command = plan
  variables {
    zone               = "mars-north1-a"
    max_gpu_nodes      = 0
    boot_disk_gb       = 100
    gpu_driver_version = "535"
    cidrs              = { nodes = "0.0.0.0/0" }
    workshop           = { start = "2026-10-10T00:00:00Z", end = "2026-10-05T00:00:00Z" }
    budget_amount      = 0
    budget_thresholds  = []
    gpu_count          = 4
  }
  expect_failures = [
    var.zone,
    var.max_gpu_nodes,
    var.boot_disk_gb,
    var.gpu_driver_version,
    var.cidrs,
    var.workshop,
    var.budget_amount,
    var.budget_thresholds,
    var.gpu_count,
  ]
}

run "pods_everywhere_and_falling_thresholds" {
  command = plan
  variables {
    cidrs             = { pods = "0.0.0.0/0" }
    max_gpu_nodes     = 80
    workshop          = { start = "next Monday", end = "2026-10-05T00:00:00Z" }
    budget_thresholds = [1.0, 0.5]
    reservation       = "class"
    spot              = true
    machine_type      = "g2-standard-64"
  }
  expect_failures = [
    var.cidrs,
    var.max_gpu_nodes,
    var.workshop,
    var.budget_thresholds,
    var.reservation,
    var.machine_type,
  ]
}

run "services_everywhere_and_two_gpus_of_four" {
  command = plan
  variables {
    cidrs        = { services = "0.0.0.0/0" }
    machine_type = "g2-standard-48"
    gpu_count    = 2
  }
  expect_failures = [var.cidrs, var.gpu_count]
}

run "public_nodes" {
  command = plan
  variables {
    cidrs = { nodes = "34.1.0.0/16" }
  }
  expect_failures = [var.cidrs]
}

run "range_without_a_size" {
  command = plan
  variables {
    cidrs = { nodes = "10.10.0.0" }
  }
  expect_failures = [var.cidrs]
}
