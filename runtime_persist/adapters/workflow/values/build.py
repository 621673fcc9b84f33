"""Objects of their stored fields: as they were when the class is as it was, through its constructor when it changed.

Never a bare dict or a half-built object: what cannot be built is an error that names the class, and no value.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from pydantic import BaseModel, ValidationError

from runtime_persist.adapters.workflow.values.registry import Policy, untrusted, upgrade_of
from runtime_persist.adapters.workflow.values.shapes import Shape, kind_of, shape_of
from runtime_persist.errors import IncompatibleClass, RuntimePersistError, UntrustedType

_set = object.__setattr__
_ABSENT: Final = object()
_ERRORS_SHOWN: Final = 5


def incompatible(module: str, qualname: str, reason: str) -> IncompatibleClass:
    """Return the error about a class; never with a stored value in it."""
    name = f"{module}.{qualname}"
    return IncompatibleClass(
        f"a stored {name} cannot be built: {reason}; change the class back, or register_upgrade",
        type=name,
        reason=reason,
    )


def found(policy: Policy, module: Any, qualname: Any, kind: str, fields: dict[str, Any]) -> tuple[Any, Any]:
    """Return the class and no value, or no class and the value the upgrade function of a lost class gave."""
    if not isinstance(module, str) or not isinstance(qualname, str):
        raise untrusted("?", "?", "its class is not named by two texts")
    try:
        cls = policy.find(module, qualname)
    except UntrustedType:
        if upgrade_of(module, qualname) is None:
            raise
        return None, upgraded(None, module, qualname, fields)
    if kind_of(cls) != kind:
        raise incompatible(module, qualname, f"it was a {kind} and is none now")
    return cls, _ABSENT


def upgraded(cls: type | None, module: str, qualname: str, fields: dict[str, Any]) -> Any:
    """Return what the upgrade function makes of stored fields; without a function the reason is no upgrade."""
    function = upgrade_of(module, qualname)
    if function is None:
        return _ABSENT
    try:
        value = function(dict(fields))
    except Exception as error:  # noqa: BLE001 (the user's function)
        raise incompatible(module, qualname, f"its upgrade function raised {type(error).__name__}") from None
    if value is None or (cls is not None and not isinstance(value, cls)):
        raise incompatible(module, qualname, f"its upgrade function returned a {type(value).__qualname__}")
    return value


def constructed(cls: Any, module: str, qualname: str, fields: dict[str, Any], *, changed: bool = True) -> Any:
    """Return an object through the class's constructor; of other fields than today's through its upgrade function."""
    if changed:
        again = upgraded(cls, module, qualname, fields)
        if again is not _ABSENT:
            return again
    try:
        if isinstance(cls, type) and issubclass(cls, BaseModel) and cls.__init__ is BaseModel.__init__:
            return cls.__pydantic_validator__.validate_python(fields, by_name=True, by_alias=False)
        return cls(**fields)
    except Exception as error:  # noqa: BLE001 (the class's own code)
        if not changed:
            again = upgraded(cls, module, qualname, fields)
            if again is not _ABSENT:
                return again
        _refuse(module, qualname, error)


def _refuse(module: str, qualname: str, error: Exception) -> NoReturn:
    if isinstance(error, RuntimePersistError):
        raise error
    reason = type(error).__name__
    if isinstance(error, ValidationError):
        wrong = error.errors(include_url=False, include_context=False, include_input=False)[:_ERRORS_SHOWN]
        reason = ", ".join(f"{'.'.join(map(str, one['loc']))}: {one['type']}" for one in wrong)
    elif type(error) is TypeError and "argument" in str(error):
        reason = str(error)  # names of parameters only
    raise incompatible(module, qualname, reason) from None


def model(
    policy: Policy,
    module: str,
    qualname: str,
    token: str,
    fields: dict[str, Any],
    mask: int,
    extra: dict[str, Any] | None,
) -> Any:
    """Return a pydantic model."""
    everything = {**fields, **(extra or {})}
    cls, value = found(policy, module, qualname, "model", everything)
    if cls is None:
        return value
    shape = shape_of(cls)
    if token != shape.token or not fields.keys() <= set(shape.names):
        return constructed(cls, module, qualname, everything)
    made = object.__new__(cls)
    _set(made, "__dict__", fields)
    given = {name for place, name in enumerate(shape.names) if mask >> place & 1}
    _set(made, "__pydantic_fields_set__", given | extra.keys() if extra else given)
    _set(made, "__pydantic_extra__", extra)
    _set(made, "__pydantic_private__", None)
    if cls.__pydantic_post_init__:
        stored = dict(fields)
        try:
            made.model_post_init(None)
        except Exception as error:  # noqa: BLE001 (the class's own code)
            _refuse(module, qualname, error)
        made.__dict__.update(stored)
    return made


def dataclass(policy: Policy, module: str, qualname: str, token: str, fields: dict[str, Any], more: Any) -> Any:
    """Return a dataclass instance; ``more``: it had attributes beside its fields, so its constructor makes it."""
    cls, value = found(policy, module, qualname, "dataclass", fields)
    if cls is None:
        return value
    shape = shape_of(cls)
    same = token == shape.token and fields.keys() == set(shape.names)
    if same and not more:
        made = object.__new__(cls)
        for name, one in fields.items():
            _set(made, name, one)
        return made
    return _through_init(cls, module, qualname, shape, fields, same=same)


def _through_init(cls: Any, module: str, qualname: str, shape: Shape, fields: dict[str, Any], *, same: bool) -> Any:
    if not same:
        again = upgraded(cls, module, qualname, fields)
        if again is not _ABSENT:
            return again
    try:
        made = cls(**{name: one for name, one in fields.items() if name not in shape.later})
    except Exception as error:  # noqa: BLE001 (the class's own code)
        _refuse(module, qualname, error)
    for name in fields if same else shape.later & fields.keys():
        _set(made, name, fields[name])
    return made


def namedtuple(policy: Policy, module: str, qualname: str, token: str, fields: dict[str, Any]) -> Any:
    """Return a named tuple."""
    cls, value = found(policy, module, qualname, "namedtuple", fields)
    if cls is None:
        return value
    shape = shape_of(cls)
    if token == shape.token and tuple(fields) == shape.names:
        return tuple.__new__(cls, fields.values())
    return constructed(cls, module, qualname, fields)


def enum(policy: Policy, module: str, qualname: str, name: str | None, value: Any = _ABSENT) -> Any:
    """Return a member: the one of the stored value, which must still have the stored name."""
    stored = {"name": name, "value": None if value is _ABSENT else value}
    cls, again = found(policy, module, qualname, "enum", stored)
    if cls is None:
        return again
    named = cls.__members__.get(name)
    if value is _ABSENT:
        member = named
    else:
        try:
            member = cls(value)
        except Exception:  # noqa: BLE001 (the class's own code)
            member = None
        if named is not None and member is not named:
            member = None
    if member is None:
        value = upgraded(cls, module, qualname, stored)
        if value is not _ABSENT:
            return value
        raise incompatible(module, qualname, f"it has no member {name!r} with the stored value")
    return member
