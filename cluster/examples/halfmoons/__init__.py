"""Two interleaved half-moons, and a small network that learns to tell them apart. Needs nothing but Python."""
import csv
import json
import math
import os
import random

__version__ = "1.0"


def load(folder):
    """All points of a folder: [(x, y, which), …] for training, and the same for testing."""
    sets = []
    for part in ("train", "test"):
        points = []
        for name in sorted(os.listdir(os.path.join(folder, part))):
            with open(os.path.join(folder, part, name), newline="") as file:
                points += [(float(x), float(y), int(which)) for x, y, which in csv.reader(file)]
        sets.append(points)
    return sets


def points(seed, count):
    """Points on two half circles, with some noise, and which of the two each is on."""
    dice = random.Random(seed)
    for _ in range(count):
        angle, which = dice.uniform(0, math.pi), dice.randrange(2)
        x = 1 - math.cos(angle) if which else math.cos(angle)
        y = 0.5 - math.sin(angle) if which else math.sin(angle)
        yield x + dice.gauss(0, 0.15), y + dice.gauss(0, 0.15), which


class Network:
    """One hidden layer. `hidden` is its size."""

    def __init__(self, hidden=12, seed=1):
        dice = random.Random(seed)
        self.epoch = 0
        self.cells = [[dice.gauss(0, 1.5), dice.gauss(0, 1.5), dice.gauss(0, 1), dice.gauss(0, hidden**-0.5)]
                      for _ in range(hidden)]
        self.bias = 0.0

    def guess(self, x, y):
        lit = [math.tanh(a * x + b * y + c) for a, b, c, _ in self.cells]
        total = self.bias + sum(cell[3] * one for cell, one in zip(self.cells, lit))
        return lit, 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))

    def learn(self, data, rate):
        """Each point once, in an order that depends on nothing but the number of the epoch."""
        order = list(data)
        random.Random(self.epoch).shuffle(order)
        for x, y, which in order:
            lit, guess = self.guess(x, y)
            wrong = (guess - which) * rate
            for cell, one in zip(self.cells, lit):
                back = wrong * cell[3] * (1 - one * one)
                cell[0] -= back * x
                cell[1] -= back * y
                cell[2] -= back
                cell[3] -= wrong * one
            self.bias -= wrong
        self.epoch += 1

    def judge(self, data):
        """Loss and accuracy."""
        loss = right = 0
        for x, y, which in data:
            guess = min(max(self.guess(x, y)[1], 1e-9), 1 - 1e-9)
            loss -= math.log(guess if which else 1 - guess)
            right += (guess > 0.5) == bool(which)
        return loss / len(data), right / len(data)

    def save(self, path):
        with open(path + ".new", "w") as file:
            json.dump({"epoch": self.epoch, "cells": self.cells, "bias": self.bias}, file)
        os.replace(path + ".new", path)

    @classmethod
    def restore(cls, path):
        network = cls()
        with open(path) as file:
            network.__dict__.update(json.load(file))
        return network
