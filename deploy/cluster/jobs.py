"""`make run-on-cluster`, `make workers-on-cluster`: Jobs whose results are brought back."""

import subprocess
import tarfile
import time
from datetime import datetime
from pathlib import Path

from deploy.cluster import manifests, server
from deploy.cluster.programs import REPOSITORY, answer, do, ended, setting
from deploy.cluster.settings import Settings, cluster
from deploy.cluster.talk import Stop, ask, plan, say

_APPLY = "Read the lines above. Is the course deployed? make deploy"
_WAITS = "the results wait"  # what deploy/pod/start.py says when it is done


def run_course() -> None:
    """Run the lessons headlessly on the GPU node; bring the run back to runs/."""
    settings = cluster()
    plan(
        f"This runs the lessons on {settings.place}:",
        [
            f"lessons: {setting('LESSONS', 'all')}, as `make deploy` sent them, without anybody's edits",
            "the server is stopped meanwhile (its kernels end), for the run takes its GPUs and volume",
            f"it takes a GPU node with {settings.gpus} x L4, which costs money",
        ],
    )
    ask("Run them?")
    environment = {
        "LESSONS": setting("LESSONS"),
        "PROFILE": setting("PROFILE"),
        "EXPECT_GPUS": str(settings.gpus),
    }
    folder = manifests.job("jax-course-run", "course-run", settings, {}, environment)
    _run(settings, "jax-course-run", folder, {"app": "jax-course-run"})


def run_workers() -> None:
    """Run the many-process training over several nodes; bring its parameters back."""
    settings = cluster()
    text = setting("WORKERS", "2")
    if not text.isdecimal() or int(text) < 2:
        raise Stop(f"WORKERS is {text!r}", "A whole number of nodes, 2 or more.")
    workers = int(text)
    if workers > settings.max_gpu_nodes:
        raise Stop(
            f"{workers} workers need {workers} nodes; the pool has {settings.max_gpu_nodes} at most",
            f"max_gpu_nodes = {workers} in terraform.tfvars, then make cluster-up.",
        )
    plan(
        f"This trains with {workers} processes on {settings.place}:",
        [
            f"{workers} GPU nodes with {settings.gpus} x L4 each, which cost money",
            "each installs the environment first: some minutes",
            "the server is stopped meanwhile (its kernels end): the nodes are needed",
        ],
    )
    ask("Train?")
    spec = {"completions": workers, "parallelism": workers}
    folder = manifests.job(
        "jax-workers", "workers", settings, spec, {"PROCESS_COUNT": str(workers)}
    )
    labels = {"app": "jax-workers", "batch.kubernetes.io/job-completion-index": "0"}
    _run(settings, "jax-workers", folder, labels)


def _run(settings: Settings, name: str, folder: Path, labels: dict[str, str]) -> None:
    """Run a Job in the server's place, follow it, fetch its results, start the server again."""
    if not settings.has("configmap/jax-course"):
        raise Stop("no course is on the cluster", "make deploy")
    was_running = server.replicas(settings) > 0
    if was_running:
        server.scale(settings, 0)
    try:
        server.wait_gone(settings)
        again = ("delete", f"job/{name}", "--ignore-not-found", "--wait=true", "--timeout=120s")
        do(settings.kubectl(*again), _APPLY)
        apply = ("apply", "--server-side", "--force-conflicts", "-k", str(folder))
        do(settings.kubectl(*apply), _APPLY)
        pod = _pod(settings, name, labels)
        _follow(settings, name, pod)
        _fetch(settings, pod, name)
        _end(settings, name)
    finally:
        if was_running:
            say("Starting the server again.")
            ended(server.scaled(settings, 1))


def _pod(settings: Settings, name: str, labels: dict[str, str]) -> str:
    """The name of the Job's (first) pod, once it runs."""
    chosen = ",".join(f"{key}={value}" for key, value in labels.items())
    states = "{.items[0].metadata.name} {.items[0].status.phase}"
    get = settings.kubectl("get", "pods", f"--selector={chosen}", "-o", f"jsonpath={states}")
    until = time.monotonic() + float(setting("READY_SECONDS", "2400"))
    said = ""
    while time.monotonic() < until:
        found = ended(get).stdout.split()
        if len(found) == 2 and found[1] != "Pending":
            return found[0]
        if (state := " ".join(found) or "no pod yet") != said:
            say(f"  waiting for a GPU node ({state})")
            said = state
        time.sleep(float(setting("POLL_SECONDS", "10")))
    raise Stop(
        f"{name} got no node",
        f"kubectl -n jax-course describe job {name}; then delete it, or it goes on waiting.",
    )


def _follow(settings: Settings, name: str, pod: str) -> None:
    """Show the log until the results wait; it is taken up again where the connection breaks."""
    since: list[str] = []
    while True:
        command = settings.kubectl("logs", "--follow", pod, *since)
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as log:
            assert log.stdout is not None
            for line in log.stdout:
                print(line, end="", flush=True)
                if line.startswith("course: ") and _WAITS in line:
                    log.terminate()
                    return
        get = ("get", f"pod/{pod}", "-o", "jsonpath={.status.phase}")
        if ended(settings.kubectl(*get)).stdout.strip() != "Running":
            raise Stop(f"{name} ended before it had results", "Its last lines above say why.")
        since = ["--since=5s"]
        time.sleep(float(setting("POLL_SECONDS", "10")) / 5)


def _fetch(settings: Settings, pod: str, name: str) -> None:
    """Bring what lies in the pod's folder of results; only then let the pod go."""
    runs = REPOSITORY / "runs"
    target = runs / f"cluster-{name}-{datetime.now():%Y%m%d-%H%M%S}"
    target.mkdir(parents=True, exist_ok=True)
    # The newest run, where there is the link to it; the volume may hold many.
    which = 'cd /workspace/runs && tar -czf - "$(readlink latest || echo .)"'
    command = settings.kubectl("exec", pod, "--", "sh", "-c", which)
    cure = f"The pod waits 15 minutes: kubectl -n jax-course cp {pod}:/workspace/runs {target}"
    try:
        with (
            subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as packed,
            tarfile.open(fileobj=packed.stdout, mode="r|gz") as tar,
        ):
            # What comes out of a pod writes into this folder and nowhere else.
            tar.extraction_filter = tarfile.data_filter
            tar.extractall(target)
    except (tarfile.TarError, OSError) as error:
        raise Stop(f"the results could not be fetched: {error}", cure) from error
    if packed.returncode:
        raise Stop(f"the results could not be fetched (status {packed.returncode})", cure)
    answer(settings.kubectl("exec", pod, "--", "touch", "/tmp/collected"), cure)
    say(f"Results: {target.relative_to(REPOSITORY)}")


def _end(settings: Settings, name: str) -> None:
    """Take over the Job's verdict, and remove it."""
    conditions = "jsonpath={.status.conditions[*].type}"
    get = settings.kubectl("get", f"job/{name}", "-o", conditions)
    until = time.monotonic() + 180
    while not {"Complete", "Failed"} & set(found := answer(get, _APPLY).split()):
        if time.monotonic() > until:
            raise Stop(f"{name} does not end", f"kubectl -n jax-course delete job {name}")
        time.sleep(float(setting("POLL_SECONDS", "10")) / 5)
    if "Failed" in found:
        raise Stop(f"{name} failed; its results are here all the same", "The log above says why.")
    do(settings.kubectl("delete", f"job/{name}"), _APPLY)
