"""Right parallel steps, each in another style."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from equivalence_case import Case, cases
from equivalence_steps import (
    ADAMW,
    MOMENTUM,
    apply,
    compared,
    each,
    example_losses,
    host_batch,
    host_params,
    host_state,
    make_mesh,
    mean_loss,
    one_device,
    own_gradients,
    pmean,
    psum,
    put,
    right_local,
)
from equivalence_wrong_batches import RAGGED, REAL, keyed
from equivalence_wrong_metrics import confusion, correct, measured
from equivalence_wrong_optimizers import accumulated, micro
from equivalence_wrong_reductions import clipped, clipping, sharded_rows
from equivalence_wrong_whole import KEY, whole
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import example_keys, weighted_mean

STYLES: list[Case] = []
right = cases(STYLES, wrong=False)


@right("jit on sharded arrays, AdamW")
def _(n):
    state, batch = put(make_mesh(n), host_state(ADAMW), host_batch())
    return {"step": one_device(ADAMW), "state": state, "batch": batch}


@right("shard_map, params made varying, pmean")
def _(n):
    return compared(n, right_local, steps=10)


@right("shard_map, the pmean-ed loss differentiated")
def _(n):
    return compared(n, lambda p, b: jax.value_and_grad(lambda q: pmean(mean_loss(q, b)))(p))


@right("shard_map with check_vma=False, pmean of the gradients")
def _(n):
    local = lambda p, b: pmean(jax.value_and_grad(mean_loss)(p, b))  # noqa: E731
    return compared(n, local, check_vma=False)


@right("shard_map, gradients of replicated params divided by the devices")
def _(n):
    def local(params, batch):
        loss, grads = jax.value_and_grad(mean_loss)(params, batch)
        return pmean(loss), each(lambda g: g / n, grads)

    return compared(n, local)


@right("vmap over the devices' parts, under jit")
def _(n):
    @jax.jit
    def step(state, batch):
        parts = each(lambda x: x.reshape(n, -1, *x.shape[1:]), batch)
        found = jax.vmap(jax.value_and_grad(mean_loss), in_axes=(None, 0))(state[0], parts)
        loss, grads = each(lambda x: x.mean(axis=0), found)
        return apply(MOMENTUM, state, grads), {"loss": loss}

    state, batch = put(make_mesh(n), host_state(MOMENTUM), host_batch())
    return {"step": step, "state": state, "batch": batch, "reference": one_device(MOMENTUM)}


@right("Explicit axes, params marked as to be reduced")
def _(n):
    mesh = jax.make_mesh(
        (n,), ("data",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:n]
    )

    def loss(params, x):
        return jnp.square(jnp.tanh(x @ params["W"]) @ params["out"]).mean()

    @jax.jit
    def inner(params, x):
        marked = each(lambda p: jax.reshard(p, P(None, None, reduced={"data"})), params)
        value, grads = jax.value_and_grad(loss)(marked, x)
        grads = each(lambda g: jax.reshard(g, P()), grads)
        return each(lambda p, g: p - 0.1 * g, params, grads), value

    def step(params, x):
        with jax.set_mesh(mesh):
            return inner(params, x)

    @jax.jit
    def reference(params, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        return each(lambda p, g: p - 0.1 * g, params, grads), value

    params = {name: host_params()[name] for name in ("W", "out")}
    state, batch = put(mesh, params, host_batch()["x"])
    return {"step": step, "state": state, "batch": batch, "reference": reference}


@right("pmap")
def _(n):
    def local(state, batch):
        loss, grads = pmean(jax.value_and_grad(mean_loss)(state[0], batch))
        return apply(MOMENTUM, state, grads), {"loss": loss}

    step = jax.pmap(local, axis_name="data", devices=jax.devices()[:n])
    state = each(lambda x: np.stack([x] * n), host_state(MOMENTUM))
    batch = each(lambda x: x.reshape(n, -1, *x.shape[1:]), host_batch())
    arguments = {"step": step, "state": state, "batch": batch, "stacked": True}
    return arguments | {"reference": one_device(MOMENTUM)}


@right("a 2-D mesh, the model split over its second axis")
def _(n):
    mesh = make_mesh(*((2, n // 2) if n % 2 == 0 else (n, 1)))
    specs = {"W": P(None, "model"), "b": P("model"), "out": P("model", None)}
    params = {k: jax.device_put(v, NamedSharding(mesh, specs[k])) for k, v in host_params().items()}
    state = params, MOMENTUM.init(params)
    batch = jax.device_put(host_batch(), NamedSharding(mesh, P("data")))
    return {"step": one_device(MOMENTUM), "state": state, "batch": batch}


@right("parameters sharded as in FSDP: gathered, their gradients scattered")
def _(n):
    return sharded_rows(n, lambda grads: grads)


@right("gradients accumulated over micro-batches, against the whole batch")
def _(n):
    def step(state, batch):
        total = accumulated(state, batch, jnp.add)
        loss, grads = each(lambda x: x / len(batch["y"]), total)
        return apply(MOMENTUM, state, grads), {"loss": loss}

    return micro(n, step)


@right("optax.MultiSteps over micro-batches")
def _(n):
    def make(every):
        optimizer = optax.MultiSteps(optax.adam(1e-2), every)

        def update(state, batch):
            loss, grads = jax.value_and_grad(mean_loss)(state[0], batch)
            return apply(optimizer, state, grads), loss

        return optimizer, update

    (optimizer, update), (_, whole) = make(2), make(1)

    def step(state, batch):
        state, losses = jax.lax.scan(update, state, batch)
        return state, losses.mean()

    optimizer = optax.GradientTransformation(optimizer.init, optimizer.update)
    return micro(n, step, optimizer, reference=jax.jit(whole))


@right("dropout with a key for each example")
def _(n):
    return keyed(n, lambda key, examples: example_keys(key, examples, "data"))


@right("dropout under jit, its mask drawn for the whole batch")
def _(n):
    @jax.jit
    def step(state, batch, key):
        kept = jax.random.bernoulli(key, 0.5, batch["x"].shape)
        loss = lambda p: mean_loss(p, batch | {"x": batch["x"] * kept * 2})  # noqa: E731
        value, grads = jax.value_and_grad(loss)(state[0])
        return apply(MOMENTUM, state, grads), {"loss": value}

    state, batch = put(make_mesh(n), host_state(MOMENTUM), host_batch())
    return {"step": step, "state": state, "batch": batch, "key": jax.random.key(1)}


@right("padded and masked, against a script that knows no padding")
def _(n):
    def local(params, batch):
        def loss(params):
            return weighted_mean(example_losses(params, batch), batch["mask"], "data")

        return jax.value_and_grad(loss)(params)

    whole = host_batch(examples=REAL)
    return compared(n, local, batch=RAGGED, reference_batches=[whole])


@right("a whole step: padded, masked, with dropout, clipped, a metric by class")
def _(n):
    return whole(n, key=KEY)


@right("clipped after the reduction, under a schedule")
def _(n):
    def local(params, batch):
        loss, grads = pmean(own_gradients(params, batch))
        return loss, clipped(grads), optax.tree.norm(grads)

    return clipping(n, local)


@right("counts and a confusion matrix by psum, a maximum by pmax")
def _(n):
    def metric(params, batch):
        worst = example_losses(params, batch).max()
        return correct(params, batch), confusion(params, batch), worst

    return measured(n, metric, lambda m: (*psum(m[:2]), jax.lax.pmax(m[2], "data")))


@right("computed in bfloat16, parameters in float32")
def _(n):
    def loss(params, batch):
        return example_losses(params, batch, jnp.bfloat16).mean()

    return compared(n, lambda p, b: right_local(p, b, loss), ADAMW, loss=loss)


class Net(nnx.Module):
    """A layer before batch normalisation has a bias that nothing moves but rounding."""

    def __init__(self, rngs):
        self.first, self.last = nnx.Linear(6, 8, rngs=rngs), nnx.Linear(8, 4, rngs=rngs)
        self.norm, self.drop = nnx.BatchNorm(8, rngs=rngs), nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(nnx.relu(self.norm(self.first(x)))))


def logit_loss(logits, batch):
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()


@nnx.jit
def train(model, optimizer, batch):
    loss, grads = nnx.value_and_grad(lambda m: logit_loss(m(batch["x"]), batch))(model)
    optimizer.update(model, grads)
    return loss


@right("Flax NNX: nnx.jit that changes modules in place")
def _(n):
    def step(modules, batch):
        loss = train(*modules, batch)
        return modules, {"loss": loss}

    model = Net(nnx.Rngs(0))
    modules = model, nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    state, batch = put(make_mesh(n), modules, host_batch())
    return {"step": step, "state": state, "batch": batch}


@right("Flax NNX: split into GraphDef and State, inside shard_map")
def _(n):
    graph, params = nnx.split(nnx.Linear(6, 4, rngs=nnx.Rngs(0)))

    def loss(params, batch):
        return logit_loss(nnx.merge(graph, params)(batch["x"]), batch)

    def make(gradients):
        @jax.jit
        def step(params, batch):
            value, grads = gradients(params, batch)
            return each(lambda p, g: p - 0.1 * g, params, grads), {"loss": value}

        return step

    mesh = make_mesh(n)
    local = lambda p, b: right_local(p, b, loss)  # noqa: E731
    inner = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()))
    state, batch = put(mesh, params, host_batch())
    reference = make(jax.value_and_grad(loss))
    return {"step": make(inner), "state": state, "batch": batch, "reference": reference}


@right("Equinox: a module with functions among its leaves")
def _(n):
    optimizer = optax.adam(1e-2)

    @eqx.filter_jit
    def step(state, batch):
        model, opt_state = state
        found = eqx.filter_value_and_grad(lambda m: logit_loss(jax.vmap(m)(batch["x"]), batch))
        loss, grads = found(model)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (eqx.apply_updates(model, updates), opt_state), {"loss": loss}

    mesh = make_mesh(n)
    model = eqx.nn.MLP(6, 4, 8, 1, key=jax.random.key(0))
    state = model, optimizer.init(eqx.filter(model, eqx.is_array))
    state = eqx.filter_shard(state, NamedSharding(mesh, P()))
    batch = jax.device_put(host_batch(), NamedSharding(mesh, P("data")))
    return {"step": step, "state": state, "batch": batch}
