"""The make commands against gcloud, kubectl and terraform that only record their calls."""

import json
import re
import socket

import pytest
from infra_cloud import READY, SETTINGS, VOLUME, Cloud

CHANGES = re.compile(
    r"terraform .* (apply|destroy)|kubectl .* (apply|create|delete|scale|port-forward)|gcloud .*"
    r" (create|delete|enable|update)\b"
)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    return Cloud(tmp_path_factory.mktemp("cloud"))


def in_order(calls: list[str], *wanted: str) -> bool:
    """Whether calls that match come in this order, others between them or not."""
    rest = iter(calls)
    return all(any(re.search(each, call) for call in rest) for each in wanted)


THERE = {"kubectl .* get secret/jax-jupyter-token --ignore": ["secret/jax-jupyter-token"]}
ENDS_OPEN = {**THERE, "kubectl .* get statefulset/jax-jupyter": ["1", "0"]}
COMMANDS = [
    ("preflight", {}, {}),
    ("up", {}, {}),
    ("deploy", {}, {}),
    ("open", ENDS_OPEN, {"PORT": "18884"}),
    ("stop", {}, {}),
    ("run", {}, {}),
    ("workers", {}, {"WORKERS": "2"}),
    ("down", {}, {}),
]


@pytest.mark.parametrize(("command", "answers", "variables"), COMMANDS)
def test_a_command_does_its_work_and_can_be_given_again(cloud, command, answers, variables):
    for _ in range(2):
        done = cloud.do(command, answers, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        for call in done.calls:
            if call.startswith("kubectl ") and "kustomize" not in call:
                assert "--context=gke_course-project-1_us-central1-a_jax-course" in call
        assert "a-credential" not in done.stdout


@pytest.mark.parametrize(("command", "answers", "variables"), COMMANDS)
def test_each_failing_call_ends_the_command_with_its_cure(cloud, command, answers, variables):
    calls = cloud.do(command, answers, **variables).calls
    for number, failing in enumerate(calls):
        done = cloud.do(command, answers, fail_at=number, **variables)
        later = done.calls[number + 1 :]
        if done.returncode == 0:
            # Only what is asked again and again, or breaks and is made anew, may fail once.
            assert re.search(
                r"get pod|rollout status|get pods|port-forward|logs --follow|clusters list --format=value"
                r"|get events|scale .*--replicas=1",
                failing,
            ), failing
            continue
        assert done.returncode == 1, done.stderr
        assert re.search(r"^error: .+", done.stderr, re.M), failing
        assert re.search(r"^What to do: .+", done.stderr, re.M), failing
        assert "Traceback" not in done.stderr
        # A Job stands in the server's place: whatever happens, the server is started again.
        changes = [call for call in later if CHANGES.search(call) and "--replicas=1" not in call]
        assert changes == [], f"after {failing}"
        if command in ("run", "workers") and any(
            "--replicas=0" in call for call in done.calls[:number]
        ):
            assert any("--replicas=1" in call for call in done.calls), failing


@pytest.mark.parametrize("command", ["up", "deploy", "run", "workers", "down"])
def test_nothing_is_made_or_deleted_without_a_yes(cloud, command):
    done = cloud.do(command, YES="")
    assert done.returncode == 1
    assert "nobody is here to answer" in done.stderr
    assert "YES=1" in done.stderr
    assert [call for call in done.calls if CHANGES.search(call)] == []
    assert re.search(r"^This \w+", done.stdout, re.M)  # it said what it would do
    done = cloud.do(command, YES="", ASK_WITHOUT_TERMINAL="1")  # an empty answer
    assert "not confirmed; nothing was done" in done.stderr
    assert [call for call in done.calls if CHANGES.search(call)] == []


def test_stop_asks_nothing(cloud):
    """It ends cost and deletes nothing."""
    assert cloud.do("stop", YES="").returncode == 0


# --- make preflight -------------------------------------------------------------------------------


def test_preflight_changes_nothing(cloud):
    done = cloud.do("preflight")
    assert [call for call in done.calls if CHANGES.search(call)] == []
    assert "logged in as teacher@example.com" in done.stdout
    assert "2 x L4 each" in done.stdout


@pytest.mark.parametrize("program", ["gcloud", "kubectl", "terraform", "gke-gcloud-auth-plugin"])
def test_a_missing_program_is_named_with_its_cure(cloud, program):
    names = ["gcloud", "kubectl", "terraform", "gke-gcloud-auth-plugin"]
    cloud.programs(*[name for name in names if name != program])
    try:
        done = cloud.do("preflight")
    finally:
        cloud.programs(*names)
    assert done.returncode == 1
    assert f"{program} is not installed" in done.stderr
    assert "Install it: " in done.stderr


QUOTA = "gcloud compute regions describe"
L4 = {"metric": "NVIDIA_L4_GPUS", "limit": 4, "usage": 0}
CPUS = {"metric": "CPUS", "limit": 100, "usage": 0}
WRONG = [
    ({"gcloud auth list": [""]}, "nobody is logged in"),
    ({"gcloud projects describe": ["DELETE_REQUESTED"]}, "is DELETE_REQUESTED"),
    ({"gcloud services list": ["storage.googleapis.com"]}, "Compute service is off"),
    ({"gcloud compute accelerator-types": [""]}, "us-central1-a has no L4 GPUs"),
    (
        {QUOTA: [json.dumps({"quotas": [{**L4, "limit": 1}, CPUS]})]},
        "NVIDIA_L4_GPUS: 4 wanted, 1 free of 1",
    ),
    (
        {QUOTA: [json.dumps({"quotas": [{**L4, "usage": 2}, CPUS]})]},
        "NVIDIA_L4_GPUS: 4 wanted, 2 free of 4",
    ),
    ({QUOTA: [json.dumps({"quotas": [CPUS]})]}, "NVIDIA_L4_GPUS: 4 wanted, 0 free of 0"),
    ({"gcloud compute project-info": ['{"quotas": []}']}, "GPUS_ALL_REGIONS: 4 wanted, 0 free"),
    ({"terraform .* console": ["(known after apply)"]}, "terraform.tfvars is not right"),
]


@pytest.mark.parametrize(("answers", "words"), WRONG)
def test_preflight_names_what_is_wrong(cloud, answers, words):
    done = cloud.do("preflight", answers)
    assert done.returncode == 1
    assert words in done.stderr
    assert "What to do: " in done.stderr


def test_a_cluster_that_is_there_does_not_count_against_itself(cloud):
    used = {QUOTA: [json.dumps({"quotas": [{**L4, "usage": 4}, CPUS]})]}
    there = {**used, "gcloud container clusters list --format=value": ["jax-course\n"]}
    assert cloud.do("preflight", used).returncode == 1
    assert cloud.do("preflight", there).returncode == 0


def test_settings_that_are_not_there(cloud):
    path = cloud.root / "terraform/terraform.tfvars"
    text = path.read_text()
    path.unlink()
    try:
        done = cloud.do("preflight")
    finally:
        path.write_text(text)
    assert "cp terraform/terraform.tfvars.example" in done.stderr


# --- make cluster-up, deploy, open, stop ----------------------------------------------------------


def test_up_checks_plans_and_applies_the_plan_it_showed(cloud):
    done = cloud.do("up")
    assert in_order(
        done.calls,
        "gcloud auth list",
        "gcloud compute regions describe",
        "terraform .* plan .*-out=course.tfplan",
        "terraform .* apply .*course.tfplan",
        "get-credentials jax-course --zone=us-central1-a --dns-endpoint",
    )
    assert "Next: make deploy" in done.stdout


def test_deploy_sends_the_course_and_a_token_that_nobody_sees(cloud):
    done = cloud.do("deploy")
    assert in_order(
        done.calls,
        "get-credentials",
        "kubectl .* apply --server-side -f .*namespace.yaml",
        "kubectl .* get secret/jax-jupyter-token",
        "kubectl .* create -f -",
        "kubectl .* apply --server-side --force-conflicts -k .*deploy/.build/server",
        "kubectl .* rollout status",
    )
    (secret,) = done.given
    token = json.loads(secret)["stringData"]["token"]
    assert re.fullmatch("[0-9a-f]{48}", token)
    assert token not in done.stdout + done.stderr + " ".join(done.calls)
    sent = cloud.root / "deploy/.build/server/course.tar.gz"
    assert 0 < sent.stat().st_size < 900_000


def test_a_token_that_is_there_is_kept(cloud):
    done = cloud.do("deploy", THERE)
    assert done.returncode == 0
    assert done.given == []


def test_uncommitted_changes_are_not_sent_and_a_line_says_so(cloud):
    path = cloud.root / "notes.md"
    path.write_text("not committed")
    try:
        assert "uncommitted changes stay here" in cloud.do("deploy").stdout
    finally:
        path.unlink()
    assert "uncommitted" not in cloud.do("deploy").stdout


def test_a_pod_that_never_came_up_makes_way_for_the_new_one(cloud):
    broken = json.dumps({"spec": {"nodeName": "n"}, "status": {"conditions": []}})
    done = cloud.do(
        "deploy", {"kubectl .* get pod/jax-jupyter-0 -o json": [broken, json.dumps(READY)]}
    )
    assert in_order(done.calls, "apply --server-side --force-conflicts", "delete pod jax-jupyter-0")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ALLOW": "0.0.0.0/0"}, "lets 4,294,967,296 addresses in"),
        ({"ALLOW": "my office"}, "ALLOW: "),
        ({"STOP_AT": "tonight"}, "is no time"),
        ({"STOP_AT": "2099-01-01T18:00:00"}, "says no time zone"),
        ({"STOP_AT": "2020-01-01T18:00:00Z"}, "is past"),
        ({"IDLE_MINUTES": "an hour"}, "IDLE_MINUTES is"),
    ],
)
def test_deploy_refuses_a_wrong_variable_before_anything_else(cloud, variables, words):
    done = cloud.do("deploy", **variables)
    assert done.returncode == 1
    assert words in done.stderr
    assert "What to do: " in done.stderr
    assert done.calls == []


def test_an_address_outside_is_said_before_it_is_made(cloud):
    done = cloud.do("deploy", ALLOW="198.51.100.7/32", STOP_AT="2099-01-01T18:00:00Z")
    assert done.returncode == 0
    assert "reached from 198.51.100.7/32 WITHOUT encryption" in done.stdout
    assert "2099-01-01T18:00:00Z" in done.stdout
    closed = "delete networkpolicy allowed-ranges-reach-jupyter --ignore-not-found"
    assert not any(closed in call for call in done.calls)
    done = cloud.do("deploy")
    assert "no address outside the cluster" in done.stdout
    assert any(closed in call for call in done.calls)


WAITING = {"spec": {}, "status": {"conditions": []}}


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ("FailedScaleUp ZONE_RESOURCE_POOL_EXHAUSTED", "the zone has no L4 free"),
        ("FailedScaleUp QUOTA_EXCEEDED", "a quota is too small"),
        ("0/1 nodes: Insufficient nvidia.com/gpu", "a node of the pool is on its way"),
    ],
)
def test_waiting_says_what_for_and_ends(cloud, events, words):
    answers = {
        "kubectl .* get pod/jax-jupyter-0 -o json": [json.dumps(WAITING)],
        "kubectl .* get events": [events],
    }
    done = cloud.do("deploy", answers)
    assert done.returncode == 1
    assert words in done.stdout
    assert "make stop" in done.stderr


def test_a_server_that_crashes_shows_its_last_words(cloud):
    crashed = {
        "spec": {"nodeName": "n"},
        "status": {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
    }
    answers = {
        "kubectl .* get pod/jax-jupyter-0 -o json": [json.dumps(crashed)],
        "kubectl .* logs jax-jupyter-0 --previous": ["course: ERROR: packages are not reachable\n"],
    }
    done = cloud.do("deploy", answers)
    assert done.returncode == 1
    assert "course: ERROR: packages are not reachable" in done.stderr


def test_open_prints_the_address_and_keeps_the_tunnel_up(cloud):
    answers = {**THERE, "kubectl .* get statefulset/jax-jupyter": ["1", "1", "1", "0"]}
    done = cloud.do("open", answers, PORT="18884")
    assert "http://127.0.0.1:18884/lab?token=a-secret" in done.stdout
    forwards = [call for call in done.calls if "port-forward" in call]
    assert len(forwards) == 3
    assert "--address=127.0.0.1 service/jax-jupyter-svc 18884:8884" in forwards[0]
    assert done.stdout.count("The tunnel broke") == 2
    assert "The server was stopped" in done.stdout


def test_open_starts_a_stopped_server_but_asks(cloud):
    answers = {**THERE, "kubectl .* get statefulset/jax-jupyter": ["0", "0"]}
    done = cloud.do("open", answers, PORT="18884")
    assert in_order(done.calls, "scale statefulset/jax-jupyter --replicas=1", "port-forward")
    refused = cloud.do("open", answers, YES="", PORT="18884")
    assert refused.returncode == 1
    assert [call for call in refused.calls if CHANGES.search(call)] == []


def test_open_does_not_start_what_would_be_stopped_at_once(cloud):
    answers = {
        "kubectl .* get statefulset/jax-jupyter": ["0"],
        "kubectl .* get configmap/jax-idle-settings": [
            '{"data": {"STOP_AT": "2020-01-01T18:00:00Z"}}'
        ],
    }
    done = cloud.do("open", answers)
    assert done.returncode == 1
    assert "is past" in done.stderr
    assert [call for call in done.calls if CHANGES.search(call)] == []


def test_open_names_another_port_where_one_is_taken(cloud):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = cloud.do("open", PORT=str(port))
    assert f"port {port} is taken" in done.stderr
    assert f"make open PORT={port + 1}" in done.stderr


def test_open_refuses_a_port_that_is_none(cloud):
    done = cloud.do("open", PORT="http")
    assert done.returncode == 1
    assert "PORT is 'http'" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_secret_the_token_is_read_from_the_pod(cloud):
    answers = {
        **ENDS_OPEN,
        "kubectl .* get secret/jax-jupyter-token --ignore": [""],
        "kubectl .* exec jax-jupyter-0 -- cat /workspace/.course/token": ["from-the-pod"],
    }
    assert "token=from-the-pod" in cloud.do("open", answers, PORT="18884").stdout


def test_stop_scales_to_none_and_waits(cloud):
    done = cloud.do("stop")
    assert in_order(
        done.calls, "scale statefulset/jax-jupyter --replicas=0", "wait --for=delete pod"
    )


def test_without_a_cluster_the_way_to_one_is_said(cloud):
    for command in ("deploy", "open", "stop", "run", "workers"):
        done = cloud.do(command, {"terraform .* output -json": ["{}"]})
        assert done.returncode == 1
        assert "this checkout has made no cluster" in done.stderr
        assert "make cluster-up" in done.stderr


# --- Jobs -----------------------------------------------------------------------------------------


def test_a_run_takes_the_servers_place_and_gives_it_back(cloud):
    done = cloud.do("run", LESSONS="01 03")
    assert in_order(
        done.calls,
        "--replicas=0",
        "wait --for=delete pod/jax-jupyter-0",
        "delete job/jax-course-run --ignore-not-found",
        "apply --server-side --force-conflicts -k .*/course-run",
        "logs --follow the-pod",
        "exec the-pod -- sh -c",
        "exec the-pod -- touch /tmp/collected",
        "get job/jax-course-run",
        "delete job/jax-course-run",
        "--replicas=1",
    )
    results = re.search(r"Results: (\S+)", done.stdout)[1]
    assert (cloud.root / results / "42-results/results.json").read_text() == "{}"
    patch = json.loads((cloud.root / "deploy/.build/course-run/patch-0.yaml").read_text())
    env = {e["name"]: e["value"] for e in patch["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env == {"LESSONS": "01 03", "PROFILE": "", "EXPECT_GPUS": "2"}


def test_a_stopped_server_stays_stopped_after_a_run(cloud):
    done = cloud.do("run", {"kubectl .* get statefulset/jax-jupyter": ["0"]})
    assert done.returncode == 0
    assert not any("--replicas" in call for call in done.calls)


def test_a_failed_lesson_fails_the_command_after_its_results_came(cloud):
    done = cloud.do("run", {"kubectl .* get job/": ["FailureTarget Failed"]})
    assert done.returncode == 1
    assert "jax-course-run failed; its results are here" in done.stderr
    assert in_order(done.calls, "touch /tmp/collected", "--replicas=1")


def test_a_job_that_ends_without_results_says_so(cloud):
    answers = {
        "kubectl .* logs --follow": ["Traceback\n"],
        "kubectl .* get pod/the-pod": ["Failed"],
    }
    done = cloud.do("workers", answers)
    assert done.returncode == 1
    assert "ended before it had results" in done.stderr


def test_a_broken_log_is_taken_up_again(cloud):
    answers = {
        "kubectl .* logs --follow": [
            "one\n",
            "two\ncourse: finished with status 0; the results wait 9 s\n",
        ],
        "kubectl .* get pod/the-pod": ["Running"],
    }
    done = cloud.do("run", answers)
    assert done.returncode == 0, done.stderr
    assert "logs --follow the-pod --since=5s" in "\n".join(done.calls)


def test_more_workers_than_nodes_are_refused(cloud):
    done = cloud.do("workers", WORKERS="3")
    assert "3 workers need 3 nodes; the pool has 2 at most" in done.stderr
    assert "max_gpu_nodes = 3" in done.stderr
    assert "WORKERS is 'many'" in cloud.do("workers", WORKERS="many").stderr


# --- make cluster-down ----------------------------------------------------------------------------


def test_down_goes_in_the_order_in_which_nothing_is_forgotten(cloud):
    done = cloud.do("down")
    assert in_order(
        done.calls,
        "get-credentials",
        "get pv",
        "delete namespace jax-course",
        "get pv",
        "terraform .* destroy",
        "gcloud container clusters list",
        "gcloud compute instances list",
        "gcloud compute disks list",
        "gcloud compute forwarding-rules list",
    )
    assert "Nothing of the course is left" in done.stdout


def test_down_with_a_volume_left_behind_names_it_and_keeps_the_cluster(cloud):
    done = cloud.do("down", {"kubectl .* get pv": [json.dumps({"items": [VOLUME]})]})
    assert done.returncode == 1
    assert "volumes are still there: pvc-1 (disk disk-of-pvc-1)" in done.stderr
    assert not any("destroy" in call for call in done.calls)


def test_down_does_not_orphan_other_namespaces_volumes(cloud):
    other = {**VOLUME, "spec": {**VOLUME["spec"], "claimRef": {"namespace": "default"}}}
    done = cloud.do("down", {"kubectl .* get pv": [json.dumps({"items": [other]})]})
    assert done.returncode == 1
    assert "other namespaces would be left behind: pvc-1" in done.stderr
    assert [call for call in done.calls if CHANGES.search(call)] == []


LEFT = [
    ("disks", {"name": "disk-of-pvc-1"}, "disk disk-of-pvc-1"),
    ("disks", {"name": "d", "labels": {"goog-k8s-cluster-name": "jax-course"}}, "disk d"),
    (
        "disks",
        {"name": "d", "description": '{"kubernetes.io/created-for/pvc/namespace":"jax-course"}'},
        "disk d",
    ),
    ("instances", {"name": "gke-jax-course-gpu-1"}, "instance gke-jax-course-gpu-1"),
    (
        "forwarding-rules",
        {
            "name": "a1",
            "description": '{"kubernetes.io/service-name":"jax-course/jax-jupyter-svc"}',
        },
        "forwarding-rule a1",
    ),
]


@pytest.mark.parametrize(("kind", "thing", "words"), LEFT)
def test_down_fails_if_anything_of_the_course_is_left(cloud, kind, thing, words):
    done = cloud.do("down", {f"gcloud compute {kind} list": [json.dumps([thing])]})
    assert done.returncode == 1
    assert f"still there, and costing money: {words}" in done.stderr


def test_down_leaves_alone_what_is_not_the_courses(cloud):
    other = {"name": "web-server", "labels": {"team": "shop"}}
    done = cloud.do("down", {"gcloud compute instances list": [json.dumps([other])]})
    assert done.returncode == 0
    assert "not the course's, so left alone: instance web-server" in done.stdout


def test_down_goes_on_after_half_a_destroy(cloud):
    """The cluster is gone, the network is not: there is no kubectl to speak to."""
    done = cloud.do("down", {"gcloud container clusters list --format=json": ["[]"]})
    assert done.returncode == 0, done.stderr
    assert not any(call.startswith("kubectl") for call in done.calls)
    assert any("destroy" in call for call in done.calls)


def test_down_twice_still_looks_for_leftovers(cloud):
    nothing = {"terraform .* output -json": ["{}"]}
    assert cloud.do("down", nothing).returncode == 1  # the cluster is in the list, so not gone
    gone = {**nothing, "gcloud container clusters list --format=json": ["[]"]}
    done = cloud.do("down", gone)
    assert done.returncode == 0
    assert not any("destroy" in call for call in done.calls)


def test_the_settings_are_what_terraform_gives_out():
    from deploy.cluster.settings import Settings

    assert set(SETTINGS) == set(Settings.__dataclass_fields__)
