resource "google_compute_network" "course" {
  project                 = var.project_id
  name                    = var.cluster_name
  auto_create_subnetworks = false

  depends_on = [google_project_service.api]
}

resource "google_compute_subnetwork" "nodes" {
  project                  = var.project_id
  name                     = "${var.cluster_name}-nodes"
  region                   = local.region
  network                  = google_compute_network.course.id
  ip_cidr_range            = var.cidrs.nodes
  private_ip_google_access = true

  secondary_ip_range {
    range_name    = "pods"
    ip_cidr_range = var.cidrs.pods
  }

  secondary_ip_range {
    range_name    = "services"
    ip_cidr_range = var.cidrs.services
  }

  log_config {
    aggregation_interval = "INTERVAL_10_MIN"
    flow_sampling        = 0.1
    metadata             = "EXCLUDE_ALL_METADATA"
  }
}

# Nodes have no address of their own. Without this no image is pulled and no package is installed.
resource "google_compute_router" "course" {
  project = var.project_id
  name    = var.cluster_name
  region  = local.region
  network = google_compute_network.course.id
}

resource "google_compute_router_nat" "course" {
  project                            = var.project_id
  name                               = var.cluster_name
  region                             = local.region
  router                             = google_compute_router.course.name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}
