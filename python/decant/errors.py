"""The exceptions of decant. Each carries the message of the library, which names the file, node, dtype or shape."""

from __future__ import annotations


class DecantError(Exception):
    """What all errors of decant are. Objects stay usable after one."""


class InvalidModelError(DecantError, ValueError):
    """A file or graph breaks the rules of its format."""


class UnsupportedError(DecantError, NotImplementedError):
    """Valid, but decant has no implementation; the message names what is missing."""


class NotFoundError(DecantError, LookupError):
    """A file, tensor, component or name does not exist."""


class InvalidArgumentError(DecantError, ValueError):
    """The caller asked for something impossible: a wrong name, dtype, rank, dim or value."""


class OutOfRangeError(DecantError, IndexError):
    """A position or length is outside its limits."""


class ResourceError(DecantError, RuntimeError):
    """Memory, disk or the network failed."""


class DeadlineError(DecantError, TimeoutError):
    """A run passed its timeout, or was stopped."""


class InternalError(DecantError, RuntimeError):
    """A broken invariant of decant itself."""


_BY_CODE: dict[str, type[DecantError]] = {
    "invalid model": InvalidModelError,
    "unsupported": UnsupportedError,
    "not found": NotFoundError,
    "invalid argument": InvalidArgumentError,
    "out of range": OutOfRangeError,
    "resource exhausted": ResourceError,
    "deadline passed": DeadlineError,
}


def from_code(code: str, message: str) -> DecantError:
    """The exception for a status of the library."""
    return _BY_CODE.get(code, InternalError)(message)
