"""collectives(text): saved CPU and GPU texts, every documented form, and damaged texts."""

import random
import re
from pathlib import Path

import pytest

from course_utils.hlo import Collective, collectives, totals

DATA = Path(__file__).parent / "data" / "hlo"
COMPILED = sorted(DATA.glob("[cg]pu_*.hlo"))
VERSIONS = ("0.10", "0.12")


def saved(name):
    return (DATA / f"{name}.hlo").read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_for_cpu_devices_the_blocks_all_reduce_stays_in_the_loop(version):
    assert collectives(saved(f"cpu_{version}_shared_block")) == [
        Collective("all-reduce", 5, (4 * 4 + 4) * 4, 8),
        Collective("all-reduce", 1, (3 * 4 + 1) * 4, 8),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_for_gpus_xla_moves_it_out_and_sums_everything_at_once(version):
    assert collectives(saved(f"gpu_{version}_shared_block")) == [
        Collective("all-reduce", 1, (4 * 4 + 4 + 3 * 4 + 1) * 4, 8)
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_subgroups_in_nested_loops_and_branches_count_alike_everywhere(kind, version):
    assert collectives(saved(f"{kind}_{version}_subgroups")) == [
        Collective("all-reduce", 5 * 3 + 2, 4 * 2 * 4, 4),
        Collective("all-reduce", 5, 4 * 2 * 4, 2),
        Collective("all-reduce", 1, 4, 8),
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_the_other_kinds_count_alike_everywhere(kind, version):
    assert collectives(saved(f"{kind}_{version}_exchanges")) == [
        Collective("all-gather", 1, 4 * 8 * 4 * 4, 4),
        Collective("all-to-all", 1, 8 * 4 * 4, 8),
        Collective("collective-permute", 1, 8 * 4 * 4, 4),
        Collective("reduce-scatter", 1, 8 * 4 * 4, 2),
    ]


def test_starts_and_dones_wrapped_combined_or_printed_with_shapes_count_once():
    local = 8 * 2 * 4
    assert collectives(saved("written_async")) == [
        # One loop runs from 1 to 7, the other ten times.
        Collective("all-reduce", 6 + 10, local + 4 * 2 + 4, 2),
        Collective("all-gather", 1, 4 * (local + 3 * 2), 4),
        Collective("all-to-all", 1, local, 4),
        Collective("collective-permute", 1, local, 2),
        Collective("reduce-scatter", 1, local, 4),
    ]


def test_totals_add_up_executions_and_bytes():
    found = [Collective("all-reduce", 3, 10, 2), Collective("all-gather", 2, 7, 2)]
    assert totals(found) == (5, 44)
    assert totals(iter([])) == (0, 0)
    assert [collective.total_bytes for collective in found] == [30, 14]


def module(*lines, header="num_partitions=8"):
    body = "\n".join(f"  {line}" for line in lines)
    return f"""HloModule written, is_scheduled=true, {header}

%add (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}}

ENTRY %main (p: f32[8]) -> f32[8] {{
{body}
}}
"""


def all_reduce(
    groups="{{0,1,2,3,4,5,6,7}}",
    shape="f32[8]{0}",
    flags="channel_id=1, use_global_device_ids=true",
    **how,
):
    return module(
        f"%p = {shape} parameter(0)",
        f"ROOT %r = {shape} all-reduce(%p), replica_groups={groups}, {flags}, to_apply=%add",
        **how,
    )


def only(text):
    (collective,) = collectives(text)
    return collective


@pytest.mark.parametrize(
    ("groups", "size"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", 2),
        ("{{0,1,2},{3},{4,5,6,7}}", 4),
        ("{{0},{1}}", 1),
        ("{}", 8),
        ("[2,4]<=[8]", 4),
        ("[4,2]<=[8]", 2),
        ("[2,4]<=[4,2]T(1,0)", 4),
        ("[8,1]<=[8]", 1),
        ("mesh['axis_0'=2,'axis_1'=4] {'axis_0'}", 2),
        ("mesh['a'=2,'b'=4] {'b','a'}", 8),
        ("mesh['a'=2,'b'=4] {}", 1),
        ("mesh['a'=8] {'a':(2)2}", 2),
        ("mesh['a'=8,'b'=3] {'a':(1)2,'a':(4)2,'b'}", 12),
        ("mesh['a'=4,'b'=1,'c'=2], device_ids=([2,4]T(1,0)) {'a'}", 4),
        ("mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'a','b'}", 4),
        ("mesh[a=2,b=4] {b}", 4),
        ("maximal_mesh[device_id=3] {}", 1),
    ],
)
def test_every_form_of_replica_groups_gives_its_size(groups, size):
    collective = only(all_reduce(groups))
    assert (collective.group_size, collective.bytes) == (size, 32 if size > 1 else 0)


@pytest.mark.parametrize(
    ("flags", "everyone", "listed"),
    [
        ("channel_id=1, use_global_device_ids=true", 6, 2),
        ("channel_id=1", 6, 6),  # ids of replicas, each with its three partitions
        ("constrain_layout=false", 2, 2),  # ids of replicas, of one partition
    ],
)
def test_ids_mean_devices_or_replicas_as_xla_says(flags, everyone, listed):
    header = "replica_count=2, num_partitions=3"
    assert only(all_reduce("{}", flags=flags, header=header)).group_size == everyone
    assert only(all_reduce("{{0,1}}", flags=flags, header=header)).group_size == listed


@pytest.mark.parametrize(
    ("pairs", "size"),
    [
        ("{{0,1},{1,2},{2,3},{3,0}}", 4),
        ("{{0,1},{1,0},{2,3}}", 2),
        ("{{0,1},{2,3},{1,2}}", 4),
        ("{{0,0},{1,1}}", 1),
        ("{}", 1),
    ],
)
def test_a_permutes_group_is_what_its_pairs_tie_together(pairs, size):
    permute = f"ROOT %r = f32[8]{{0}} collective-permute(%p), source_target_pairs={pairs}"
    collective = only(module("%p = f32[8]{0} parameter(0)", permute))
    assert (collective.group_size, collective.bytes) == (size, 32 if size > 1 else 0)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("f32[]", 4),
        ("f64[3]{0}", 24),
        ("bf16[8,3]{1,0:T(8,128)(2,1)}", 48),
        ("f16[2,2]{0,1:T(4)S(1)}", 8),
        ("pred[5]{0}", 5),
        ("s64[2]{0}", 16),
        ("u16[2]{0}", 4),
        ("c128[2]{0}", 32),
        ("f8e4m3fn[6]{0}", 6),
        ("f8e5m2fnuz[6]{0}", 6),
        ("f8e8m0fnu[6]{0}", 6),
        ("s4[5]{0}", 5),
        ("s4[5]{0:E(4)}", 3),
        ("u2[9]{0:T(128)E(2)}", 3),
        ("f4e2m1fn[4]{0:E(4)}", 2),
        ("s32[<=6,2]{1,0}", 48),
        ("f32[0,4]{1,0}", 0),
    ],
)
def test_bytes_follow_type_and_shape_not_padding(shape, size):
    assert only(all_reduce(shape=shape)).bytes == size


def test_several_operands_are_one_collective_of_their_sum():
    text = module(
        "%p = f32[8]{0} parameter(0)",
        "%q = bf16[3,2]{1,0} parameter(1)",
        "ROOT %r = (f32[8]{0}, bf16[3,2]{1,0}, /*index=2*/f32[8]{0}) all-reduce(%p, %q, /*index=2*/%p), replica_groups=[1,8]<=[8], to_apply=%add",
    )
    assert only(text) == Collective("all-reduce", 1, 32 + 12 + 32, 8)


def test_the_rarer_kinds_count_too():
    text = module(
        "%p = f32[8]{0} parameter(0)",
        "%o = s32[4]{0} constant({0, 2, 4, 6})",
        "%b = f32[8]{0} collective-broadcast(%p), replica_groups={{0,1},{2,3}}",
        "ROOT %r = f32[16]{0} ragged-all-to-all(%p, %big, %o, %o, %o, %o), replica_groups={{0,1,2,3}}",
        "%big = f32[16]{0} parameter(1)",
    )
    assert set(collectives(text)) == {
        Collective("collective-broadcast", 1, 32, 2),
        Collective("ragged-all-to-all", 1, 32, 4),
    }


def test_what_goes_to_the_host_or_merely_sounds_alike_is_no_collective():
    text = module(
        "%p = f32[8]{0} parameter(0)",
        "%t = token[] after-all()",
        "%s = (f32[8]{0}, u32[], token[]) send(%p, %t), channel_id=2, is_host_transfer=true",
        "%d = token[] send-done(%s), channel_id=2, is_host_transfer=true",
        '%c = f32[8]{0} custom-call(%p), custom_call_target="all-reduce(", backend_config="{\\"replica_groups\\":[1]}"',
        "ROOT %all-reduce = f32[8]{0} copy(%c)",
    )
    assert collectives(text) == []


def loop(direction="LT", start="0", limit="5", step="1", config=""):
    return f"""HloModule looping, num_partitions=8
%add (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}}
%next (k: s32[]) -> s32[] {{
  %k = s32[] parameter(0)
  %step = s32[] constant({step})
  ROOT %n = s32[] add(%step, %k)
}}
%body (carry: (f32[], s32[])) -> (f32[], s32[]) {{
  %carry = (f32[], s32[]) parameter(0)
  %h = f32[] get-tuple-element(%carry), index=0
  %i = s32[] get-tuple-element(%carry), index=1
  %r = f32[] all-reduce(%h), replica_groups=[1,8]<=[8], to_apply=%add
  %j = s32[] fusion(%i), kind=kLoop, calls=%next
  ROOT %out = (f32[], s32[]) tuple(%r, %j)
}}
%condition (carry.1: (f32[], s32[])) -> pred[] {{
  %carry.1 = (f32[], s32[]) parameter(0)
  %l = s32[] get-tuple-element(%carry.1), index=1
  %limit = s32[] constant({limit})
  ROOT %go = pred[] compare(%l, %limit), direction={direction}
}}
ENTRY %main (p: f32[]) -> f32[] {{
  %p = f32[] parameter(0)
  %zero = s32[] constant({start})
  %copied = s32[] copy(%zero)
  %init = (f32[], s32[]) tuple(%p, %copied)
  %w = (f32[], s32[]) while(%init), condition=%condition, body=%body{config}
  ROOT %result = f32[] get-tuple-element(%w), index=0
}}
"""


@pytest.mark.parametrize(
    ("changes", "executions"),
    [
        ({}, 5),
        ({"direction": "LE"}, 6),
        ({"step": "2"}, 3),
        ({"start": "-3"}, 8),
        ({"direction": "GT", "start": "5", "limit": "0", "step": "-1"}, 5),
        ({"direction": "GE", "start": "5", "limit": "0", "step": "-2"}, 3),
        ({"config": ', backend_config={"known_trip_count":{"n":"128"}}'}, 128),
    ],
)
def test_a_loop_without_a_known_count_is_counted_from_its_counter(changes, executions):
    assert only(loop(**changes)).executions == executions


def test_a_loop_that_never_runs_executes_nothing():
    assert collectives(loop(start="9")) == []


@pytest.mark.parametrize(
    "text",
    [
        loop(direction="NE"),
        loop(step="0"),
        loop(step="-1"),
        loop().replace("constant(5)", "parameter(1)"),
        loop().replace("tuple(%r, %j)", "tuple(%r, %i)"),
        loop().replace("copy(%zero)", "parameter(1)"),
        loop(config=', backend_config={"known_trip_count":{"n":"many"}}').replace("copy(", "not("),
    ],
)
def test_a_loop_that_cannot_be_counted_is_an_error(text):
    with pytest.raises(ValueError, match=r"line 31, while %w: it holds collectives.*lax.scan"):
        collectives(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: expected 'HloModule"),
        ("\n  \n", r"line 1: expected 'HloModule"),
        ("hello", r"line 1: expected 'HloModule ...', found 'hello'"),
        ("module @jit_f {\n  stablehlo.add\n}", "StableHLO.*compile it first"),
        ("HloModule m", "line 1: expected an ENTRY computation .was it cut short"),
        (all_reduce()[:-3], "expected the end of %main .was it cut short"),
        (all_reduce().split("ENTRY")[0], "line 7: expected an ENTRY computation"),
        (all_reduce() + "more", "expected a computation, found 'more'"),
        (all_reduce("{{0,1}"), r"line 11: expected '%name = shape opcode\(operands\)"),
        (all_reduce("{{0,1},2}"), "line 11, all-reduce %r: expected replica_groups such as"),
        (all_reduce("[2,3]<=[8]"), "line 11, all-reduce %r: expected replica_groups such as"),
        (all_reduce("mesh['a'=2] {'b'}"), "line 11, all-reduce %r: expected replica_groups"),
        (all_reduce("new['a'=2] {'a'}"), "line 11, all-reduce %r: expected replica_groups"),
        (all_reduce("{}", header="x=1"), "means every device, but.*neither replica_count"),
        (all_reduce().replace("replica_groups", "groups"), "expected replica_groups such as"),
        (all_reduce(shape="f7[8]{0}"), "line 10, parameter %p: unknown type 'f7'; known are"),
        (all_reduce(shape="f32[?]{0}"), r"expected sizes such as 8,4, not '\?'"),
        (all_reduce(shape="(f32[8], odd)"), "expected a shape such as"),
        (all_reduce().replace("%r = f32[8]", "%r = f32[4]"), "a result of 32 bytes.* not of 16"),
        (all_reduce().replace("all-reduce(", "all-shuffle("), "all-shuffle %r: it communicates"),
        (all_reduce().replace("all-reduce(", "swap("), "swap %r: it communicates in a way that"),
        (all_reduce().replace("all-reduce(%p)", "all-reduce(%q)"), "operand %q isn't defined"),
        (all_reduce().replace("ROOT %r", "%r"), "line 9: %main has no ROOT"),
        (all_reduce().replace("ROOT %r", "ROOT %p"), "line 11: expected one %p"),
        (module("ROOT %r = f32[] fusion(), calls=%gone"), "fusion %r: it calls %gone, which"),
        (module("ROOT %r = f32[] call(), to_apply=%main"), "line 9: it calls itself"),
        (
            module(
                "%p = f32[8]{0} parameter(0)",
                "ROOT %r = f32[8]{0} collective-permute(%p), source_target_pairs={{0,1,2}}",
            ),
            re.escape("expected source_target_pairs such as {{0,1},{1,0}}, not '{{0,1,2}}'"),
        ),
        (
            loop().replace("while(%init), condition=%condition, body=%body", "custom-call(%init)"),
            "line 12: %body holds collectives, and nothing here is known to call it",
        ),
        (
            module("%p = f32[] parameter(0)", "ROOT %r = f32[] send(%p), channel_id=1"),
            "line 11, send %r: it communicates",
        ),
        (
            loop().replace("fusion(%i), kind=kLoop, calls=%next", "copy(%i)"),
            "line 31, while %w: it holds",
        ),
        (loop().replace(", body=%body", ""), "while %w: expected one computation as its body"),
        (
            module("ROOT %r = f32[] conditional(), true_computation=%add"),
            "conditional %r: expected its branches",
        ),
        (
            loop().replace(
                "while(%init), condition=%condition, body=%body", "sort(%init), to_apply=%body"
            ),
            "sort %w: how often it runs the collectives that it calls isn't known",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_where(text, message):
    with pytest.raises(ValueError, match=message):
        collectives(text)


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.stem)
def test_a_text_cut_short_anywhere_is_an_error(path):
    text = path.read_text().rstrip()
    for length in range(0, len(text), 499):
        with pytest.raises(ValueError, match="HLO text, line "):
            collectives(text[:length])


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.stem)
def test_damage_is_an_error_with_a_line_or_leaves_the_count_as_it_was(path):
    chance = random.Random(path.stem)
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    dropped = [chance.randrange(2, len(lines)) for _ in range(50)]
    without_a_line = ["".join(lines[:i] + lines[i + 1 :]) for i in dropped]
    places = [chance.randrange(len(text)) for _ in range(50)]
    without_a_character = [text[:i] + text[i + 1 :] for i in places]
    expected = totals(collectives(text)).executions
    for damaged in [*without_a_line, *without_a_character]:
        assert executions_or_line(damaged) in (expected, "line")


def executions_or_line(text):
    try:
        return totals(collectives(text)).executions
    except ValueError as error:
        return "line" if re.match(r"HLO text, line \d+", str(error)) else str(error)
