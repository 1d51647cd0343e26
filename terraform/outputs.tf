output "get_credentials_command" {
  description = "Lets kubectl speak to the cluster."
  value       = local.get_credentials_command
}

output "settings" {
  description = "What deploy/ needs to know, in one object."
  value       = local.settings
}

locals {
  get_credentials_command = "gcloud container clusters get-credentials ${var.cluster_name} --zone ${var.zone} --project ${var.project_id} --dns-endpoint"

  # Nothing in it waits for the cloud, so `terraform console` answers it before anything is made.
  settings = {
    project_id    = var.project_id
    region        = local.region
    zone          = var.zone
    cluster_name  = var.cluster_name
    machine_type  = var.machine_type
    gpus          = local.machine.gpus
    max_gpu_nodes = var.max_gpu_nodes
    spot          = var.spot
    apis          = sort(local.apis)
    quotas        = local.quotas
  }
}
