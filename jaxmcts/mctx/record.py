"""What mctx's records can do beside holding arrays: they are mappings too, and are copied with changes."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Self


class Record(Mapping[str, Any]):
    """Base of the frozen dataclasses below: `record["name"]`, `dict(record)`, `record.replace(name=...)`."""

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_tuple(self) -> tuple[Any, ...]:
        """Return the fields in order."""
        return tuple(self.values())

    @classmethod
    def from_tuple(cls, fields: tuple[Any, ...]) -> Self:
        """Undo `to_tuple`."""
        return cls(**dict(zip(cls._names(), fields, strict=True)))

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in dataclasses.fields(cls))  # type: ignore[arg-type]
