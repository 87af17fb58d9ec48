"""Settings from defaults, a YAML file and flags, each later one winning, with the origin of every value.

In: a YAML path and flags as {"section.name": value}.
Out: an `XTTSConfig` and {"section.name": where it came from}; also saves one and reads it back.
"""

import dataclasses
import difflib
import functools
import logging
import os
import re
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from myxtts.config.config import MODEL_SIZES, XTTSConfig
from myxtts.errors import UsageError

RENAMED = {  # keys that configurations of older runs and users' files hold
    "training.critics_after": "vocoder.discriminators_after",
    "training.fooling_loss": "vocoder.adversarial_loss",
    "training.different_loss": "vocoder.feature_matching_loss",
    "vocoder.critic_width": "vocoder.discriminator_width",
}
_LOGGER = logging.getLogger(__name__)
SAVED = "checkpoint"  # the origin of what a run takes over
SECTIONS: dict[str, type] = {f.name: typing.cast(type, f.type) for f in dataclasses.fields(XTTSConfig)}


def _nearest(name: str, known: typing.Iterable[str]) -> str:
    match = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f"; did you mean {match[0]!r}?" if match else f"; known: {', '.join(sorted(known))}"


def _is_not_given(value: Any) -> bool:
    """Whether a value of a field that may be None says so; -1 is in configurations of older runs."""
    return value is None or value == -1 or (isinstance(value, str) and value.lower() == "none")


def _convert(key: str, value: Any, wanted: Any, source: str) -> Any:
    """A value of the field's own type, or an error that names key, source and type."""
    or_none = ""
    if type(None) in typing.get_args(wanted):
        if _is_not_given(value):
            return None
        wanted, *others = (kind for kind in typing.get_args(wanted) if kind is not type(None))
        or_none = " or none"
        if others:  # one number or several
            if isinstance(value, str) and re.fullmatch(r"\s*\d+(\s*,\s*\d+)*\s*", value):
                value = [int(word) for word in value.split(",")]
            if isinstance(value, list | tuple) and all(type(one) is int for one in value):
                return tuple(value)
    if wanted is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if wanted is float and isinstance(value, str):
        try:
            return float(value)  # YAML 1.1 reads 1e-4 as text
        except ValueError:
            pass
    if key == "training.xla" and isinstance(value, bool):
        return "on" if value else "off"  # YAML 1.1 reads on and off as true and false
    if isinstance(value, wanted) and not (wanted is int and isinstance(value, bool)):
        return value
    if wanted is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    where = f"{source}: {key}" if source else f"`{key}`"
    raise UsageError(f"{where} is {value!r}, a {type(value).__name__}; it must be a {wanted.__name__}{or_none}")


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file as {"section.name": value}; unknown sections and keys are refused with the nearest name."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read configuration {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"configuration {path} is not valid YAML: {' '.join(str(error).split())}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"configuration {path} must hold sections ({', '.join(SECTIONS)}), found {content!r:.60}")
    values: dict[str, Any] = {}
    for section, entries in content.items():
        if section not in SECTIONS:
            raise UsageError(f"{path}: unknown section {section!r}{_nearest(str(section), SECTIONS)}")
        if not isinstance(entries, dict):
            raise UsageError(f"{path}: section {section} must hold `name: value` lines, found {entries!r:.60}")
        fields = _hints(section)
        for name, value in entries.items():
            key = RENAMED.get(f"{section}.{name}", f"{section}.{name}")
            if key == f"{section}.{name}" and name not in fields:
                raise UsageError(f"{path}: unknown key {section}.{name}{_nearest_key(section, str(name))}")
            if key in values:
                names = [key, *(old for old, today in RENAMED.items() if today == key)]
                raise UsageError(f"{path}: {' and '.join(names)} are the same setting; give one of them")
            of_section, field = key.split(".")
            values[key] = _convert(f"{section}.{name}", value, _hints(of_section)[field], str(path))
    return values


def _nearest_key(section: str, name: str) -> str:
    """A hint at the section that has the name, else at the nearest name of this one."""
    if elsewhere := [other for other in SECTIONS if name in _hints(other)]:
        return f"; did you mean '{elsewhere[0]}.{name}'?"
    return _nearest(name, _hints(section))


@functools.cache
def _hints(section: str) -> dict[str, Any]:
    """The types of a section's fields."""
    return typing.get_type_hints(SECTIONS[section])


def renamed_keys(path: Path) -> dict[str, str]:
    """The keys of a YAML file that have other names today, with those."""
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    found = [f"{section}.{name}" for section, entries in content.items() for name in entries]
    return {key: RENAMED[key] for key in found if key in RENAMED}


def build(values: Mapping[str, Any]) -> XTTSConfig:
    """Dotted values on top of the defaults and of the preset that `model.size` names.

    Raises:
        UsageError: a key is not known, or its value is of another kind or out of range.
    """
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    size = values.get("model.size", "tiny")
    sections["model"].update(MODEL_SIZES.get(size, {}) if isinstance(size, str) else {})
    for key, value in values.items():
        today = RENAMED.get(key, key)
        if today != key:
            _LOGGER.warning("%s is called %s today", key, today)
        section, _, name = today.partition(".")
        if section not in SECTIONS:
            raise UsageError(f"unknown key {key!r}{_nearest(section, SECTIONS)}")
        if (kind := _hints(section).get(name)) is None:
            raise UsageError(f"unknown key {key!r}{_nearest_key(section, name)}")
        sections[section][name] = _convert(today, value, kind, "")
    return XTTSConfig(**{section: SECTIONS[section](**entries) for section, entries in sections.items()})


def resolve(
    path: Path | None, flags: Mapping[str, Any], saved: Path | None = None, keep: tuple[str, ...] = ("",)
) -> tuple[XTTSConfig, Mapping[str, str]]:
    """Defaults < a checkpoint's configuration (keys that begin as in `keep`) < YAML < flags.

    The second value tells where each value came from that is not a default.
    """
    values: dict[str, Any] = read_yaml(saved) if saved is not None else {}
    values = {key: value for key, value in values.items() if key.startswith(keep)}
    if saved is not None and "xla: false" in saved.read_text(encoding="utf-8"):  # once the default; now off is quoted
        values.pop("training.xla", None)
    written = read_yaml(path) if path is not None else {}
    size = {**written, **flags}.get("model.size", values.get("model.size"))
    if size != values.get("model.size"):  # another size has shapes of its own
        values = {key: value for key, value in values.items() if not key.startswith("model.")}
    usual = flatten(build({"model.size": values.get("model.size", "tiny")}))
    origin = {key: SAVED for key, value in values.items() if value != usual[key]}
    for source, given in ((str(path), written), ("flag", flags)):
        for key, value in given.items():
            values[key], origin[key] = value, source
    return build(values), types.MappingProxyType(origin)


def flatten(config: XTTSConfig) -> dict[str, Any]:
    """Every value as {"section.name": value}."""
    return {
        f"{section}.{name}": value
        for section, entries in dataclasses.asdict(config).items()
        for name, value in entries.items()
    }


def differences(config: XTTSConfig, other: XTTSConfig, section: str) -> list[str]:
    """Readable lines for what differs in one section."""
    return lines_of_difference(getattr(config, section), getattr(other, section), section)


def lines_of_difference(ours: Any, theirs: Any, section: str) -> list[str]:
    """The same for the section itself."""
    return [
        f"{section}.{name}: {value!r} here, {getattr(theirs, name)!r} there"
        for name, value in dataclasses.asdict(ours).items()
        if value != getattr(theirs, name)
    ]


def save(config: XTTSConfig, path: Path) -> None:
    """The whole configuration as YAML that `load` reads back equal."""
    values = dataclasses.asdict(config)
    plain = {
        section: {name: list(value) if isinstance(value, tuple) else value for name, value in entries.items()}
        for section, entries in values.items()
    }
    path.write_text(yaml.safe_dump(plain, sort_keys=False), encoding="utf-8")


def load(path: Path) -> XTTSConfig:
    """A configuration written by `save`."""
    return build(read_yaml(path))
