# What a participant gets who fills in the project and nothing else.

mock_provider "google" {}
mock_provider "google" {
  alias = "billing"
}

variables {
  project_id = "course-project-1"
}

run "two_l4_in_a_pool_that_scales_to_zero" {
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].machine_type == "g2-standard-24"
    error_message = "The default machine is g2-standard-24."
  }
  assert {
    condition = (
      google_container_node_pool.gpu.node_config[0].guest_accelerator[0].type == "nvidia-l4"
      && google_container_node_pool.gpu.node_config[0].guest_accelerator[0].count == 2
      && google_container_node_pool.gpu.node_config[0].guest_accelerator[0].gpu_driver_installation_config[0].gpu_driver_version == "DEFAULT"
    )
    error_message = "It carries two L4, and GKE installs the driver."
  }
  assert {
    condition = (
      google_container_node_pool.gpu.autoscaling[0].total_min_node_count == 0
      && google_container_node_pool.gpu.autoscaling[0].total_max_node_count == 1
      && google_container_node_pool.gpu.autoscaling[0].location_policy == "ANY"
      && google_container_node_pool.gpu.initial_node_count == 0
    )
    error_message = "The GPU pool scales between none and one."
  }
  assert {
    condition = (
      google_container_node_pool.gpu.node_config[0].taint[0].key == "nvidia.com/gpu"
      && google_container_node_pool.gpu.node_config[0].taint[0].value == "present"
      && google_container_node_pool.gpu.node_config[0].taint[0].effect == "NO_SCHEDULE"
    )
    error_message = "The taint is explicit."
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].spot == false && length(google_container_node_pool.gpu.node_config[0].reservation_affinity) == 0
    error_message = "Neither spot nor a reservation unless asked for."
  }
}

run "nodes_are_hardened" {
  assert {
    condition = alltrue([
      for pool in [google_container_node_pool.system, google_container_node_pool.gpu] : (
        pool.node_config[0].image_type == "COS_CONTAINERD"
        && pool.node_config[0].disk_type == "pd-balanced"
        && pool.node_config[0].shielded_instance_config[0].enable_secure_boot
        && pool.node_config[0].workload_metadata_config[0].mode == "GKE_METADATA"
        && pool.node_config[0].kubelet_config[0].insecure_kubelet_readonly_port_enabled == "FALSE"
        && pool.node_config[0].service_account == google_service_account.nodes.email
      )
    ])
    error_message = "Both pools: COS, balanced disk, secure boot, metadata server, no open kubelet port, own account."
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].disk_size_gb >= 200 && google_container_node_pool.gpu.node_config[0].gvnic[0].enabled && google_container_node_pool.gpu.node_config[0].gcfs_config[0].enabled
    error_message = "GPU nodes: 200 GB at least, gVNIC, image streaming."
  }
  assert {
    condition     = google_container_node_pool.system.node_config[0].machine_type == "e2-standard-2" && google_container_node_pool.system.node_count == 1
    error_message = "One small system node."
  }
  assert {
    condition     = google_project_iam_member.nodes.role == "roles/container.defaultNodeServiceAccount"
    error_message = "The nodes' account may do what a node must, and nothing else."
  }
}

run "cluster_is_private_and_in_one_zone" {
  assert {
    condition     = google_container_cluster.course.location == "us-central1-a" && google_compute_subnetwork.nodes.region == "us-central1" && google_compute_router_nat.course.region == "us-central1"
    error_message = "The region follows from the zone."
  }
  assert {
    condition = (
      google_container_cluster.course.networking_mode == "VPC_NATIVE"
      && google_container_cluster.course.datapath_provider == "ADVANCED_DATAPATH"
      && google_container_cluster.course.private_cluster_config[0].enable_private_nodes
    )
    error_message = "VPC-native, network policies enforced, private nodes."
  }
  assert {
    condition = (
      google_container_cluster.course.control_plane_endpoints_config[0].dns_endpoint_config[0].allow_external_traffic
      && !google_container_cluster.course.control_plane_endpoints_config[0].ip_endpoints_config[0].enabled
    )
    error_message = "The control plane is reached by name only."
  }
  assert {
    condition = (
      google_container_cluster.course.workload_identity_config[0].workload_pool == "course-project-1.svc.id.goog"
      && google_container_cluster.course.release_channel[0].channel == "REGULAR"
      && google_container_cluster.course.cluster_autoscaling[0].autoscaling_profile == "OPTIMIZE_UTILIZATION"
      && google_container_cluster.course.cost_management_config[0].enabled
      && google_container_cluster.course.remove_default_node_pool
      && google_container_cluster.course.node_config[0].service_account == google_service_account.nodes.email
      && !google_container_cluster.course.deletion_protection
    )
    error_message = "Workload identity, regular channel, eager scale-down, cost allocation, no default pool and no default account."
  }
  assert {
    condition     = length(google_container_cluster.course.maintenance_policy[0].maintenance_exclusion) == 0
    error_message = "No exclusion unless a workshop is named."
  }
}

run "services_and_outputs" {
  assert {
    condition = toset(keys(google_project_service.api)) == toset([
      "container.googleapis.com", "compute.googleapis.com", "iam.googleapis.com",
      "cloudresourcemanager.googleapis.com", "logging.googleapis.com", "monitoring.googleapis.com",
    ])
    error_message = "The six services, and no other."
  }
  assert {
    condition     = alltrue([for api in google_project_service.api : api.disable_on_destroy == false])
    error_message = "Destroying the course disables no service."
  }
  assert {
    condition     = output.get_credentials_command == "gcloud container clusters get-credentials jax-course --zone us-central1-a --project course-project-1 --dns-endpoint"
    error_message = "get_credentials_command is what participants type."
  }
  assert {
    condition     = tomap(output.settings.quotas) == tomap({ NVIDIA_L4_GPUS = 2, GPUS_ALL_REGIONS = 2, CPUS = 26, SSD_TOTAL_GB = 300, IN_USE_ADDRESSES = 1 })
    error_message = "The quotas to check are those of the largest cluster."
  }
  assert {
    condition     = length(google_billing_budget.course) == 0
    error_message = "No budget unless an account is named."
  }
}
