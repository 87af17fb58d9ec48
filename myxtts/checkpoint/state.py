"""What a run remembers besides its weights.

In: the `state.json` of a checkpoint.
Out: `RunState`, which is written and read as it is.
"""

from dataclasses import asdict, dataclass, field, fields
from types import UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints


@dataclass
class RunState:
    """Counters of a run; what is measured in floats is infinite or unknown where it is None."""

    step: int = 0
    batches: int = 0  # taken from the training set
    seconds: float = 0.0
    loss: float | None = None  # of the last validation, where no step was taken since
    best_loss: float | None = None
    validations_since_best: int = 0
    owes_validation: bool = False  # one that was due was cut short
    clear_at: int | None = None  # step from which on the held-out loss was low enough to settle
    skipped: int = 0
    bad_row: list[int] = field(default_factory=list)
    parts: int = 1  # of a step
    knows_alignment: bool = False  # without it, the averages of a flat start lead the search at first
    order: dict[str, Any] = field(default_factory=dict)  # what decides which clips are in which batch

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Self:
        """Takes its own fields out of a table of values.

        Raises:
            ValueError: one is missing, of another kind or out of range.
        """
        document = {"clear_at": None} | document  # not in older checkpoints
        kinds = get_type_hints(cls)
        for name, kind in kinds.items():
            if name not in document or not _fits(document[name], kind):
                raise ValueError(f"has {name} {document.get(name)!r}")
        for name, least in (("step", 0), ("batches", 0), ("skipped", 0), ("parts", 1), ("validations_since_best", 0)):
            if document[name] < least:
                raise ValueError(f"has {name} {document[name]!r}")
        return cls(**{one.name: document[one.name] for one in fields(cls)})

    def to_document(self) -> dict[str, Any]:
        return asdict(self)


def _fits(value: object, kind: Any) -> bool:
    if isinstance(kind, UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if kind is float:
        return isinstance(value, int | float)
    return isinstance(value, get_origin(kind) or kind)
