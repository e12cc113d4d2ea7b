#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small decoder on the texts of a Debian system and exports it, one token a call, with its cache as state; and
again for several tokens a call, with the same cache: what reads a prompt.

usage: language.py train WORK_DIR [--minutes 30] [--root /]  tokenizer, weights and text as tokens into WORK_DIR
       language.py export WORK_DIR OUT_DIR [--prefill 16]     language.pt2, language.npz (calibration), language_prefill.pt2
                                                              and .npz (the same text, 16 tokens a call), language_eval.npz
                                                              (held-out text), language_tokenizer.json
       language.py tiny OUT_DIR [--prefill 4]                 the same of an untrained network with single bytes as tokens
       language.py perplexity EVAL.npz OUT.npz                of what `carina run` made of the held-out text

The text is man pages of sections 1, 5, 7 and 8 and the licences of /usr/share/common-licenses. Most of it is under the GNU
GPL or FDL, the licences themselves may be copied verbatim; nothing of it is stored but the tokenizer's merges, the samples in
the .npz files and the held-out text. Needs torch >= 2.9 (Debian: python3-torch).
"""
import argparse
import gzip
import io
import json
import math
import os
import random
import re
import time
import zipfile
from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

VOCAB, WIDTH, LAYERS, HEADS, KV_HEADS, HIDDEN, CONTEXT = 1024, 128, 4, 4, 2, 352, 128
END = 0  # <|end|>: separates texts and ends a reply
HEAD = WIDTH // HEADS


# Text -------------------------------------------------------------------------------------------------------------------------

def plain(page):
    """A man page's source without its macros."""
    lines = []
    for line in page.split("\n"):
        if re.match(r"[.'](\\\"|TH|de|if|ie|el|ds|nr|so|\.)", line) or line.startswith("'\\\""):
            continue
        heading = re.match(r"\.S[HS]\s+(.*)", line)
        if heading:
            line = "\n" + heading.group(1).strip('"')
        elif re.match(r"[.']\s*\w\w?\s*$", line):
            line = ""
        else:
            line = re.sub(r"^[.']\s*\w\w?\s+", "", line)
        line = re.sub(r"\\f[BIRPC]|\\f\(..|\\f\[[^]]*\]|\\m\[[^]]*\]|\\&|\\/|\\,|\\c|\\s[-+]?\d", "", line)
        for escape, text in ((r"\-", "-"), (r"\e", "\\"), (r"\(aq", "'"), (r"\(cq", "'"), (r"\(oq", "'"), (r"\(dq", '"'),
                             (r"\(bu", "*"), (r"\(lq", '"'), (r"\(rq", '"'), (r"\(co", "(C)"), (r"\ ", " "), (r"\~", " ")):
            line = line.replace(escape, text)
        lines.append(line.rstrip())
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return text if "\\" not in text[:2000] or text.count("\\") < len(text) / 200 else ""


def texts(root, most):
    """Texts in a fixed, mixed order, up to `most` bytes."""
    paths = []
    for section in ("man1", "man5", "man7", "man8"):
        folder = os.path.join(root, "usr/share/man", section)
        paths += [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".gz")]
    random.Random(1).shuffle(paths)
    licences = os.path.join(root, "usr/share/common-licenses")
    result, size, seen = [], 0, set()
    for name in sorted(os.listdir(licences)):
        path = os.path.join(licences, name)
        if not os.path.islink(path):
            result.append(open(path, encoding="utf-8", errors="ignore").read())
    for path in paths:
        if size >= most:
            break
        try:
            text = plain(gzip.open(path, "rt", encoding="utf-8", errors="ignore").read())
        except OSError:
            continue
        if len(text) < 400 or text[:300] in seen or not text.isascii():
            continue
        seen.add(text[:300])
        result.append(text[:20000])
        size += len(result[-1])
    return result


# Tokenizer --------------------------------------------------------------------------------------------------------------------

# GPT-2's, for ASCII.
SPLIT = re.compile(r"'(?:[stmd]|re|ve|ll)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def alphabet():
    """GPT-2's visible character for every byte."""
    visible = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    letters, free = {b: chr(b) for b in visible}, 256
    for b in range(256):
        if b not in letters:
            letters[b], free = chr(free), free + 1
    return letters


def train_tokenizer(corpus):
    """Byte-level BPE: merges, most frequent pair first."""
    words = Counter()
    for text in corpus:
        words.update(SPLIT.findall(text))
    pieces = {word: [bytes([b]) for b in word.encode()] for word, n in words.items() if n > 1}
    merges = []
    while 1 + 256 + len(merges) < VOCAB:
        pairs = Counter()
        for word, parts in pieces.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += words[word]
        (left, right), _ = max(pairs.items(), key=lambda item: (item[1], item[0]))
        merges.append((left, right))
        for parts in pieces.values():
            i = 0
            while i + 1 < len(parts):
                if parts[i] == left and parts[i + 1] == right:
                    parts[i:i + 2] = [left + right]
                i += 1
    return merges


class Tokenizer:
    def __init__(self, merges):
        self.ranks = {pair: i for i, pair in enumerate(merges)}
        self.tokens = [b"<|end|>"] + [bytes([b]) for b in range(256)] + [a + b for a, b in merges]
        self.ids = {token: i for i, token in enumerate(self.tokens) if i > 0}
        self.cache = {}

    def word(self, word):
        parts = [bytes([b]) for b in word.encode()]
        while len(parts) > 1:
            pairs = list(zip(parts, parts[1:]))
            best = min(pairs, key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if best not in self.ranks:
                break
            i = pairs.index(best)
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        return [self.ids[part] for part in parts]

    def encode(self, text):
        result = []
        for word in SPLIT.findall(text):
            if word not in self.cache:
                self.cache[word] = self.word(word)
            result += self.cache[word]
        return result

    def json(self):
        """As Hugging Face's tokenizers store it."""
        letters = alphabet()
        show = lambda token: "".join(letters[b] for b in token)
        vocab = {show(token): i for i, token in enumerate(self.tokens) if i > 0}
        vocab["<|end|>"] = END
        return {"version": "1.0",
                "added_tokens": [{"id": END, "content": "<|end|>", "single_word": False, "lstrip": False, "rstrip": False,
                                  "normalized": False, "special": True}],
                "normalizer": None,
                "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                    "pair": [], "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [END], "tokens": ["<|end|>"]}}},
                "decoder": {"type": "ByteLevel"},
                "model": {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": False, "vocab": vocab,
                          "merges": [[show(a), show(b)] for a, b in self.ranks]}}


# Network ----------------------------------------------------------------------------------------------------------------------

class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return F.rms_norm(x, (WIDTH,), self.weight, 1e-5)


def rotated(x, cos, sin):
    a, b = x[..., :HEAD // 2], x[..., HEAD // 2:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(WIDTH, HEADS * HEAD, bias=False)
        self.k = nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.v = nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.o = nn.Linear(HEADS * HEAD, WIDTH, bias=False)

    def project(self, x, cos, sin):
        n, length, _ = x.shape
        q = rotated(self.q(x).view(n, length, HEADS, HEAD).transpose(1, 2), cos, sin)
        k = rotated(self.k(x).view(n, length, KV_HEADS, HEAD).transpose(1, 2), cos, sin)
        return q, k, self.v(x).view(n, length, KV_HEADS, HEAD).transpose(1, 2)

    def attend(self, q, k, v, mask):
        n, _, length, _ = q.shape
        q = q.reshape(n, KV_HEADS, HEADS // KV_HEADS * length, HEAD) * HEAD ** -0.5
        scores = (q @ k.transpose(2, 3)).view(n, HEADS, length, k.shape[2])
        weights = torch.softmax(scores + mask, -1).view(n, KV_HEADS, HEADS // KV_HEADS * length, k.shape[2])
        return self.o((weights @ v).view(n, HEADS, length, HEAD).transpose(1, 2).reshape(n, length, WIDTH))

    def forward(self, x, cos, sin, mask):
        q, k, v = self.project(x, cos, sin)
        return self.attend(q, k, v, mask)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2 = Norm(), Attention(), Norm()
        self.gate, self.up = nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def feed(self, x):
        x = self.norm2(x)
        return self.down(F.silu(self.gate(x)) * self.up(x))

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.norm1(x), cos, sin, mask)
        return x + self.feed(x)


class Decoder(nn.Module):
    """All positions of a text at once: for training."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = Norm()
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.05)
        angles = torch.arange(CONTEXT)[:, None] * 10000.0 ** (-torch.arange(0, HEAD, 2) / HEAD)
        self.register_buffer("cos", torch.cos(angles), persistent=False)
        self.register_buffer("sin", torch.sin(angles), persistent=False)
        hidden = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)
        self.register_buffer("mask", torch.zeros(CONTEXT, CONTEXT).masked_fill(hidden, -1000.0), persistent=False)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos[:length], self.sin[:length], self.mask[:length, :length])
        return self.head(self.norm(x))


class Stepper(nn.Module):
    """Tokens [1, N] at positions [N] to logits [1, 1, VOCAB] behind the last; keys and values of what came before are
    state."""

    def __init__(self, decoder):
        super().__init__()
        self.m = decoder
        for i in range(LAYERS):
            self.register_buffer(f"k{i}", torch.zeros(1, KV_HEADS, CONTEXT, HEAD), persistent=False)
            self.register_buffer(f"v{i}", torch.zeros(1, KV_HEADS, CONTEXT, HEAD), persistent=False)

    def forward(self, tokens, positions):
        m = self.m
        x = m.embedding(tokens)
        cos, sin, mask = m.cos[positions], m.sin[positions], m.mask[positions]
        for i, block in enumerate(m.blocks):
            q, k, v = block.attention.project(block.norm1(x), cos, sin)
            keys, values = getattr(self, f"k{i}"), getattr(self, f"v{i}")
            keys[:, :, positions] = k
            values[:, :, positions] = v
            x = x + block.attention.attend(q, keys, values, mask)
            x = x + block.feed(x)
        if tokens.shape[1] > 1:
            x = x[:, -1:]
        return m.head(m.norm(x))


# Commands ---------------------------------------------------------------------------------------------------------------------

def perplexity(decoder, tokens):
    """Of token i + 1 given those before it in its window of CONTEXT tokens."""
    total, count = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(tokens) - CONTEXT, CONTEXT):
            window = torch.tensor([tokens[start:start + CONTEXT]])
            losses = F.cross_entropy(decoder(window)[0, :-1], window[0, 1:], reduction="sum")
            total, count = total + losses.item(), count + CONTEXT - 1
    return math.exp(total / count)


def train(args):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    corpus = texts(args.root, 12 << 20)
    held_out = corpus[20::50]
    corpus = [text for i, text in enumerate(corpus) if i < 20 or (i - 20) % 50]
    tokenizer = Tokenizer(train_tokenizer(corpus))
    encode = lambda list_: [token for text in list_ for token in [END] + tokenizer.encode(text)]
    tokens, valid = torch.tensor(encode(corpus)), encode(held_out)
    decoder = Decoder()
    print(f"{len(tokens)} tokens, {sum(p.numel() for p in decoder.parameters())} parameters", flush=True)
    optimizer = torch.optim.AdamW(decoder.parameters(), 3e-3, (0.9, 0.95), weight_decay=0.05)
    start, step, batch, generator = time.process_time(), 0, 32, torch.Generator().manual_seed(2)
    while True:
        done = (time.process_time() - start) / (60 * args.minutes)
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1, (step + 1) / 50) * (0.02 + 0.98 * (0.5 + 0.5 * math.cos(math.pi * done)))
        starts = torch.randint(len(tokens) - CONTEXT - 1, (batch,), generator=generator)
        window = torch.stack([tokens[s:s + CONTEXT + 1] for s in starts])
        with torch.autocast("cpu", torch.bfloat16):
            logits = decoder(window[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step}, {100 * done:.0f} %, loss {loss.item():.3f}", flush=True)
    decoder.eval()
    print(f"held out: perplexity {perplexity(decoder, valid[:40 * CONTEXT]):.2f}")
    os.makedirs(args.work, exist_ok=True)
    torch.save(decoder.state_dict(), os.path.join(args.work, "weights.pt"))
    with open(os.path.join(args.work, "tokenizer.json"), "w") as file:
        json.dump(tokenizer.json(), file, ensure_ascii=True, indent=0)
    np.savez(os.path.join(args.work, "tokens.npz"), train=tokens.numpy()[:100000], valid=np.array(valid))


def save_archive(program, path):
    """torch.export.save, with its members deflated: weights rounded to bfloat16 take half the room."""
    stored = io.BytesIO()
    torch.export.save(program, stored)
    with zipfile.ZipFile(stored) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for member in source.infolist():
            if ".data/serialization_id" in member.filename:
                continue
            entry = zipfile.ZipInfo(member.filename, (2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, source.read(member))


def export(args):
    tokens = np.load(os.path.join(args.work, "tokens.npz"))
    decoder = Decoder().eval()
    state = torch.load(os.path.join(args.work, "weights.pt"))
    decoder.load_state_dict({name: tensor.bfloat16().float() for name, tensor in state.items()})
    for parameter in decoder.parameters():
        parameter.requires_grad_(False)
    os.makedirs(args.out, exist_ok=True)
    if CONTEXT % args.prefill:
        raise SystemExit(f"--prefill {args.prefill} does not divide the context, {CONTEXT} tokens")
    for name, count in (("language", 1), ("language_prefill", args.prefill)):
        example = (torch.zeros(1, count, dtype=torch.int64), torch.arange(count))
        save_archive(torch.export.export(Stepper(decoder), example), os.path.join(args.out, name + ".pt2"))

    def calls(texts, name, count=1):
        """Texts of CONTEXT tokens one after the other, `count` tokens a call."""
        places = np.tile(np.arange(texts.shape[1]), len(texts))
        return {name + "0": texts.reshape(-1, 1, count), name + "1": places.reshape(-1, count)}

    train_tokens = tokens["train"].astype(np.int64)
    some = np.stack([train_tokens[s:s + CONTEXT] for s in (0, 33000, 66000)])
    np.savez_compressed(os.path.join(args.out, "language.npz"), **calls(some, "calib"))
    np.savez_compressed(os.path.join(args.out, "language_prefill.npz"), **calls(some, "calib", args.prefill))
    valid = tokens["valid"].astype(np.int64)
    held = valid[:len(valid) // CONTEXT * CONTEXT].reshape(-1, CONTEXT)[::4][:10]
    with torch.no_grad():
        logits = torch.cat([decoder(torch.tensor(row[None].astype(np.int64))) for row in held])
        losses = F.cross_entropy(logits[:, :-1].flatten(0, 1), torch.tensor(held[:, 1:].astype(np.int64)).flatten())
    print(f"held-out windows: perplexity {math.exp(losses.item()):.3f}")
    np.savez_compressed(os.path.join(args.out, "language_eval.npz"), **calls(held, "in"))
    with open(os.path.join(args.work, "tokenizer.json")) as file, \
            open(os.path.join(args.out, "language_tokenizer.json"), "w") as copy:
        copy.write(file.read())


def tiny(args):
    globals().update(VOCAB=257, WIDTH=32, LAYERS=2, HIDDEN=64, CONTEXT=16, HEAD=8)
    torch.manual_seed(4)
    args.work = args.out
    os.makedirs(args.out, exist_ok=True)
    decoder, tokenizer = Decoder(), Tokenizer([])
    with torch.no_grad():
        for parameter in decoder.parameters():
            if parameter.ndim == 2:
                parameter.mul_(4)
    torch.save(decoder.state_dict(), os.path.join(args.out, "weights.pt"))
    with open(os.path.join(args.out, "tokenizer.json"), "w") as file:
        json.dump(tokenizer.json(), file, ensure_ascii=True, indent=0)
    with open("/usr/share/common-licenses/GPL-3") as file:
        tokens = np.array(tokenizer.encode(file.read()[:12000]))
    np.savez(os.path.join(args.out, "tokens.npz"), train=np.resize(tokens, 100000), valid=tokens[:2000])
    export(args)


def measure(args):
    tokens = np.load(args.eval)["in0"].reshape(-1, CONTEXT)
    logits = np.load(args.out)["out0"].reshape(-1, CONTEXT, VOCAB)[:, :-1].astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    chosen = np.take_along_axis(logits, tokens[:, 1:, None], 2)[..., 0]
    print(f"perplexity {math.exp(-np.mean(chosen - np.log(np.exp(logits).sum(-1)))):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("train")
    command.add_argument("work")
    command.add_argument("--minutes", type=float, default=30)
    command.add_argument("--root", default="/")
    command = commands.add_parser("export")
    command.add_argument("work")
    command.add_argument("out")
    command.add_argument("--prefill", type=int, default=16, help="tokens a call of language_prefill.pt2")
    command = commands.add_parser("tiny")
    command.add_argument("out")
    command.add_argument("--prefill", type=int, default=4)
    command = commands.add_parser("perplexity")
    command.add_argument("eval")
    command.add_argument("out")
    args = parser.parse_args()
    {"train": train, "export": export, "tiny": tiny, "perplexity": measure}[args.command](args)


if __name__ == "__main__":
    main()
