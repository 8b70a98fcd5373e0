"""A server of which torch says in each process that it forks what it says where the server has asked CUDA."""

import os

import torch

from bench.measure import judge, server
from bench.measure.forking import ForkServer

OWN = os.getpid()
torch.cuda._is_in_bad_fork = lambda: os.getpid() != OWN

if __name__ == "__main__":
    ForkServer({"worker": server.work, "judge": judge.work}, server.warm).serve()
