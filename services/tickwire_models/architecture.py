"""The two networks: a patch transformer (the reference) and a lighter LSTM (the fallback).

Input: raw rows, float32 (batch, 500, 48). The first nodes normalise them; the last is a softmax over down, flat, up.
Both cut the window into patches of ten rows, so that 500 steps become 50 tokens.
Sources: Nie et al. 2023, PatchTST; Xiong et al. 2020, pre-layer normalisation; Hochreiter, Schmidhuber 1997, LSTM.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from tickwire.records import N_FEATURES

WINDOW_ROWS: Final = 500
PATCH_ROWS: Final = 10
TOKENS: Final = WINDOW_ROWS // PATCH_ROWS
N_CLASSES: Final = 3


class Normalise(nn.Module):
    """clip((x - centre) / scale), in FP32, part of the graph."""

    centre: Tensor
    scale: Tensor

    def __init__(self, centre: npt.NDArray[np.float32], scale: npt.NDArray[np.float32], clip: float) -> None:
        """Keep the constants as buffers."""
        super().__init__()
        self.register_buffer("centre", torch.from_numpy(centre.astype(np.float32)))
        self.register_buffer("scale", torch.from_numpy(scale.astype(np.float32)))
        self.clip = clip

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise (..., F)."""
        return torch.clamp((rows - self.centre) / self.scale, -self.clip, self.clip)


class Block(nn.Module):
    """Pre-norm attention and feed-forward; the last one attends from the last token only.

    Every shape but the batch is a constant: the exported graph then computes no shapes and has no branches on them.
    """

    def __init__(self, width: int, heads: int, last: bool) -> None:
        """Make the layers."""
        super().__init__()
        self.heads = heads
        self.width = width
        self.last = last
        self.norm_attention = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.project = nn.Linear(width, width)
        self.norm_feed = nn.LayerNorm(width)
        self.feed_in = nn.Linear(width, 4 * width)
        self.feed_out = nn.Linear(4 * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same, or to (batch, 1, width) in the last block."""
        head_width, asked = self.width // self.heads, 1 if self.last else TOKENS
        normed = self.norm_attention(tokens)
        asking = normed[:, -1:] if self.last else normed
        query = self.query(asking).reshape(-1, asked, self.heads, head_width).transpose(1, 2)
        both = self.key_value(normed).reshape(-1, TOKENS, 2, self.heads, head_width)
        key, value = both[:, :, 0], both[:, :, 1]
        scores = query @ key.permute(0, 2, 3, 1) * head_width**-0.5
        mixed = torch.softmax(scores, -1) @ value.transpose(1, 2)
        residual = tokens[:, -1:] if self.last else tokens
        attended = residual + self.project(mixed.transpose(1, 2).reshape(-1, asked, self.width))
        out: Tensor = attended + self.feed_out(functional.gelu(self.feed_in(self.norm_feed(attended))))
        return out


class Transformer(nn.Module):
    """T 500, F 48, patch 10, width 64, 4 heads, 2 layers, feed-forward 256."""

    kind = "transformer"

    def __init__(self, normalise: Normalise, width: int = 64, heads: int = 4, layers: int = 2) -> None:
        """Make the layers."""
        super().__init__()
        self.normalise = normalise
        self.embed = nn.Linear(N_FEATURES * PATCH_ROWS, width)
        self.positions = nn.Parameter(torch.randn(1, TOKENS, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, last=i == layers - 1) for i in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, N_CLASSES)

    def logits(self, rows: Tensor) -> Tensor:
        """Return unnormalised log probabilities, (batch, 3)."""
        patches = self.normalise(rows).reshape(-1, TOKENS, PATCH_ROWS * N_FEATURES)
        out: Tensor = self.head(self.norm(self.blocks(self.embed(patches) + self.positions))[:, 0])
        return out

    def forward(self, rows: Tensor) -> Tensor:
        """Return probabilities of down, flat and up, (batch, 3)."""
        return torch.softmax(self.logits(rows), -1)


class Lstm(nn.Module):
    """Patches of ten rows, embedded in 32, through one LSTM layer of 32."""

    kind = "lstm"

    def __init__(self, normalise: Normalise, width: int = 32) -> None:
        """Make the layers."""
        super().__init__()
        self.normalise = normalise
        self.embed = nn.Linear(N_FEATURES * PATCH_ROWS, width)
        self.recurrent = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, N_CLASSES)

    def logits(self, rows: Tensor) -> Tensor:
        """Return unnormalised log probabilities, (batch, 3)."""
        patches = self.normalise(rows).reshape(-1, TOKENS, PATCH_ROWS * N_FEATURES)
        _, (hidden, _) = self.recurrent(functional.gelu(self.embed(patches)))
        out: Tensor = self.head(hidden[0])
        return out

    def forward(self, rows: Tensor) -> Tensor:
        """Return probabilities of down, flat and up, (batch, 3)."""
        return torch.softmax(self.logits(rows), -1)


Network = Transformer | Lstm
NETWORKS: dict[str, type[Transformer] | type[Lstm]] = {"transformer": Transformer, "lstm": Lstm}
