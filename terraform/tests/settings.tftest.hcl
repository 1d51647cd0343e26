# What each setting changes.

mock_provider "google" {
  mock_data "google_project" {
    defaults = {
      number = "123456789012"
    }
  }
}
mock_provider "google" {
  alias = "billing"
}

variables {
  project_id = "course-project-1"
}

run "g2_standard_4_has_1" {
  command = plan
  variables {
    machine_type = "g2-standard-4"
    gpu_count    = 1
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].guest_accelerator[0].count == 1 && output.settings.gpus == 1
    error_message = "g2-standard-4 carries 1 L4."
  }
}

run "g2_standard_8_has_1" {
  command = plan
  variables {
    machine_type = "g2-standard-8"
    gpu_count    = 1
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].guest_accelerator[0].count == 1 && output.settings.gpus == 1
    error_message = "g2-standard-8 carries 1 L4."
  }
}

run "g2_standard_12_has_1" {
  command = plan
  variables {
    machine_type = "g2-standard-12"
    gpu_count    = 1
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].guest_accelerator[0].count == 1 && output.settings.gpus == 1
    error_message = "g2-standard-12 carries 1 L4."
  }
}

run "g2_standard_16_has_1" {
  command = plan
  variables {
    machine_type = "g2-standard-16"
    gpu_count    = 1
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].guest_accelerator[0].count == 1 && output.settings.gpus == 1
    error_message = "g2-standard-16 carries 1 L4."
  }
}

run "g2_standard_32_has_1" {
  command = plan
  variables {
    machine_type = "g2-standard-32"
    gpu_count    = 1
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].guest_accelerator[0].count == 1 && output.settings.gpus == 1
    error_message = "g2-standard-32 carries 1 L4."
  }
}

run "g2_standard_24_has_2" {
  command = plan
  variables {
    machine_type = "g2-standard-24"
    gpu_count    = 2
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].guest_accelerator[0].count == 2 && output.settings.gpus == 2
    error_message = "g2-standard-24 carries 2 L4."
  }
}

run "g2_standard_48_has_4" {
  command = plan
  variables {
    machine_type = "g2-standard-48"
    gpu_count    = 4
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].guest_accelerator[0].count == 4 && output.settings.gpus == 4
    error_message = "g2-standard-48 carries 4 L4."
  }
}

run "g2_standard_96_has_8" {
  command = plan
  variables {
    machine_type = "g2-standard-96"
    gpu_count    = 8
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].guest_accelerator[0].count == 8 && output.settings.gpus == 8
    error_message = "g2-standard-96 carries 8 L4."
  }
}

run "spot_in_another_region" {
  command = plan
  variables {
    zone          = "europe-west4-b"
    spot          = true
    max_gpu_nodes = 2
  }
  assert {
    condition     = google_compute_subnetwork.nodes.region == "europe-west4" && google_container_cluster.course.location == "europe-west4-b" && output.settings.region == "europe-west4"
    error_message = "europe-west4-b lies in europe-west4."
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].spot && google_container_node_pool.gpu.autoscaling[0].total_max_node_count == 2
    error_message = "Two spot nodes at most."
  }
  assert {
    condition     = output.settings.quotas["PREEMPTIBLE_NVIDIA_L4_GPUS"] == 4 && !contains(keys(output.settings.quotas), "NVIDIA_L4_GPUS")
    error_message = "Spot GPUs have a quota of their own."
  }
}

run "a_workshop_with_a_reservation" {
  command = plan
  variables {
    reservation = "class-of-may"
    workshop    = { start = "2026-10-05T00:00:00Z", end = "2026-10-10T00:00:00Z" }
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].reservation_affinity[0].consume_reservation_type == "SPECIFIC_RESERVATION" && google_container_node_pool.gpu.node_config[0].reservation_affinity[0].values == toset(["class-of-may"])
    error_message = "The named reservation, and no other."
  }
  assert {
    condition     = one(google_container_cluster.course.maintenance_policy[0].maintenance_exclusion).exclusion_options[0].scope == "NO_MINOR_OR_NODE_UPGRADES"
    error_message = "Nodes are left alone on workshop days."
  }
}

run "budget_filters_by_project_number" {
  command = apply
  variables {
    billing_account   = "01ABCD-23EF45-6789AB"
    budget_amount     = 250
    budget_thresholds = [0.25, 0.5, 1.0]
  }
  assert {
    condition     = google_billing_budget.course[0].budget_filter[0].projects == toset(["projects/123456789012"])
    error_message = "The filter holds the project's number, not its id."
  }
  assert {
    condition     = [for rule in google_billing_budget.course[0].threshold_rules : rule.threshold_percent] == [0.25, 0.5, 1.0] && google_billing_budget.course[0].amount[0].specified_amount[0].units == "250"
    error_message = "Amount and rising thresholds as given."
  }
  assert {
    condition     = contains(keys(google_project_service.api), "billingbudgets.googleapis.com")
    error_message = "A budget needs its service."
  }
}
