"""Terraform's own checks, and mistakes planted to see them go red.

TERRAFORM_CHECK names a program that checks a folder, for machines that can't reach the registry.
"""

import os
import re
import shutil
import subprocess

import pytest
from infra_tools import REPOSITORY, run, tool

TERRAFORM = REPOSITORY / "terraform"


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Checks a folder: fmt, validate, test. Skips where the provider can't be had."""
    environment = {k: v for k, v in os.environ.items() if k != "TF_CLI_CONFIG_FILE"}
    if program := os.environ.get("TERRAFORM_CHECK"):
        return lambda folder: run(program, str(folder), env=environment)
    terraform = tool("terraform")
    cache = tmp_path_factory.mktemp("providers")
    environment |= {"TF_PLUGIN_CACHE_DIR": str(cache), "TF_IN_AUTOMATION": "1"}

    def in_folder(folder):
        for step in (
            ["fmt", "-check", "-recursive"],
            ["init", "-input=false"],
            ["validate"],
            ["test"],
        ):
            done = run(terraform, *step, "-no-color", cwd=folder, env=environment)
            if done.returncode:
                break
        return done

    first = tmp_path_factory.mktemp("first")
    shutil.copy(TERRAFORM / "versions.tf", first)
    (first / "rest.tf").write_text(
        'variable "project_id" {}\nvariable "zone" {}\nvariable "labels" {}\nlocals { region = "" }\n'
    )
    try:
        done = run(terraform, "init", "-input=false", cwd=first, env=environment, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("the registry can't be reached: terraform init takes more than 120 s")
    if done.returncode:
        pytest.skip(f"the registry can't be reached: {done.stderr.strip()[-300:]}")
    return in_folder


@pytest.fixture
def copy(tmp_path):
    ignore = shutil.ignore_patterns(".terraform*", "*.tfvars", "*.tfstate*", "*.tfplan")
    return shutil.copytree(TERRAFORM, tmp_path / "terraform", ignore=ignore)


def test_terraform_is_formatted():
    done = run(tool("terraform"), "fmt", "-check", "-recursive", "-diff", str(TERRAFORM))
    assert done.returncode == 0, done.stdout


@pytest.mark.timeout(900)
def test_terraform_validates_and_its_tests_pass(check, copy):
    done = check(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"Success! (\d+) passed, 0 failed", done.stdout)
    assert int(passed[1]) >= 21


def edit(folder, name, old, new):
    path = folder / name
    text = path.read_text()
    assert text.count(old) >= 1, old
    path.write_text(text.replace(old, new, 1))


def keep_one_run(folder, words):
    """Leave of the tests the one that holds these words: it says it as well as all, and sooner."""
    for path in (folder / "tests").iterdir():
        head, *runs = re.split(r"^(?=run )", path.read_text(), flags=re.M)
        kept = [each for each in runs if words in each]
        path.write_text(head + "".join(kept[:1])) if kept else path.unlink()


# Each is a change of one line, and what the checks say of it.
PLANTED = {
    "misspelt argument": ("node_pools.tf", "disk_size_gb ", "disk_size_gib", "disk_size_gib"),
    "missing argument": (
        "network.tf",
        '  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"\n',
        "",
        'argument\\s+"source_subnetwork_ip_ranges_to_nat"\\s+is\\s+required',
    ),
    "gpu_count against the machine": (
        "tests/settings.tftest.hcl",
        'machine_type = "g2-standard-48"\n    gpu_count    = 4',
        'machine_type = "g2-standard-48"\n    gpu_count    = 2',
        "gpu_count must be what g2-standard-48 has: 4",
    ),
    "every address": (
        "tests/settings.tftest.hcl",
        "gpu_count    = 1",
        'gpu_count    = 1\n    cidrs        = { nodes = "0.0.0.0/0" }',
        "never\\s+0.0.0.0/0",
    ),
    "unknown zone": (
        "tests/settings.tftest.hcl",
        'zone          = "europe-west4-b"',
        'zone          = "mars-north1-b"',
        "zone looks like us-central1-a",
    ),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_goes_red(check, copy, mistake):
    name, old, new, words = PLANTED[mistake]
    edit(copy, name, old, new)
    keep_one_run(copy, new if name.startswith("tests/") else words)
    run(tool("terraform"), "fmt", str(copy), str(copy / "tests"))
    done = check(copy)
    assert done.returncode != 0
    assert re.search(words, done.stdout + done.stderr), done.stdout + done.stderr


# Planted together, for each costs seconds: every one must be named.
UNDONE = [
    ("node_pools.tf", "count = local.machine.gpus", "count = 3", "It carries two L4"),
    ("iam.tf", "container.defaultNodeServiceAccount", "editor", "may do what a node must"),
    ("node_pools.tf", "= local.gpu_nodes.taint.key", '= "gpu"', "The taint is explicit"),
    ("node_pools.tf", "min_node_count = 0", "min_node_count = 1", "scales between none and one"),
    ("iam.tf", "on_destroy = false", "on_destroy = true", "Destroying the course disables no"),
    ("cluster.tf", "enable_private_nodes = true", "enable_private_nodes = false", "private nodes"),
    ("cluster.tf", '"ADVANCED_DATAPATH"', '"LEGACY_DATAPATH"', "network policies enforced"),
    ("node_pools.tf", '"FALSE"', '"TRUE"', "no open kubelet port"),
]


@pytest.mark.timeout(900)
def test_each_undone_decision_goes_red(check, copy):
    for name, old, new, _ in UNDONE:
        edit(copy, name, old, new)
    for path in (copy / "tests").iterdir():
        if path.name != "defaults.tftest.hcl":
            path.unlink()
    done = check(copy)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0
    assert [words for *_, words in UNDONE if words not in said] == [], done.stdout + done.stderr


def test_no_role_is_wider_than_a_nodes():
    text = "".join(path.read_text() for path in TERRAFORM.glob("*.tf"))
    roles = re.findall(r'"(roles/[^"]*)"', text)
    assert roles == ["roles/container.defaultNodeServiceAccount"]
    assert not re.search(
        r"_iam_policy|_iam_binding|allUsers|allAuthenticatedUsers|\*@|roles/\*", text
    )


def test_every_variable_is_described_and_typed():
    text = (TERRAFORM / "variables.tf").read_text()
    blocks = re.split(r'^variable "', text, flags=re.M)[1:]
    assert len(blocks) >= 15
    for block in blocks:
        name = block.split('"')[0]
        assert re.search(r"^  description\s+= \".{20,}\"", block, re.M), name
        assert re.search(r"^  type\s+= ", block, re.M), name
        if not re.search(r"^  type\s+= bool", block, re.M):  # true and false need no more
            assert "validation {" in block, name


def test_the_example_names_settings_that_exist():
    variables = (TERRAFORM / "variables.tf").read_text()
    example = (TERRAFORM / "terraform.tfvars.example").read_text()
    named = re.findall(r"^(?:# )?(\w+)\s+= ", example, re.M)
    assert set(named) >= {"project_id", "zone", "machine_type"}
    for name in named:
        assert f'variable "{name}"' in variables, name


def test_the_workspace_is_counted_as_large_as_it_is():
    claimed = (REPOSITORY / "deploy/base/workspace.yaml").read_text()
    counted = re.search(r"workspace_gb\s+= (\d+)", (TERRAFORM / "locals.tf").read_text())[1]
    assert f"storage: {counted}Gi" in claimed
