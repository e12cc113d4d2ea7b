#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the SentencePiece files of tests/data/tokenizer, and what SentencePiece itself makes of random texts.

usage: sentencepiece_files.py small FOLDER            the files of the tests, trained on the repository's documentation
       sentencepiece_files.py large FOLDER            larger ones with the maps that SentencePiece has built in, for a comparison at a desk
       sentencepiece_files.py texts MODEL N SEED OUT  N random texts and their tokens, as JSON

Needs Debian's python3-sentencepiece.
"""
import json
import random
import sys
from pathlib import Path

import sentencepiece

ROOT = Path(__file__).resolve().parent.parent

# Ligatures, full width, combining accents, characters that are removed, become a space or become several characters.
RULES = {
    "\ufb01": "fi", "\uff21": "A", "\uff22": "B", "\u3000": " ", "e\u0301": "\u00e9", "\u200b": "", "\t": " ", "\n": " ", "\r": "",
    "\u2026": "...", "\u00bd": " 1/2", "\u2163": "IV", "o\u0308": "\u00f6", "o\u0308\u0304": "\u022b",
}
WORDS = ["carina", "the ", " network", "  ", "\t", "\n", "NPU", "x", "42", "3.14", "don't", "\u00e9", "e\u0301", "\ufb01le", "\u3000", "\u200b",
         "\uff21\uff22", "\u2026", "\u00bd", "\u4e2d\u6587", "\U0001f600", "\u2581", "<s>", "</s>", "<unk>", "<|im_end|>", "<|im_start|>user", "<0x41>",
         "o\u0308\u0304", "o\u0308", "\u00c4\u00d6\u00dc", "\u2163", "quantize", "-", "--target", ".", "\u0000", "\uff76\uff9e", "\u0130", "\u1e9e", "=",
         "   ", "a\u0301\u0323", "\ufffd", "memory"]


def train(text, folder, name, **options):
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / name), num_threads=1, minloglevel=2, **options)
    (folder / (name + ".vocab")).unlink()


def documentation(folder):
    text = folder / "text.txt"
    pages = sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs" / "commands").glob("*.md"))
    text.write_text("".join(page.read_text() for page in pages))
    return text


def small(folder):
    rules = folder / "rules.tsv"
    codes = lambda text: " ".join(f"{ord(c):X}" for c in text)
    rules.write_text("".join(f"{codes(a)}\t{codes(b)}\n" for a, b in RULES.items()))
    text = documentation(folder)
    train(text, folder, "unigram", vocab_size=400, model_type="unigram", normalization_rule_tsv=str(rules),
          character_coverage=0.999, hard_vocab_limit=False, user_defined_symbols=["<|im_end|>"])
    train(text, folder, "bpe", vocab_size=640, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
          remove_extra_whitespaces=False, split_digits=True, character_coverage=0.999,
          user_defined_symbols=["<|im_start|>", "<|im_end|>", "<|im_end|>x", "   "])
    for name, seed in (("unigram", 1), ("bpe", 2)):
        texts(folder / (name + ".model"), 150, seed, folder / (name + ".json"))
    text.unlink()
    rules.unlink()


def large(folder):
    text = documentation(folder)
    for name, options in {
        "unigram_nfkc": dict(model_type="unigram", normalization_rule_name="nmt_nfkc"),
        "unigram_cf": dict(model_type="unigram", normalization_rule_name="nmt_nfkc_cf", byte_fallback=True,
                           user_defined_symbols=["<|im_end|>", "the"]),
        "unigram_suffix": dict(model_type="unigram", normalization_rule_name="nfkc", treat_whitespace_as_suffix=True),
        "bpe_nfkc": dict(model_type="bpe", normalization_rule_name="nfkc"),
        "bpe_llama": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True, split_digits=True,
                          remove_extra_whitespaces=False, allow_whitespace_only_pieces=True),
        "bpe_noprefix": dict(model_type="bpe", normalization_rule_name="nmt_nfkc_cf", add_dummy_prefix=False,
                             user_defined_symbols=["<|im_end|>", "tion", "  "]),
    }.items():
        train(text, folder, name, vocab_size=3000, character_coverage=0.9995, **options)
    text.unlink()


def random_text(choice, lines):
    text = ""
    for _ in range(choice.randrange(30)):
        kind = choice.randrange(4)
        if kind == 0:
            text += choice.choice(WORDS)
        elif kind == 1:
            line = choice.choice(lines)
            start = choice.randrange(len(line) + 1)
            text += line[start:start + choice.randrange(40)]
        elif kind == 2:
            text += chr(choice.choice([choice.randrange(32, 127), choice.randrange(160, 0x250), choice.randrange(0x300, 0x370),
                                       choice.randrange(0xff00, 0xfff0), choice.randrange(0x3040, 0x3100)]))
        else:
            text += " "
    return text


def texts(model, count, seed, out):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    choice = random.Random(seed)
    lines = (ROOT / "docs" / "architecture.md").read_text().splitlines()
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    entries = []
    for _ in range(count):
        text = random_text(choice, lines)
        entries.append(json.dumps({"text": text, "tokens": processor.encode(text)}, separators=(",", ":")))
    Path(out).write_text('{"bos":%d,"eos":%d,"pieces":%s,"texts":[\n%s\n]}\n' % (
        processor.bos_id(), processor.eos_id(), json.dumps(pieces, separators=(",", ":")), ",\n".join(entries)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["small"] and len(sys.argv) == 3:
        small(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["large"] and len(sys.argv) == 3:
        large(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["texts"] and len(sys.argv) == 6:
        texts(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        sys.exit(__doc__)
