"""Trained and compiled models as nn.Modules: the C++ model itself, not a copy of it."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import torch
from torch import Tensor

from . import library  # noqa: F401  (registers the class)
from .error import Error

State = list[list["Tensor | None"]]  # a list of tensors per block


class Model(torch.nn.Module):
    """The model of a run; `lrnn.load` makes it.

    Its parameters have fla's names (``model.layers.0.attn.q_proj.weight``, ...) and are the C++ model's
    own tensors: an optimiser of torch trains it, ``.to("cuda")`` moves it, ``state_dict()`` saves it.

    Attributes:
        config: every key of the run's config with its value.
        step: the training step of the weights.
        vocabulary: how many tokens there are.

    >>> import lrnn
    >>> model = lrnn.Model(lrnn.compile(example="parity")["run"])
    >>> model.config["task"]["name"], model.step
    ('automaton', 0)
    """

    config: dict[str, Any]

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        try:
            self._model = torch.classes.lrnn.Model(os.fspath(folder))
        except RuntimeError as error:
            raise Error(*str(error).split("\n  ", 1)) from None
        self.folder = os.fspath(folder)
        self.config = json.loads(self._model.config())
        self.step: int = self._model.step()
        self.vocabulary: int = self._model.vocabulary()
        for text in self._model.damaged():
            warnings.warn(text, stacklevel=3)
        for name, tensor in zip(self._model.names(), self._model.parameters()):
            self._own(name, tensor)

    def _own(self, name: str, tensor: Tensor) -> None:
        # nn.Parameter(tensor) would be another tensor, whose gradient the C++ model does not know.
        tensor._is_param = True
        at: torch.nn.Module = self
        *path, last = name.split(".")
        for part in path:
            if part not in at._modules:
                at.add_module(part, torch.nn.Module())
            at = at._modules[part]  # type: ignore[assignment]
        at.register_parameter(last, tensor)  # type: ignore[arg-type]

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        other = Model(self.folder).to(next(self.parameters()).device)
        other.load_state_dict(self.state_dict())
        memo[id(self)] = other
        return other

    def forward(
        self, ids: Tensor, state: State | None = None, cu_seqlens: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Logits [B,T,V] of tokens [B,T], and the state after them.

        Args:
            ids: integers [B,T]; with `cu_seqlens` [1,T], sequences end to end.
            state: what an earlier call returned; without it the sequences begin here.
        """
        try:
            out: tuple[Tensor, State] = self._model.forward(ids, state, cu_seqlens)
        except RuntimeError as error:
            if type(error) is RuntimeError and str(error).startswith(("model: ", "[")):
                raise Error(*str(error).split("\n  ", 1)) from None
            raise
        return out

    @torch.no_grad()
    def generate(
        self, ids: Tensor, count: int = 32, *, temperature: float = 0.0, top_k: int = 0, seed: int | None = None
    ) -> Tensor:
        """`count` more tokens of every row of `ids` [B,T], a step of constant cost each: [B,T+count].

        At temperature 0 the likeliest token is taken; otherwise one is drawn, of the `top_k` likeliest
        if that is not 0, and a `seed` draws the same again.
        """
        if count < 0 or temperature < 0 or top_k < 0:
            raise Error("count, temperature and top_k must not be negative")
        draw = None
        if seed is not None:
            draw = torch.Generator(ids.device).manual_seed(seed)
        out, state, new = [ids], None, ids
        for _ in range(count):
            logits, state = self(new, state)
            logits = logits[:, -1].float()
            if temperature == 0:
                new = logits.argmax(-1, keepdim=True)
            else:
                if top_k:
                    least = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
                    logits = logits.masked_fill(logits < least, float("-inf"))
                new = torch.multinomial((logits / temperature).softmax(-1), 1, generator=draw)
            out.append(new)
        return torch.cat(out, 1)

    def extra_repr(self) -> str:
        mixer = self.config["model"]["mixer"]["name"]
        return f"{self.folder}: {mixer}, {self.vocabulary} tokens, step {self.step}"


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a run folder (of `lrnn train` or `lrnn compile`) or in a checkpoint of one.

    >>> import torch, lrnn
    >>> model = lrnn.load(lrnn.compile(example="parity")["run"])
    >>> logits, state = model(torch.tensor([[0, 1, 1, 1]]))
    >>> more, state = model(torch.tensor([[1]]), state)
    >>> logits.shape, more.shape
    (torch.Size([1, 4, 4]), torch.Size([1, 1, 4]))
    """
    return Model(path)
