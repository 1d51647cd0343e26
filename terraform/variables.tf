variable "project_id" {
  description = "Project that the cluster lives in (its id, not its name or number). Best one made for the course."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id is 6 to 30 small letters, digits and hyphens: see `gcloud projects list`."
  }
}

variable "zone" {
  description = "Zone with L4 GPUs; the region follows from it. `gcloud compute accelerator-types list --filter=name=nvidia-l4` lists them."
  type        = string
  default     = "us-central1-a"

  validation {
    condition     = can(regex("^(africa|asia|australia|europe|me|northamerica|southamerica|us)-[a-z]+[0-9]{1,2}-[a-z]$", var.zone))
    error_message = "zone looks like us-central1-a: a region and a letter. `gcloud compute zones list` shows all."
  }
}

variable "machine_type" {
  description = "G2 machine of a GPU node; it decides the number of L4 GPUs: g2-standard-24 has 2, -48 has 4, -96 has 8, the others 1."
  type        = string
  default     = "g2-standard-24"

  validation {
    condition     = contains(keys(local.machine_types), var.machine_type)
    error_message = "machine_type is one of ${join(", ", keys(local.machine_types))}: only G2 machines carry L4 GPUs."
  }
}

variable "gpu_count" {
  description = "GPUs of a node, as the labs ask for it. It follows from machine_type, so leave it out; if set, it must agree."
  type        = number
  default     = null

  validation {
    condition     = var.gpu_count == null || var.gpu_count == try(local.machine_types[var.machine_type].gpus, null)
    error_message = "gpu_count must be what ${var.machine_type} has: ${try(local.machine_types[var.machine_type].gpus, "unknown")}. Leave gpu_count out, or choose another machine_type."
  }
}

variable "cluster_name" {
  description = "Name of the cluster, and the beginning of the names around it."
  type        = string
  default     = "jax-course"

  validation {
    # The service account's id is this name and "-nodes", 30 characters at most.
    condition     = can(regex("^[a-z]([a-z0-9-]{0,22}[a-z0-9])?$", var.cluster_name))
    error_message = "cluster_name is at most 24 small letters, digits and hyphens, and begins with a letter."
  }
}

variable "max_gpu_nodes" {
  description = "GPU nodes at most; the least is always none. The many-process lesson on the cluster needs one a worker."
  type        = number
  default     = 1

  validation {
    condition     = contains(range(1, 9), var.max_gpu_nodes)
    error_message = "max_gpu_nodes is a whole number from 1 to 8: what a quota mistake may cost stays bounded."
  }
}

variable "spot" {
  description = "Take GPU nodes from spare capacity: much cheaper, and taken away within 30 seconds when others need it."
  type        = bool
  default     = false
}

variable "reservation" {
  description = "Name of a reservation of GPU machines in this zone, to be sure of them on the day; null takes what is free."
  type        = string
  default     = null

  validation {
    condition     = var.reservation == null || can(regex("^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$", var.reservation))
    error_message = "reservation is the name of a reservation: see `gcloud compute reservations list`."
  }

  validation {
    condition     = !(var.reservation != null && var.spot)
    error_message = "Spot machines can't come from a reservation: set spot = false or leave reservation out."
  }
}

variable "gpu_driver_version" {
  description = "NVIDIA driver that GKE installs: DEFAULT for the node's version, or LATEST. The course needs 525 or newer."
  type        = string
  default     = "DEFAULT"

  validation {
    condition     = contains(["DEFAULT", "LATEST"], var.gpu_driver_version)
    error_message = "gpu_driver_version is DEFAULT or LATEST."
  }
}

variable "boot_disk_gb" {
  description = "Boot disk of a GPU node, in GB."
  type        = number
  default     = 200

  validation {
    condition     = var.boot_disk_gb >= 200 && var.boot_disk_gb <= 2000
    error_message = "boot_disk_gb is 200 to 2000: smaller disks are slow and fill up with images."
  }
}

variable "cidrs" {
  description = "Private address ranges of the cluster's nodes, pods and services; each can be left out."
  type = object({
    nodes    = optional(string, "10.10.0.0/24")
    pods     = optional(string, "10.20.0.0/16")
    services = optional(string, "10.30.0.0/20")
  })
  default = {}

  validation {
    condition = alltrue([
      for range in values(var.cidrs) :
      can(cidrhost(range, 0))
      && can(regex("^(10|172\\.(1[6-9]|2[0-9]|3[01])|192\\.168)\\.", range))
      && try(tonumber(split("/", range)[1]) >= 12, false)
    ])
    error_message = "cidrs are private ranges of /12 or smaller, such as 10.10.0.0/24, and never 0.0.0.0/0."
  }
}

variable "workshop" {
  description = "Days on which no node is upgraded under a class: { start, end } as in 2026-10-05T00:00:00Z. Null: no such days."
  type = object({
    start = string
    end   = string
  })
  default = null

  validation {
    condition     = var.workshop == null || try(timecmp(var.workshop.start, var.workshop.end) < 0, false)
    error_message = "workshop.start and workshop.end are times such as 2026-10-05T00:00:00Z, the start before the end."
  }
}

variable "deletion_protection" {
  description = "Refuse to delete the cluster. Off, because a course cluster that can't be taken down costs money; `make cluster-down` asks first."
  type        = bool
  default     = false
}

variable "labels" {
  description = "Labels on everything that can carry them, besides the cluster's own."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for k, v in var.labels : can(regex("^[a-z][a-z0-9_-]{0,62}$", k)) && can(regex("^[a-z0-9_-]{0,63}$", v))])
    error_message = "Labels are small letters, digits, hyphens and underscores, 63 at most; a key begins with a letter."
  }
}

variable "billing_account" {
  description = "Billing account to put a budget on (XXXXXX-XXXXXX-XXXXXX); needs rights on the account. Null: no budget."
  type        = string
  default     = null

  validation {
    condition     = var.billing_account == null || can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", var.billing_account))
    error_message = "billing_account looks like 01ABCD-23EF45-6789AB: see `gcloud billing accounts list`."
  }
}

variable "budget_amount" {
  description = "Budget a month, in whole units of the billing account's currency. It warns by mail, it stops nothing."
  type        = number
  default     = 100

  validation {
    condition     = var.budget_amount >= 1 && floor(var.budget_amount) == var.budget_amount
    error_message = "budget_amount is a whole number, 1 or more."
  }
}

variable "budget_thresholds" {
  description = "Parts of the budget at which a mail is sent, rising: 0.5 is half of it."
  type        = list(number)
  default     = [0.5, 0.9, 1.0]

  validation {
    condition = (
      length(var.budget_thresholds) > 0
      && alltrue([for t in var.budget_thresholds : t > 0])
      && alltrue([for i, t in var.budget_thresholds : i == 0 || t > var.budget_thresholds[max(i - 1, 0)]])
    )
    error_message = "budget_thresholds are one or more parts above 0, each larger than the one before, such as [0.5, 0.9, 1.0]."
  }
}
