"""Variants for tests of the benchmarks: well ones, and ones with each fault."""

import os
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import numpy as np

from benchmarks import problem
from benchmarks.steps import numpy_loop


class Steady:
    """Answers at once; counts its rounds, so that one sees whether its process lives on."""

    def __init__(self, *arguments):
        self.arguments = arguments
        self.rounds = 0
        self.prepared = 0

    def prepare(self):
        self.prepared += 1

    def round(self):
        self.rounds += 1
        return {"rounds": self.rounds, "prepared": self.prepared, "process": os.getpid()}

    def facts(self):
        return {"arguments": list(self.arguments)}


class Raises(Steady):
    def round(self):
        raise ValueError("no batch | left\nand a second line")


class Crashes(Steady):
    """Ends its process as a segmentation fault or the kernel's memory killer would."""

    def round(self):
        print("about to fall over", flush=True)
        os._exit(7)


class Hangs(Steady):
    """Waits for ever, and has started a process that does so too."""

    def round(self):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        time.sleep(600)


class FailsInItsSecondProcess(Steady):
    """Well for as long as its first process lives."""

    def prepare(self):
        mark = Path(os.environ["BENCH_SCRATCH"]) / "was-here"
        if mark.exists():
            raise RuntimeError("not again")
        mark.touch()


class NeverEnds(Steady):
    """Its main thread is done, another one isn't: the process hangs up, and stays."""

    def round(self):
        threading.Thread(target=time.sleep, args=(600,)).start()
        raise SystemExit(3)


class Unreadable(Steady):
    """Answers with an object that only its own process knows."""

    def round(self):
        module = types.ModuleType("known_to_nobody_else")
        module.Answer = type("Answer", (), {"__module__": module.__name__})
        sys.modules[module.__name__] = module
        return module.Answer()


class Train:
    """Takes the steps of plain gradient descent on a small problem; `fault` says what it does wrong."""

    def __init__(self, fault=""):
        self.fault = fault

    def after_sgd(self):
        task = small_problem()
        way = numpy_loop.Loop(task, "sgd", task.rows[: problem.SGD_STEPS], *self.arguments())
        way.epoch()
        layers = way.parameters()
        if self.fault == "off":
            weight, bias = layers[1]
            start = task.layers[1][0]
            layers[1] = start + 1.001 * (weight - start), bias
        if self.fault == "nan":
            layers[2] = layers[2][0], np.full_like(layers[2][1], np.nan)
        return layers

    def arguments(self):
        return ("float64",) if self.fault == "reference" else ()


def small_problem():
    """Noise to train on; the sizes are the real ones, which the gate knows the start of."""
    random = np.random.default_rng(5)
    images = random.integers(0, 256, (400, 28, 28), np.uint8)
    labels = random.integers(0, 10, 400, np.uint8)
    return problem.make(images, labels, 40, problem.SIZES)
