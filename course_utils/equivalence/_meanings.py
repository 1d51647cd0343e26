"""What a factor with a name means: which fault makes updates so many times too long or short."""

import re
from collections.abc import Collection

from course_utils.equivalence._change import fit, is_clean
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._factors import Named, is_moment

_MEANINGS = {
    "sign": "The update goes uphill.",
    "root": "A scaling by the root of the device count, such as a learning rate scaled so.",
    "mean": (
        "Averaged twice: a pmean (or psum) of something that was already divided by the global "
        "batch size or by the number of devices; or, where the step clips, a sum that is "
        "clipped before it is divided.{rate}"
    ),
    "sum": (
        "Summed instead of averaged: a psum where pmean belongs; or a pmean that does nothing, "
        "because shard_map (check_vma=True) has already summed the gradient with respect to "
        "replicated parameters{whole}.{rate}"
    ),
    "micro-sum": (
        "Gradients are accumulated over the micro-batches, and never divided by their number."
    ),
    "micro-mean": "Divided by the number of micro-batches once too often.",
    "padding": (
        "Sums over the real examples are divided by the number of all rows, padding included: "
        "divide by the sum of the mask."
    ),
    "example-sum": "A sum over examples where their mean belongs.",
    "example-mean": (
        "Divided by the number of examples once too often; or, where the step clips (or "
        "normalises), a sum over the examples that is clipped before it is divided. Sum, reduce, "
        "divide, then clip."
    ),
    "integer": (
        "Something is summed so many times where a mean belongs: gradients accumulated over "
        "micro-batches, say, and never divided by their number."
    ),
}

# What was summed and not divided yet, where the update is divided, and a metric shows the sum.
_SUMMED = {"mean": "sum", "micro-mean": "micro-sum", "example-mean": "example-sum"}
_OVER = {"sum": "the devices", "micro-sum": "the micro-batches", "example-sum": "the examples"}
_GRADIENT = re.compile("grad|norm", re.IGNORECASE)


def meaning(evidence: Evidence, path: str, named: Named) -> str:
    """The likely cause of a named factor of one leaf."""
    if named.kind in ("sum", "mean") and after_the_gradient(evidence, path):
        return (
            "The gradient is right, since the optimizer's moments agree or the metrics show it, and "
            "what follows is scaled: a learning rate multiplied or divided by the number of devices."
        )
    if said := shown_sum(evidence, [_SUMMED[named.kind]] if named.kind in _SUMMED else []):
        return said
    losses = [c for c in evidence.changes if c.metric and "loss" in c.path.lower()]
    factors = [found.factor for c in losses if (found := fit(c))]
    whole = bool(factors) and all(evidence.named(f, "") == named for f in factors)
    rate = "" if is_moment(path) else " A learning rate {} by it looks the same."
    return _MEANINGS[named.kind].format(
        rate=rate.format("multiplied" if named.kind == "sum" else "divided"),
        whole="; or every device sees the whole batch (in_specs=P())" if whole else "",
    )


def shown_sum(evidence: Evidence, kinds: Collection[str] = tuple(_OVER)) -> str:
    """What a gradient's norm among the metrics says, if it is a sum of one of these `kinds`.

    Where the state isn't a sum, that sum is clipped too early.
    """
    for leaf, change in evidence.metrics():
        found = fit(change) if _GRADIENT.search(leaf.path) else None
        named = found and evidence.named(found.factor, "")
        if named and named.kind in kinds and is_clean(change, found, evidence.rtol):
            return (
                f"{leaf.path} is {found.factor:.4g} times the reference's, and the update isn't: a "
                f"sum over {_OVER[named.kind]} is clipped (or normalised) before it is divided by "
                "their number. Sum, reduce, divide, then clip."
            )
    return ""


def after_the_gradient(evidence: Evidence, path: str) -> bool:
    """Whether a leaf of the state differs, though the gradients agree, as far as they show."""
    if is_moment(path) or not path.startswith("state"):
        return False
    moments = [leaf.path for leaf in evidence.leaves if is_moment(leaf.path)]
    shown = [c.path for c in evidence.changes if c.metric and "grad" in c.path.lower()]
    return evidence.agree(moments) or evidence.agree(shown)
