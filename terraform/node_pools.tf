# Always one small node without a GPU: for the cluster's own pods, which would else keep a GPU node
# alive, and because GKE taints GPU nodes only where there is another pool.
resource "google_container_node_pool" "system" {
  project    = var.project_id
  name       = "system"
  cluster    = google_container_cluster.course.name
  location   = var.zone
  node_count = local.system_nodes

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  node_config {
    machine_type    = local.system_machine
    image_type      = "COS_CONTAINERD"
    disk_type       = "pd-balanced"
    disk_size_gb    = local.system_disk_gb
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    resource_labels = { course = var.cluster_name }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }
    workload_metadata_config {
      mode = "GKE_METADATA"
    }
    kubelet_config {
      insecure_kubelet_readonly_port_enabled = "FALSE"
    }
  }

  timeouts {
    create = "20m"
    update = "30m"
    delete = "30m"
  }
}

resource "google_container_node_pool" "gpu" {
  project  = var.project_id
  name     = "gpu"
  cluster  = google_container_cluster.course.name
  location = var.zone

  # None while nobody works. Never together with node_count, which would pull it back on each apply.
  initial_node_count = 0
  autoscaling {
    total_min_node_count = 0
    total_max_node_count = var.max_gpu_nodes
    location_policy      = "ANY"
  }

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  node_config {
    machine_type    = var.machine_type
    image_type      = "COS_CONTAINERD"
    disk_type       = "pd-balanced"
    disk_size_gb    = var.boot_disk_gb
    spot            = var.spot
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    resource_labels = { course = var.cluster_name }

    guest_accelerator {
      type  = local.gpu_nodes.accelerator
      count = local.machine.gpus
      gpu_driver_installation_config {
        gpu_driver_version = var.gpu_driver_version
      }
    }

    # Explicit: GKE's own taint depends on which pool was there first.
    taint {
      key    = local.gpu_nodes.taint.key
      value  = local.gpu_nodes.taint.value
      effect = local.gpu_nodes.taint.effect
    }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }
    workload_metadata_config {
      mode = "GKE_METADATA"
    }
    kubelet_config {
      insecure_kubelet_readonly_port_enabled = "FALSE"
    }
    gvnic {
      enabled = true
    }
    # Streams images, from Artifact Registry only; harmless for others.
    gcfs_config {
      enabled = true
    }

    dynamic "reservation_affinity" {
      for_each = var.reservation[*]
      content {
        consume_reservation_type = "SPECIFIC_RESERVATION"
        key                      = "compute.googleapis.com/reservation-name"
        values                   = [reservation_affinity.value]
      }
    }
  }

  # Where no GPU is to be had, fail in minutes and not in half an hour.
  timeouts {
    create = "15m"
    update = "30m"
    delete = "30m"
  }

  depends_on = [google_container_node_pool.system]
}
