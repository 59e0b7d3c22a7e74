"""A process of a distributed run, with the class of torchmetrics and without: worker.py RANK FOLDER."""

import json
import sys
from pathlib import Path

import torch


def main(rank, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    compare(rank, folder, "torchmetrics")
    for name in [name for name in sys.modules if name.startswith("calibrant.torch")]:
        del sys.modules[name]
    sys.modules["torchmetrics"] = None
    compare(rank, folder, "plain")
    torch.distributed.destroy_process_group()


def compare(rank, folder, kind):
    from calibrant.torch import CalibrationError

    assert (CalibrationError.__mro__[1].__name__ == "PlainMetric") is (kind == "plain")
    torch.manual_seed(0)
    p, y, w = torch.randn(300, 4).softmax(1), torch.randint(0, 4, (300,)), torch.rand(300) + 0.5
    mine = slice(0, 100) if rank else slice(100, 300)
    found = {}
    for name, options in {
        "confidence": {},
        "classwise": {"num_classes": 4},
        "weighted": {"weighted": True},
        "clustered": {},
    }.items():
        notion = name if name in ("confidence", "classwise") else "confidence"
        metric = CalibrationError(notion, from_logits=False, **options)
        more = (w[mine],) if name == "weighted" else ()
        # Some clusters have rows in both processes.
        ids = {"cluster": torch.arange(300) // 7} if name == "clustered" else {}
        metric.update(p[mine], y[mine], *more, **{key: value[mine] for key, value in ids.items()})
        before = metric.sums.clone()
        found[name] = metric.compute().item(), metric.to_sketch().n, bool(torch.equal(metric.sums, before))
        estimate = metric.estimate(rng=0)
        assert estimate.n == found[name][1]
        whole = CalibrationError(notion, from_logits=False, **(options | {"sync_on_compute": False}))
        whole.update(p, y, *((w,) if name == "weighted" else ()), **ids)
        at_once = whole.estimate(rng=0)
        assert estimate.clusters == at_once.clusters == (43 if ids else None)
        assert abs(estimate.high - at_once.high) < 1e-9
        found[f"{name} at once"] = whole.compute().item(), whole.to_sketch().n, True
        first = {key: value[:50] for key, value in ids.items()}
        batch = whole(p[:50], y[:50], *((w[:50],) if name == "weighted" else ()), **first)
        assert 0 <= batch.item() <= 1
        whole.reset()
        assert not whole.sums.any()
    if kind == "plain":
        figure, _ = metric.plot([0.1, torch.tensor(0.2)])
        assert str(metric.device) == "cpu"
        assert figure.axes
    (folder / f"{kind}-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
