"""What scanners and plain searches say of terraform/, deploy/ and the scripts."""

import json
import re

import pytest
from infra_tools import REPOSITORY, run, tool

# Findings of checkov that are meant, each with its reason. Anything else it finds fails the test.
MEANT = {
    "CKV_K8S_11": "a CPU limit slows a pod on a node that it has for itself",
    "CKV_K8S_15": "IfNotPresent: the tag names a release, and a restart must not need the registry",
    "CKV_K8S_35": "JupyterLab takes the token from a variable; from a file it keeps the newline",
    "CKV_K8S_38": "the idle scaler, and only it, speaks to the cluster's API",
    "CKV_K8S_40": "user 1000, as people expect of a notebook; the nodes run pods only",
    "CKV_K8S_43": "a digest can't be looked up offline; pinning it is a step for a real project",
    "CKV_GCP_12": "Dataplane V2 enforces network policies; the older switch must stay off",
    "CKV_GCP_20": "the IP endpoints are off: the control plane is reached by name, guarded by IAM",
    "CKV_GCP_21": "labels are merged from a variable, which it can't read",
    "CKV_GCP_61": "flow logs are on, in the subnetwork; traffic inside a node says nothing here",
    "CKV2_GCP_18": "private nodes without addresses; GKE writes the firewall rules that it needs",
    "CKV_GCP_65": "roles by Google group need a domain; a course has one participant a project",
    "CKV_GCP_66": "binary authorization needs an image of one's own; the course has none",
}


def findings(*arguments: str) -> list[str]:
    """What checkov finds: 'check resource', without those that are meant."""
    base = ("--skip-download", "--compact", "--quiet", "-o", "json", "--soft-fail")
    done = run(tool("checkov"), *arguments, *base)
    reports = json.loads(done.stdout)
    reports = reports if isinstance(reports, list) else [reports]
    assert sum(each["summary"]["passed"] for each in reports) > 20, "it has looked at nothing"
    failed = [check for each in reports for check in each["results"]["failed_checks"]]
    return sorted(
        {f"{each['check_id']} {each['resource']} {each['check_name']}" for each in failed}
    )


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rendered")
    for name in ("overlays/load-balancer", "jobs/course-run", "jobs/workers"):
        done = run(tool("kubectl"), "kustomize", f"deploy/{name}")
        (folder / f"{name.replace('/', '-')}.yaml").write_text(done.stdout)
    return folder


def not_meant(found: list[str]) -> list[str]:
    return [each for each in found if each.split()[0] not in MEANT]


def test_checkov_finds_nothing_that_is_not_meant(rendered):
    manifests = findings("-d", str(rendered), "--framework", "kubernetes")
    terraform = findings("-d", "terraform", "--framework", "terraform")
    assert not_meant(manifests) == []
    assert not_meant(terraform) == []
    found = {each.split()[0] for each in [*manifests, *terraform]}
    assert set(MEANT) <= found, f"no longer found, so no longer to be excused: {set(MEANT) - found}"


def test_checkov_would_find_a_root_container(rendered, tmp_path):
    text = (rendered / "jobs-workers.yaml").read_text()
    broken = text.replace("allowPrivilegeEscalation: false", "privileged: true")
    assert broken != text
    (tmp_path / "broken.yaml").write_text(broken)
    assert not_meant(findings("-d", str(tmp_path), "--framework", "kubernetes"))


def committed(*patterns: str) -> list[str]:
    done = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns)
    return [name for name in done.stdout.splitlines() if (REPOSITORY / name).is_file()]


def test_scripts_pass_shellcheck():
    scripts = [
        name
        for name in committed()
        if name.endswith(".sh")
        or re.match(rb"#!.*\b(ba)?sh\b", (REPOSITORY / name).read_bytes()[:64])
    ]
    assert ".ci/run" in scripts
    done = run(tool("shellcheck"), *scripts)
    assert done.returncode == 0, done.stdout


def test_shell_inside_programs_passes_shellcheck(tmp_path):
    """The one line of shell that the commands send into a pod."""
    text = (REPOSITORY / "deploy/cluster/jobs.py").read_text()
    (line,) = re.findall(r"which = '(.+)'", text)
    (tmp_path / "line.sh").write_text(f"#!/bin/sh\n{line}\n")
    done = run(tool("shellcheck"), str(tmp_path / "line.sh"))
    assert done.returncode == 0, done.stdout


def test_yaml_is_well_formed():
    files = [name for name in committed("deploy/*.yaml") if name != "deploy/jupyter.yaml"]
    assert len(files) > 10
    rules = (
        "{extends: default, rules: {document-start: disable, line-length: {max: 160}, comments: {min-spaces-from-content: 1}, "
        "truthy: {check-keys: false}}}"
    )
    done = run(tool("yamllint"), "--strict", "-d", rules, *files)
    assert done.returncode == 0, done.stdout


SECRETS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\"private_key\"|AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20}"
    r"|(?i:(?:token|password|secret)\s*[:=]\s*[\"'][0-9a-zA-Z+/_-]{20,}[\"'])"
)


def test_no_secret_is_in_git():
    for name in committed("deploy", "terraform", "Makefile", ".ci"):
        text = (REPOSITORY / name).read_text(errors="replace")
        assert not re.search(SECRETS, text), name
    for sample in ('token = "0123456789abcdef0123456789abcdef"', "-----BEGIN PRIVATE KEY-----"):
        assert re.search(SECRETS, sample)


def test_git_would_not_take_state_settings_or_plans():
    for name in ("terraform.tfvars", "terraform.tfstate", "course.tfplan", ".terraform/x"):
        assert run("git", "check-ignore", "-q", f"terraform/{name}").returncode == 0, name
    assert run("git", "check-ignore", "-q", "deploy/.build/server/course.tar.gz").returncode == 0
    assert run("git", "check-ignore", "-q", "terraform/terraform.tfvars.example").returncode == 1


def test_pods_programs_and_commands_need_the_standard_library_only():
    """The pod's start before anything is installed; the commands run without setting up a thing."""
    import ast
    import sys

    own = {path.stem for path in (REPOSITORY / "deploy/pod").glob("*.py")} | {"deploy"}
    for name in committed("deploy/*.py"):
        tree = ast.parse((REPOSITORY / name).read_text())
        for node in ast.walk(tree):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                top = module.split(".")[0]
                assert top in sys.stdlib_module_names or top in own, f"{name} imports {module}"


def test_every_make_command_is_one_that_exists():
    makefile = (REPOSITORY / "Makefile").read_text()
    from deploy.cluster.__main__ import COMMANDS

    called = set(re.findall(r"^\t@\$\(CLUSTER\) (\w+)", makefile, re.M))
    assert called == set(COMMANDS)
    readme = (REPOSITORY / "deploy/README.md").read_text()
    targets = set(re.findall(r"^([a-z-]+):.*##", makefile, re.M))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", readme, re.M))
    assert len(named) > 8
    assert named <= targets
