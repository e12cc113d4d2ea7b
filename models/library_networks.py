#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports networks of libraries with random weights, for scripts/check_networks.py.

usage: library_networks.py torchvision|torchaudio|timm|transformers|ultralytics OUT_DIR [NAME ...]

library_networks.json names the networks: those of torchvision with the shapes of their inputs, those of timm with the size of
their images, those of ultralytics with their configuration file and the size of their images, small ones of torchaudio and
transformers with their configuration ("like": with the settings of that set). NAME.npz next to an
archive holds inputs in0.., the results out0.. that torch computed, and calibration samples calib0... Norms, scales and
projections get weights that differ from one another, as in trained networks. Existing archives are kept.

Needs torch >= 2.9, NumPy and the library (Debian: python3-torch, python3-numpy, python3-torchvision).
"""
import importlib
import json
import os
import signal
import sys
import warnings

import numpy as np
import torch
from torch import nn

SECONDS = 600  # for one network
SAMPLES = {"torchvision": 2, "torchaudio": 4, "timm": 2, "transformers": 4, "ultralytics": 2}
# What a network of transformers returns, by preference.
RESULTS = ("logits", "last_hidden_state", "predicted_depth", "reconstruction", "prediction_outputs", "prediction_logits",
           "audio_values", "waveform")


class Returning(nn.Module):
    """A network whose result is a tensor or a tuple of tensors."""

    def __init__(self, network, results, names=None, arguments=None):
        super().__init__()
        self.network = network
        self.results = results
        self.names = names
        self.arguments = arguments or {}

    def forward(self, *inputs):
        if self.names is None:
            return self.results(self.network(*inputs))
        return self.results(self.network(**dict(zip(self.names, inputs)), **self.arguments))


def tensors_of(output):
    """The main result of a network of transformers; of detectors also the boxes."""
    if isinstance(output, torch.Tensor):
        return output
    for name in RESULTS:
        result = getattr(output, name, None)
        if result is not None:
            boxes = getattr(output, "pred_boxes", None)
            return result if boxes is None else (result, boxes)
    if isinstance(output, (tuple, list)):
        return tensors_of(output[0])
    return tensors_of(tuple(v for v in output.values() if isinstance(v, torch.Tensor)))


class Detector(nn.Module):
    """A detector of torchvision without the selection of boxes, whose number depends on the image."""

    def __init__(self, detector):
        super().__init__()
        self.backbone, self.head = detector.backbone, detector.head

    def forward(self, image):
        features = self.backbone(image)
        results = self.head(list(features.values()) if isinstance(features, dict) else [features])
        return tuple(results[key] for key in sorted(results))


def vary(network):
    """Weights that are not all alike."""
    for module in network.modules():
        weight = getattr(module, "weight", None)
        if isinstance(module, (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._BatchNorm)) and weight is not None:
            weight.data = 1 + 0.2 * torch.randn_like(weight)
            if module.bias is not None:
                module.bias.data = 0.1 * torch.randn_like(module.bias)
        if isinstance(getattr(module, "running_mean", None), torch.Tensor):
            module.running_mean = 0.1 * torch.randn_like(module.running_mean)
            module.running_var = torch.rand_like(module.running_var) + 0.5
    return network


def of_torchvision(name, shapes):
    models = importlib.import_module("torchvision.models")
    options = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options.update(init_weights=True, aux_logits=False)
    segments = name.startswith(("deeplab", "lraspp", "fcn"))
    detects = name.startswith(("ssd", "retinanet", "fcos"))
    if segments or detects:
        options["weights_backbone"] = None
    if name != "raft_small":
        options["num_classes"] = 10
    network = vary(models.get_model(name, **options)).eval()
    results = {"raft_small": lambda flows: flows[-1]}.get(name, lambda output: output)
    if segments:
        results = lambda output: output["out"]  # noqa: E731
    network = Detector(network) if detects else network
    arguments = {"num_flow_updates": 2} if name == "raft_small" else {}
    names = ("image1", "image2") if name == "raft_small" else None
    return Returning(network, results, names, arguments), lambda: tuple(smooth(shape) for shape in shapes)


def of_timm(name, size):
    timm = importlib.import_module("timm")
    try:  # transformers have a size, convolutions take any
        network = timm.create_model(name, num_classes=10, exportable=True, img_size=size)
    except TypeError:
        network = timm.create_model(name, num_classes=10, exportable=True)
    for parameter_name, parameter in network.named_parameters():
        # Scales of residual branches start at 0, or close to it.
        if parameter.ndim <= 1 and parameter.abs().max() < 1e-3 and parameter_name.endswith(("gamma", "scale", "weight")):
            parameter.data.uniform_(0.1, 0.3)
    return Returning(vary(network), lambda output: output), lambda: (smooth((1, 3, size, size)),)


def settings_of(entry):
    return dict(SETS.get(entry.get("like"), {}), **entry.get("settings", {}))


def of_transformers(name, entry):
    transformers = importlib.import_module("transformers")
    config = getattr(transformers, entry["config"])(**settings_of(entry))
    config._attn_implementation = "eager" if len(name) % 3 == 0 else "sdpa"
    make = getattr(transformers, entry["model"])
    try:
        network = make(config)
    except (ValueError, NotImplementedError):  # no sdpa
        config._attn_implementation = "eager"
        network = make(config)
    vary(network)
    for module in network.modules():
        weight = getattr(module, "weight", None)
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d)):
            weight.data = torch.randn_like(weight) / weight[0].numel() ** 0.5
        elif isinstance(module, nn.Embedding):
            weight.data = 0.5 * torch.randn_like(weight)
    inputs = entry["inputs"]
    return (Returning(network, tensors_of, tuple(inputs), entry.get("arguments")),
            lambda: tuple(drawn(*kind) for kind in inputs.values()))


def of_torchaudio(_, entry):
    models = importlib.import_module("torchaudio.models")
    network = vary(getattr(models, entry["model"])(**settings_of(entry)))
    inputs = entry["inputs"]
    arguments = {name: torch.tensor(values) for name, values in entry.get("arguments", {}).items()}
    return Returning(network, tensors_of, tuple(inputs), arguments), lambda: tuple(drawn(*kind) for kind in inputs.values())


def flattened(output):
    """The tensors in nested tuples."""
    if isinstance(output, torch.Tensor):
        return (output,)
    return tuple(tensor for part in output for tensor in flattened(part))


def of_ultralytics(_, entry):
    tasks = importlib.import_module("ultralytics.nn.tasks")
    network = vary(getattr(tasks, entry["model"])(entry["config"], verbose=False))
    network.model[-1].export = True
    network.model[-1].format = "torchscript"  # results that are decoded, without what depends on the runtime
    size = entry["size"]
    return Returning(network, flattened), lambda: (smooth((1, 3, size, size)),)


def drawn(kind, shape, high=0):
    """An input: "tokens" below `high`, "ones", or else normally distributed numbers."""
    if kind == "tokens":
        return torch.randint(1, high, shape)
    return torch.ones(shape) if kind == "ones" else torch.randn(shape)


def smooth(shape):
    """Images, or videos, with structure of several sizes."""
    coarse = [max(1, s // 8) for s in shape[-2:]]
    images = torch.randn(int(np.prod(shape[:-2])), 1, *coarse)
    images = nn.functional.interpolate(images, size=shape[-2:], mode="bicubic")
    return images.reshape(shape) + 0.2 * torch.randn(shape)


def export(library, name, entry, path):
    torch.manual_seed(0)
    network, draw = MAKERS[library](name, entry)
    network.eval()
    torch.manual_seed(1)
    samples = [draw() for _ in range(SAMPLES[library])]
    with torch.no_grad():
        results = network(*samples[0])
        program = torch.export.export(network, samples[0], strict=False)
    torch.export.save(program, path + ".pt2")
    arrays = {f"in{i}": x.numpy() for i, x in enumerate(samples[0])}
    for i in range(len(samples[0])):
        arrays[f"calib{i}"] = np.stack([sample[i].numpy() for sample in samples])
    for i, result in enumerate([results] if isinstance(results, torch.Tensor) else results):
        arrays[f"out{i}"] = result.numpy()
    np.savez(path + ".npz", **arrays)


def main():
    library, folder, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    importlib.import_module(library)  # once, for all networks
    failed = 0
    for name, entry in NETWORKS[library].items():
        path = os.path.join(folder, name)
        if (names and name not in names) or os.path.exists(path + ".npz"):
            continue
        child = os.fork()  # gives back its memory, and may fail
        if child == 0:
            signal.alarm(SECONDS)
            try:
                export(library, name, entry, path)
            except Exception as error:  # pylint: disable=broad-except
                print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
                os._exit(1)
            os._exit(0)
        failed += os.waitpid(child, 0)[1] != 0
    return 1 if failed else 0


MAKERS = {"torchvision": of_torchvision, "torchaudio": of_torchaudio, "timm": of_timm, "transformers": of_transformers,
          "ultralytics": of_ultralytics}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "library_networks.json"), encoding="utf-8") as file:
    NETWORKS = json.load(file)
SETS = NETWORKS.pop("sets")

if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    if len(sys.argv) < 3 or sys.argv[1] not in NETWORKS:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    sys.exit(main())
