"""A Slurm of one node on loopback, from Debian's packages slurmctld, slurmd and slurm-client, without systemd."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol")

CONF = """
ClusterName=one
SlurmctldHost=localhost
SlurmUser={user}
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobRequeue=1
KillWait=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
NodeName=localhost CPUs={cpus} RealMemory=2000 State=UNKNOWN
PartitionName=bench Nodes=localhost Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
"""

READY_S = 30.0


def missing() -> str:
    """Return why no Slurm can be started here, empty if one can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    return "" if os.getuid() == 0 else "only root can start slurmd"


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """Run a Slurm that keeps its files in a new folder, and let the programs of this process find it."""
    folder = folder.resolve()
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    conf = folder / "slurm.conf"
    conf.write_text(CONF.format(folder=folder, user="root", cpus=os.cpu_count()))
    daemons: list[subprocess.Popen[bytes]] = []
    with patch.dict(os.environ, SLURM_CONF=str(conf)):
        try:
            for command in (["slurmctld", "-D", "-c"], ["slurmd", "-D", "-N", "localhost"]):
                words = [*command, "-f", str(conf)]
                daemons.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            _wait_until_idle()
            yield
        finally:
            for daemon in daemons:
                daemon.terminate()
            for daemon in daemons:
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()


def printed(*words: str) -> str:
    """Return what a program of Slurm prints."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def states(job: str) -> dict[str, str]:
    """Return the state of each task of an array job that Slurm has a record of, by its number."""
    jobs = (
        dict(word.partition("=")[::2] for word in line.split() if "=" in word)
        for line in printed("scontrol", "-o", "show", "job", job).splitlines()
    )
    return {each["ArrayTaskId"]: each.get("JobState", "") for each in jobs if "ArrayTaskId" in each}


def _wait_until_idle() -> None:
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        if "idle" in printed("sinfo", "-h", "-o", "%t"):
            return
        time.sleep(0.3)
    raise RuntimeError(f"Slurm was not ready after {READY_S:g} s: {printed('sinfo')}")
