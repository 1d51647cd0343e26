# The filter takes the project's number; with the id it is accepted and matches nothing.
data "google_project" "course" {
  count      = var.billing_account == null ? 0 : 1
  project_id = var.project_id

  depends_on = [google_project_service.api]
}

resource "google_billing_budget" "course" {
  count    = var.billing_account == null ? 0 : 1
  provider = google.billing

  billing_account = var.billing_account
  display_name    = "${var.cluster_name} a month"

  budget_filter {
    projects = ["projects/${data.google_project.course[0].number}"]
  }

  amount {
    specified_amount {
      units = tostring(var.budget_amount)
    }
  }

  dynamic "threshold_rules" {
    for_each = var.budget_thresholds
    content {
      threshold_percent = threshold_rules.value
    }
  }

  depends_on = [google_project_service.api]
}
