resource "google_project_service" "api" {
  for_each = local.apis

  project = var.project_id
  service = each.value

  # Other things in the project may use them; destroying a course must not break those.
  disable_on_destroy = false
}

# The nodes' own account. Without it they run as the default Compute account, which may edit the
# whole project in older projects, and which newer ones lack.
resource "google_service_account" "nodes" {
  project      = var.project_id
  account_id   = "${var.cluster_name}-nodes"
  display_name = "Nodes of ${var.cluster_name}"

  depends_on = [google_project_service.api]
}

# Logs, metrics and nothing else; pods get no Google identity at all.
resource "google_project_iam_member" "nodes" {
  project = var.project_id
  role    = "roles/container.defaultNodeServiceAccount"
  member  = "serviceAccount:${google_service_account.nodes.email}"
}
