"""What does a case ask, and what does the fixture model compute? Needs no torch.

Over conformance/model/c_api/model_api.h. The library is looked for in SHARDPROOF_MODEL, beside this file, and in the
bazel-bin of the repository that this file lies in.
"""

import ctypes
import json
import os
import pathlib

LIBRARY = "libshardproof_model.so"
VERSION = 1

# spf_table, spf_access, spf_phase, spf_node_kind of shardproof.h.
PARAM, GRAD, ACT, DACT = range(4)
READ, WRITE, ADD = 1, 2, 3
FWD, BWD, DGRAD, WGRAD = range(4)
COMPUTE, INPUT, EXCHANGE, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_GATHER_CP = range(7)
FROZEN, EXPERT, SEQUENCE_PARALLEL = 1, 2, 4  # flags of a parameter
DYNAMIC, COUNTS, LOSS, FROM_PREV, TO_NEXT = 1, 2, 4, 8, 16  # flags of a value
SEND_COUNTS, RECV_COUNTS, CHUNK = 7, 8, 9  # places in a node's row
# spf_dtype, by the names of FORMAT.md.
DTYPE_NAMES = {1: "u8", 2: "i32", 3: "i64", 4: "bf16", 5: "f16", 6: "f32", 7: "f64"}
F32 = 6

_ROOM = 1000  # bytes of a sentence
_Text = ctypes.c_char * _ROOM


class ModelError(ValueError):
    """What the library refused, in its words."""


class _Error(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("bytes", ctypes.c_size_t)]


class Buffer(ctypes.Structure):
    """shardproof_buffer."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
        ("zero", ctypes.c_int32),
    ]


class NodeCall(ctypes.Structure):
    """shardproof_node_call."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("node", ctypes.c_int32),
        ("phase", ctypes.c_int32),
        ("grad_dtype", ctypes.c_int32),
        ("step", ctypes.c_int64),
        ("sample", ctypes.c_int64),
        ("scale", ctypes.c_double),
        ("aux_scale", ctypes.c_double),
        ("param", ctypes.POINTER(Buffer)),
        ("grad", ctypes.POINTER(Buffer)),
        ("act", ctypes.POINTER(Buffer)),
        ("dact", ctypes.POINTER(Buffer)),
        ("rows", ctypes.POINTER(ctypes.c_int64)),
    ]


def _places():
    """Where the library may lie, in the order in which it is looked for."""
    here = pathlib.Path(__file__).resolve()
    if os.environ.get("SHARDPROOF_MODEL"):
        return [pathlib.Path(os.environ["SHARDPROOF_MODEL"])]
    places = [here.parent / LIBRARY]
    if len(here.parents) > 3:
        places.append(here.parents[3] / "bazel-bin/conformance/model/c_api" / LIBRARY)
    return places


def library_path():
    """The library's path. ModelError says where it was looked for."""
    for place in _places():
        if place.is_file():
            return place
    raise ModelError(
        f"{LIBRARY} is not here: looked for {', '.join(map(str, _places()))}. Build it with `bazel build "
        "//conformance/model/c_api:libshardproof_model.so`, or say where it is in SHARDPROOF_MODEL"
    )


_loaded = {}  # by SHARDPROOF_MODEL: a library of a process is looked for once


def _library():
    named = os.environ.get("SHARDPROOF_MODEL")
    if named not in _loaded:
        path = library_path()
        _loaded[named] = _declare(ctypes.CDLL(str(path)), path)
    return _loaded[named]


def _declare(lib, path):
    i32, i64, model = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
    for name, result, arguments in (
        ("model_api_version", i32, []),
        ("case_facts", ctypes.c_void_p, [ctypes.c_char_p, _Error]),
        ("text_free", None, [ctypes.c_void_p]),
        ("model_open", model, [ctypes.c_char_p, i32, i32, _Error]),
        ("model_close", None, [model]),
        ("model_tables", ctypes.c_char_p, [model]),
        ("model_program", i32, [model, i64, i64, ctypes.POINTER(i32), i32]),
        ("model_initial_value", i32, [model, i32, i64, i64, ctypes.c_void_p, _Error]),
        ("model_compute", i32, [model, ctypes.POINTER(NodeCall), _Error]),
        ("digest", ctypes.c_uint64, [ctypes.c_void_p, i32, i64, i64, _Error]),
    ):
        function = getattr(lib, "shardproof_" + name)
        function.restype, function.argtypes = result, arguments
    if lib.shardproof_model_api_version() != VERSION:
        raise ModelError(
            f"{path} has version {lib.shardproof_model_api_version()} of its interface, this package knows "
            f"{VERSION}: build both from one commit"
        )
    return lib


def _error():
    text = _Text()
    return text, _Error(ctypes.addressof(text), _ROOM)


def case_facts(case_id):
    """What a case asks (model_api.h: shardproof_case_facts). ModelError names a wrong token."""
    lib = _library()
    text, error = _error()
    found = lib.shardproof_case_facts(case_id.encode(), error)
    if not found:
        raise ModelError(text.value.decode())
    try:
        return json.loads(ctypes.string_at(found))
    finally:
        lib.shardproof_text_free(found)


def digest(address, dtype, count, first=0):
    """Digest of count elements (FORMAT.md, "Digests"); first: the index of the first in the logical tensor."""
    text, error = _error()
    value = _library().shardproof_digest(address, dtype, first, count, error)
    if text.value:
        raise ModelError(text.value.decode())
    return value


class Model:
    """The model of one engine instance as one world rank sees it; tables as in model_api.h."""

    def __init__(self, case_id, instance, rank):
        self._lib = _library()
        text, error = _error()
        self._handle = self._lib.shardproof_model_open(case_id.encode(), instance, rank, error)
        if not self._handle:
            raise ModelError(text.value.decode())
        tables = json.loads(self._lib.shardproof_model_tables(self._handle))
        self.data_rank, self.data_ranks = tables["data_rank"], tables["data_ranks"]
        self.modules, self.params = tables["modules"], tables["params"]
        self.values, self.nodes = tables["values"], tables["nodes"]

    def close(self):
        self._lib.shardproof_model_close(self._handle)
        self._handle = None

    def program(self, step, sample):
        """Ids of the nodes that run for a sample of a step, in forward order."""
        room = len(self.nodes)
        ids = (ctypes.c_int32 * room)()
        return list(
            ids[: self._lib.shardproof_model_program(self._handle, step, sample, ids, room)]
        )

    def initial_value(self, param, address, count, offset=0):
        """Writes elements [offset, offset + count) of a parameter's initial value, fp32, to host memory."""
        text, error = _error()
        if self._lib.shardproof_model_initial_value(
            self._handle, param, offset, count, address, error
        ):
            raise ModelError(text.value.decode())

    def compute(self, call, tables, rows=None):
        """Runs one phase of one node on host memory.

        tables: for param, grad, act and dact a dictionary {id: (address, elements, dtype)}; rows: {value: rows}.
        ModelError says which buffer does not fit.
        """
        for name, table in zip(("param", "grad", "act", "dact"), tables):
            length = len(self.params) if name in ("param", "grad") else len(self.values)
            buffers = (Buffer * max(1, length))()
            for i, (data, count, dtype) in table.items():
                buffers[i] = (data, count, dtype, 0)
            setattr(call, name, buffers)
        if rows:
            call.rows = (ctypes.c_int64 * len(self.values))(
                *[rows.get(i, -1) for i in range(len(self.values))]
            )
        call.size = ctypes.sizeof(NodeCall)
        text, error = _error()
        if self._lib.shardproof_model_compute(self._handle, ctypes.byref(call), error):
            raise ModelError(text.value.decode())
