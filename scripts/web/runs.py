"""Failed runs for scenarios to hand over, made after the examples."""
import re

from site_driver import examples


def ranks(folder, count, broken):
    """Logs of a job of count ranks, rank_0.log and so on, in folder: the device of one rank
    breaks, the others wait for it and time out. All else is as in examples/eight-ranks."""
    folder.mkdir(parents=True, exist_ok=True)
    logs = examples() / "eight-ranks"
    for rank in range(count):
        before = 5 if rank == broken else 0
        text = (logs / f"rank_{before}.log").read_text()
        host, local = f"kestrel-{rank // 8:02}", rank % 8
        pid = 90000 + rank
        for was, now in [
            (rf"\brank {before}\b", f"rank {rank}"), (rf"\bRank {before}\b", f"Rank {rank}"), (rf"\[rank{before}\]", f"[rank{rank}]"),
            (r"kestrel-\d+", host), (r"local_rank \d+", f"local_rank {local}"), (r"cuda:\d+", f"cuda:{local}"), (r"\bpid \d+", f"pid {pid}"),
            (r":\d{5,6}:(\d{5,6}) \[\d\]", rf":{pid}:\1 [{local}]"), (r"cudaDev \d+ nvmlDev \d+", f"cudaDev {local} nvmlDev {local}"),
            (r"world_size 8", f"world_size {count}"), (r"nranks 8", f"nranks {count}"), (r"busId [0-9a-f]+", f"busId {0x1b + local * 16:x}000"),
        ]:
            text = re.sub(was, now, text)
        (folder / f"rank_{rank}.log").write_text(text)
    return folder


def oom():
    """The log of a run that ran out of memory."""
    return (examples() / "single-gpu-oom" / "train.log").read_text()
