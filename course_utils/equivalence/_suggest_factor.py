"""What an exact factor, or a part of the old value, between two updates tells."""

from course_utils.equivalence._change import Fit, fit, is_clean
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._factors import Named, is_first_moment, is_moment
from course_utils.equivalence._meanings import meaning


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
    return f"{_hidden(evidence, first)}{what}{more}. {meaning(evidence, first, named)}"


def _size(evidence: Evidence, path: str) -> int:
    return next(c.new.value.size for c in evidence.changes if c.path == path)


def _moves(evidence: Evidence, path: str) -> str:
    metric = next(change.metric for change in evidence.changes if change.path == path)
    return "is" if metric else "has an update that is"


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
