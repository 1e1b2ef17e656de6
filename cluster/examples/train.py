#!/usr/bin/env python3
"""A small but real training run: a network with one hidden layer learns to tell two interleaved half-moons apart.

Needs only numpy. Prints loss and accuracy, writes them as TensorBoard event files and, with --mlruns, as a run in a
folder that MLflow reads. Exits 1 if the network did not learn (accuracy on unseen points below 0.9, where guessing
gives 0.5).
"""
import argparse
import json
import os
import pathlib
import socket
import struct
import sys
import time
import uuid

import numpy as np


class EventFile:
    """TensorBoard's event file: records of length, checksum, data, checksum; the data is an Event message of
    protocol buffers. Only scalars are needed, so the few fields are encoded by hand."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        self.file = open(os.path.join(folder, name), "wb")
        self.write(field(3, 2, b"brain.Event:2"))

    def scalars(self, step, **values):
        """Names may contain two underscores for a slash: loss__train becomes loss/train."""
        summary = b"".join(
            field(1, 2, field(1, 2, name.replace("__", "/").encode()) + field(2, 5, struct.pack("<f", value)))
            for name, value in values.items())
        self.write(field(2, 0, varint(step)) + field(5, 2, summary))

    def write(self, event):
        event = field(1, 1, struct.pack("<d", time.time())) + event
        length = struct.pack("<Q", len(event))
        self.file.write(length + checksum(length) + event + checksum(event))
        self.file.flush()  # so that a board shows it while the job runs


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, kind, data):
    """Kinds: 0 a number as varint, 1 eight bytes, 2 bytes with their length in front, 5 four bytes."""
    return varint(number << 3 | kind) + (varint(len(data)) if kind == 2 else b"") + data


def crc32c_table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


CRC32C = list(crc32c_table())


def checksum(data):
    """CRC-32C, rotated and shifted by a constant as the format wants it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


class MlflowRun:
    """A run in MLflow's folder of files: mlruns/EXPERIMENT/RUN with a description, and a small file for each
    parameter, tag and metric. The folder can be opened with MLflow while the run goes on."""

    def __init__(self, folder, name, parameters):
        self.name, self.id, self.begin = name, uuid.uuid4().hex, int(time.time() * 1000)
        experiment = pathlib.Path(folder).absolute() / "1"
        self.folder = experiment / self.id
        for part in ("params", "tags", "metrics", "artifacts"):
            os.makedirs(self.folder / part)
        if not (experiment / "meta.yaml").exists():
            describe(experiment, name="moons", experiment_id="1", artifact_location=experiment.as_uri(),
                     lifecycle_stage="active", creation_time=self.begin, last_update_time=self.begin)
        for key, value in parameters.items():
            (self.folder / "params" / key).write_text(str(value))
        (self.folder / "tags" / "mlflow.runName").write_text(name)
        self.status(1)

    def status(self, status, end=None):
        """1: running, 3: finished, 4: failed."""
        describe(self.folder, run_id=self.id, run_uuid=self.id, run_name=self.name, experiment_id="1", user_id="",
                 artifact_uri=(self.folder / "artifacts").as_uri(), lifecycle_stage="active", status=status,
                 start_time=self.begin, end_time=end)

    def metrics(self, step, **values):
        for key, value in values.items():
            with open(self.folder / "metrics" / key, "a") as file:
                file.write(f"{int(time.time() * 1000)} {value} {step}\n")

    def end(self, learned):
        self.status(3 if learned else 4, end=int(time.time() * 1000))


def describe(folder, **values):
    """Values are written as JSON, which YAML reads as well; renamed, so that nobody reads half a file."""
    (folder / "meta.new").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in values.items()))
    os.replace(folder / "meta.new", folder / "meta.yaml")


def moons(random, count):
    """Points on two half circles, with some noise, and which of the two each is on."""
    angle = random.uniform(0, np.pi, count)
    second = random.integers(0, 2, count)
    x = np.where(second, 1 - np.cos(angle), np.cos(angle))
    y = np.where(second, 0.5 - np.sin(angle), np.sin(angle))
    return np.stack([x, y], 1) + random.normal(0, 0.15, (count, 2)), second.astype(float)


class Network:
    def __init__(self, random, hidden):
        self.weights = [random.normal(0, 1, (2, hidden)), np.zeros(hidden),
                        random.normal(0, hidden**-0.5, hidden), np.zeros(())]

    def forward(self, points):
        w1, b1, w2, b2 = self.weights
        hidden = np.tanh(points @ w1 + b1)
        return hidden, 1 / (1 + np.exp(-(hidden @ w2 + b2)))

    def learn(self, points, labels, rate):
        """One step down the gradient of the cross-entropy."""
        hidden, guess = self.forward(points)
        out = (guess - labels) / len(labels)
        back = np.outer(out, self.weights[2]) * (1 - hidden**2)
        gradients = [points.T @ back, back.sum(0), hidden.T @ out, out.sum()]
        self.weights = [weight - rate * gradient for weight, gradient in zip(self.weights, gradients)]

    def judge(self, points, labels):
        guess = np.clip(self.forward(points)[1], 1e-9, 1 - 1e-9)
        loss = -np.mean(labels * np.log(guess) + (1 - labels) * np.log(1 - guess))
        return loss, np.mean((guess > 0.5) == labels)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--logdir", default="runs/moons", help="folder for the event file")
    options.add_argument("--mlruns", help="folder for MLflow's runs")
    options.add_argument("--epochs", type=int, default=40)
    options.add_argument("--learning-rate", type=float, default=0.5)
    options.add_argument("--hidden", type=int, default=16, help="size of the hidden layer")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--pause", type=float, default=0, help="seconds to wait after each epoch, to watch it live")
    options = options.parse_args()

    random = np.random.default_rng(options.seed)
    train, test = moons(random, 2000), moons(random, 1000)
    network, events = Network(random, options.hidden), EventFile(options.logdir)
    run = None
    if options.mlruns:
        run = MlflowRun(options.mlruns, os.path.basename(options.logdir), {
            "learning_rate": options.learning_rate, "hidden": options.hidden, "epochs": options.epochs})
    for epoch in range(options.epochs + 1):
        train_loss, _ = network.judge(*train)
        loss, accuracy = network.judge(*test)
        print(f"epoch {epoch:3d}  loss {loss:.4f}  accuracy {accuracy:.4f}", flush=True)
        events.scalars(epoch, loss__train=train_loss, loss__test=loss, accuracy=accuracy)
        if run:
            run.metrics(epoch, loss_train=train_loss, loss_test=loss, accuracy=accuracy)
        order = random.permutation(len(train[1]))
        for batch in np.array_split(order, 40):
            network.learn(train[0][batch], train[1][batch], options.learning_rate)
        time.sleep(options.pause)
    if run:
        weights = "".join(f"{weight.tolist()}\n" for weight in network.weights)
        (run.folder / "artifacts" / "weights.txt").write_text(weights)
        run.end(learned=accuracy >= 0.9)
    if accuracy < 0.9:
        sys.exit(f"did not learn: accuracy {accuracy:.4f}")
    print(f"learned: accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
