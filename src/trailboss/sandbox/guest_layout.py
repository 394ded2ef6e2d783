"""What both sides of the sandbox keep to: where the guest's buffers lie, and the numbers of requests and answers.

Places are in bytes from the base of image/glue.wat. Requests and answers are tuples in marshal's second format.
"""

import marshal
from typing import Any, Final

BUFFER_BYTES: Final = 65_536
REQUEST_AT: Final = 64
ANSWER_AT: Final = REQUEST_AT + BUFFER_BYTES
METER_AT: Final = ANSWER_AT + BUFFER_BYTES + 64
USED: Final = 0  # offset of the cycles used, in the meter
DEFINITIONS_AT: Final = METER_AT + 128
DEFINITION_BYTES: Final = 16  # struct PyMethodDef
LONG_REQUEST: Final = b"\xff"  # stands for a request that does not fit its buffer and is fetched
_ONE, _MANY, _NAMED = 8, 0x80, 0x82  # METH_O, METH_FASTCALL, and with METH_KEYWORDS: how CPython calls a function
_OPERATORS: Final = (
    "add sub mul floordiv truediv mod rshift lshift and or xor lt le eq ne gt ge contains lacks item operand"
)
INSTRUMENTS: Final = {  # instruments of programs that the guest has as built-in functions, by name
    **dict.fromkeys(_OPERATORS.split(), _MANY), "hashed": _ONE, "key": _ONE, "callee": _ONE, "called": _NAMED,
    "method_any": _ONE,
}  # fmt: skip
FUNCTIONS: Final = (  # built-in functions of the guest, by number, and how CPython calls them
    ("host_call", _ONE), ("glue_charge", _ONE), ("glue_turn", _MANY), ("glue_enter", _ONE), ("glue_leave", _ONE),
    ("glue_result", _MANY), ("glue_read", _ONE), ("glue_write", _MANY), ("glue_ends", _MANY), ("glue_bind", _MANY),
    ("glue_row", _ONE), ("glue_defined", _ONE), ("glue_base_of", _ONE), ("glue_length", _MANY), ("glue_formats", _MANY),
    *((f"glue_{name}", flags) for name, flags in INSTRUMENTS.items()),
)  # fmt: skip
COMPILE, LOAD, GATHER, PREPARE, RUN, RUN_ALL, LOCATE = range(7)  # requests of the host
DONE, FAILED, BROKEN = range(3)  # the guest's answers to them; the last one with a text, for a defect of its engine
ANSWERED, FAULT, REFUSED, EXHAUSTED = range(4)  # the host's answers to a host call
BYTES, INTEGER, TEXT, FLOAT, NAMED, OBJECT = range(6)  # how a guest describes an argument that is not plain
REFUSAL_NUMBER: Final = "_vm_refusal"  # fact of a refusal: its number among those of the frame
LIST_CALLS: Final = ("set_state_watch",)  # host calls with an argument that is a list
FORMAT: Final = 2  # of marshal: without references from one value to another


def pack(value: Any) -> bytes:
    """Return a request or an answer as bytes."""
    return marshal.dumps(value, FORMAT)
