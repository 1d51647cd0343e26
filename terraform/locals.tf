# One decision in one place: everything that follows from the zone and the machine type.
locals {
  # Also read by deploy/ and by the tests, so that no second list can disagree.
  gpu_nodes     = jsondecode(file("${path.module}/gpu_nodes.json"))
  machine_types = local.gpu_nodes.machine_types
  machine       = local.machine_types[var.machine_type]

  region = regex("^(.+)-[a-z]$", var.zone)[0]

  system_machine = "e2-standard-2"
  system_cpus    = 2
  system_nodes   = 1
  system_disk_gb = 50
  workspace_gb   = 50 # the volume that deploy/ asks for

  apis = toset(concat(
    [
      "container.googleapis.com",
      "compute.googleapis.com",
      "iam.googleapis.com",
      "cloudresourcemanager.googleapis.com",
      "logging.googleapis.com",
      "monitoring.googleapis.com",
    ],
    var.billing_account == null ? [] : ["billingbudgets.googleapis.com"],
  ))

  # What the cluster takes at its largest, for the check before it is made.
  gpus_at_most = local.machine.gpus * var.max_gpu_nodes
  quotas = {
    (var.spot ? "PREEMPTIBLE_NVIDIA_L4_GPUS" : "NVIDIA_L4_GPUS") = local.gpus_at_most
    GPUS_ALL_REGIONS                                             = local.gpus_at_most
    CPUS                                                         = local.machine.cpus * var.max_gpu_nodes + local.system_cpus * local.system_nodes
    SSD_TOTAL_GB                                                 = var.boot_disk_gb * var.max_gpu_nodes + local.system_disk_gb * local.system_nodes + local.workspace_gb
    IN_USE_ADDRESSES                                             = 1 # Cloud NAT; nodes have none of their own
  }
}
