resource "google_container_cluster" "course" {
  project             = var.project_id
  name                = var.cluster_name
  location            = var.zone
  deletion_protection = var.deletion_protection
  resource_labels     = merge(var.labels, { course = var.cluster_name })

  network         = google_compute_network.course.id
  subnetwork      = google_compute_subnetwork.nodes.id
  networking_mode = "VPC_NATIVE"
  # Anything else ignores NetworkPolicy without a word.
  datapath_provider = "ADVANCED_DATAPATH"

  ip_allocation_policy {
    cluster_secondary_range_name  = "pods"
    services_secondary_range_name = "services"
  }

  # enable_private_endpoint stays unset: with the IP endpoints off, the API decides it, and a value
  # here would come back as a difference in every plan.
  private_cluster_config {
    enable_private_nodes = true
  }

  # The control plane is reached by name; who may is IAM's business, so there is no list of addresses.
  control_plane_endpoints_config {
    dns_endpoint_config {
      allow_external_traffic = true
    }
    ip_endpoints_config {
      enabled = false
    }
  }

  # The pods' network policy names kube-dns, so that is what must answer.
  dns_config {
    cluster_dns = "PLATFORM_DEFAULT"
  }

  workload_identity_config {
    workload_pool = "${var.project_id}.svc.id.goog"
  }

  release_channel {
    channel = "REGULAR"
  }

  maintenance_policy {
    # Two nights at the week's end: GKE asks for 48 hours in any 32 days.
    recurring_window {
      start_time = "2026-01-03T00:00:00Z"
      end_time   = "2026-01-03T08:00:00Z"
      recurrence = "FREQ=WEEKLY;BYDAY=SA,SU"
    }

    dynamic "maintenance_exclusion" {
      for_each = var.workshop[*]
      content {
        exclusion_name = "workshop"
        start_time     = maintenance_exclusion.value.start
        end_time       = maintenance_exclusion.value.end
        exclusion_options {
          scope = "NO_MINOR_OR_NODE_UPGRADES"
        }
      }
    }
  }

  # Removes idle nodes sooner; it also packs pods more tightly.
  cluster_autoscaling {
    autoscaling_profile = "OPTIMIZE_UTILIZATION"
  }

  cost_management_config {
    enabled = true
  }

  addons_config {
    gce_persistent_disk_csi_driver_config {
      enabled = true
    }
  }

  master_auth {
    client_certificate_config {
      issue_client_certificate = false
    }
  }

  # The first pool can't be left out, only thrown away. It is made with these settings: without an
  # account of its own it takes the default Compute account, which many projects lack.
  remove_default_node_pool = true
  initial_node_count       = 1

  node_config {
    disk_size_gb    = local.system_disk_gb
    disk_type       = "pd-balanced"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }
    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }

  timeouts {
    create = "30m"
    update = "40m"
    delete = "40m"
  }

  lifecycle {
    # It describes the pool that is gone; a difference there would make the cluster anew.
    ignore_changes = [node_config]
  }

  depends_on = [
    google_project_service.api,
    google_project_iam_member.nodes,
    google_compute_router_nat.course,
  ]
}
