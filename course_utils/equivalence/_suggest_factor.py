"""What an exact factor, or a part of the old value, between two updates tells."""

from course_utils.equivalence._change import Fit, fit, is_clean
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._factors import Named, is_first_moment, is_moment

_MEANINGS = {
    "sign": "The update goes uphill.",
    "root": "A scaling by the root of the device count, such as a learning rate scaled so.",
    "mean": (
        "Averaged twice: a pmean (or psum) of something that was already divided by the global "
        "batch size or by the number of devices.{rate}"
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
    "integer": (
        "Something is summed so many times where a mean belongs: gradients accumulated over "
        "micro-batches, say, and never divided by their number."
    ),
}


def factor(evidence: Evidence) -> str:
    """An exact factor with a meaning; where moments have one, it is theirs that counts."""
    found: dict[str, tuple[Fit, Named]] = {}
    for leaf, change in evidence.failing("error"):
        fitted = fit(change)
        named = fitted and evidence.named(fitted.factor, leaf.path)
        if named and is_clean(change, fitted, evidence.rtol):
            found[leaf.path] = fitted, named
    if not found:
        return ""
    first = next((path for path in found if is_first_moment(path)), next(iter(found)))
    if not is_moment(first):
        first = max(found, key=lambda path: _size(evidence, path))
    fitted, named = found[first]
    alike = sum(other.kind == named.kind for _, other in found.values())
    what = (
        f"{first} {_moves(evidence, first)} {fitted.factor:.4g} times the reference's: {named.text}"
    )
    more = f" (so {'is' if alike == 2 else 'are'} {alike - 1} more)" if alike > 1 else ""
    return f"{_hidden(evidence, first)}{what}{more}. {_meaning(evidence, first, named)}"


def _size(evidence: Evidence, path: str) -> int:
    return next(c.new.value.size for c in evidence.changes if c.path == path)


def _moves(evidence: Evidence, path: str) -> str:
    metric = next(change.metric for change in evidence.changes if change.path == path)
    return "is" if metric else "has an update that is"


def _meaning(evidence: Evidence, path: str, named: Named) -> str:
    if named.kind in ("sum", "mean") and _after_the_gradient(evidence, path):
        return (
            "The gradient is right, since the optimizer's moments agree or the metrics show it, and "
            "what follows is scaled: a learning rate multiplied or divided by the number of devices."
        )
    losses = [c for c in evidence.changes if c.metric and "loss" in c.path.lower()]
    factors = [found.factor for c in losses if (found := fit(c))]
    whole = bool(factors) and all(evidence.named(f, "") == named for f in factors)
    rate = "" if is_moment(path) else " A learning rate {} by it looks the same."
    return _MEANINGS[named.kind].format(
        rate=rate.format("multiplied" if named.kind == "sum" else "divided"),
        whole="; or every device sees the whole batch (in_specs=P())" if whole else "",
    )


def _after_the_gradient(evidence: Evidence, path: str) -> bool:
    if is_moment(path) or not path.startswith("state"):
        return False
    moments = [leaf.path for leaf in evidence.leaves if is_moment(leaf.path)]
    shown = [c.path for c in evidence.changes if c.metric and "grad" in c.path.lower()]
    return evidence.agree(moments) or evidence.agree(shown)


def _hidden(evidence: Evidence, path: str) -> str:
    """Say so where the parameters hardly show what the optimizer's moments do."""
    others = [
        leaf
        for leaf, change in zip(evidence.leaves, evidence.changes, strict=True)
        if not change.metric and leaf.factor is not None and not is_moment(leaf.path)
    ]
    factor = next(leaf.factor for leaf in evidence.leaves if leaf.path == path)
    apart = 0.1 * abs(factor - 1)
    if not is_moment(path) or not others or any(abs(leaf.factor - 1) > apart for leaf in others):
        return ""
    error = max(leaf.relative_error for leaf in others)
    return (
        f"the parameters agree to {error:.1g}, but the optimizer's moments don't; an optimizer that "
        "divides by its second moment, such as Adam, hides a factor from the parameters. "
    )


def decay(evidence: Evidence) -> str:
    """Another number of weight decays: the rest of the update is the leaf's own value."""
    for leaf, change in evidence.failing("error"):
        fitted = fit(change)
        clean = fitted and is_clean(change, fitted, evidence.rtol)
        if clean and fitted.decay and abs(fitted.factor - 1) < 0.02:
            return (
                f"{leaf.path} moves as the reference does, plus {fitted.decay:.3g} times its own "
                "value: weight decay (or an L2 penalty) counts another number of times, such as "
                "once per device."
            )
    return ""
