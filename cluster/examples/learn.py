#!/usr/bin/env python3
"""A training as people do it on a cluster: a package from a wheel, data from an archive, results on the node's disk.

Needs the package halfmoons (the wheel is beside this file) and the data of moons.tar.gz, unpacked. Saves the network
after every epoch, goes on from there with --resume, and stops in good order when it is told to (SIGTERM).
"""
import argparse
import csv
import os
import signal
import sys
import time

import halfmoons

HERE = os.environ.get("SLURM_TMPDIR", ".")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", default=os.path.join(HERE, "data"), help="folder with the data")
    options.add_argument("--out", default=os.path.join(HERE, "results"), help="folder for the results")
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--lr", type=float, default=0.1, help="learning rate")
    options.add_argument("--resume", action="store_true", help="go on with the network in the folder for the results")
    options.add_argument("--pause", type=float, default=0, help="seconds to wait after each epoch, to watch it live")
    options = options.parse_args()

    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    train, test = halfmoons.load(options.data)
    os.makedirs(options.out, exist_ok=True)
    model = os.path.join(options.out, "model.json")
    network = halfmoons.Network.restore(model) if options.resume and os.path.exists(model) else halfmoons.Network()
    print(f"{len(train)} points to learn from, {len(test)} to test with, beginning at epoch {network.epoch}", flush=True)
    with open(os.path.join(options.out, "metrics.csv"), "a", newline="") as file:
        while True:
            loss, accuracy = network.judge(test)
            print(f"epoch {network.epoch:3d}  loss {loss:.4f}  accuracy {accuracy:.4f}", flush=True)
            csv.writer(file).writerow([network.epoch, f"{loss:.4f}", f"{accuracy:.4f}"])
            file.flush()
            network.save(model)
            if stop:
                sys.exit(f"stopped after epoch {network.epoch}; the network is saved")
            if network.epoch >= options.epochs:
                break
            network.learn(train, options.lr)
            time.sleep(options.pause)
    if accuracy < 0.9:
        sys.exit(f"did not learn: accuracy {accuracy:.4f}")
    print(f"learned: accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
