#!/usr/bin/env python3
"""Pi by throwing darts, in exact integers; the counts come together in objects and in arrays.

    zipper run --cluster a=2 --cluster b=2 -- python3 examples/pi/pi.py
"""
import random
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
throws = 20000
random.seed(world.rank)
hits = sum(random.random() ** 2 + random.random() ** 2 < 1 for _ in range(throws))

by_rank = world.gather({"rank": world.rank, "hits": hits})  # pickled objects
total = array("q", [0])
world.Allreduce(array("q", [hits]), total)  # a buffer

if world.rank == 0:
    if sum(each["hits"] for each in by_rank) != total[0]:
        raise SystemExit("the two ways of adding differ")
    print(f"pi is about {4 * total[0] / (throws * world.size):.2f}, by {world.size} processes")
