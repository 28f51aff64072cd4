"""What every body and query of the API is made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Reference = Annotated[str, StringConstraints(pattern=r"^[a-z]+:[^\x00-\x1f]{1,512}$")]
Url = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
Scope = Literal["org", "user"]


class Asked(BaseModel):
    """Base of what a client sends."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """Base of what the server answers; further fields may come in later versions."""

    model_config = ConfigDict(extra="allow")
